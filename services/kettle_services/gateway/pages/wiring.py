"""Which page is shown by what."""

from collections.abc import Mapping
from typing import Final

from kettle_services.gateway.pages.jobs_page import JOBS, JobsPage
from kettle_services.gateway.pages.page import Form, Handler, Page
from kettle_services.gateway.pages.questions import Questions

PAGES: Final = (JOBS,)
"""In any order: each says itself where it stands in the navigation."""


def page_handlers(questions: Questions) -> Mapping[Page | Form, Handler]:
    """All of them."""
    return {
        JOBS: JobsPage(questions).show,
    }
