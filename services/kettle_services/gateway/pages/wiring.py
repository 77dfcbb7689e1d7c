"""Which page is shown by what, and how pages and the REST interface become one application."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from kettle.runtime import Runtime
from kettle_services.gateway.pages.cluster_page import CLUSTER, ClusterPage
from kettle_services.gateway.pages.home_page import HOME, HomePage
from kettle_services.gateway.pages.job_actions import ACT, JobActions
from kettle_services.gateway.pages.job_page import JOB, JobPage
from kettle_services.gateway.pages.jobs_page import HISTORY, JOBS, PAST, QUEUES, JobsPage
from kettle_services.gateway.pages.live import LiveParts, TableWatch
from kettle_services.gateway.pages.page import Form, Handler, Page
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.serving import Pages
from kettle_services.gateway.pages.submit_page import CHECK, SEND, SUBMIT, SubmitPage
from kettle_services.gateway.rest.application import Front
from kettle_services.gateway.rest.wiring import RestParts
from kettle_services.gateway.settings import GatewaySettings

PAGES: Final = (HOME, JOBS, SUBMIT, HISTORY, JOB, CLUSTER)
"""In any order: each says itself where it stands in the navigation."""


def page_handlers(questions: Questions) -> Mapping[Page | Form, Handler]:
    """All of them."""
    submit = SubmitPage(questions)
    return {
        SUBMIT: submit.show,
        SEND: submit.send,
        CHECK: submit.check,
        JOBS: JobsPage(questions, QUEUES).show,
        HISTORY: JobsPage(questions, PAST).show,
        JOB: JobPage(questions).show,
        HOME: HomePage(questions).show,
        ACT: JobActions(questions).act,
        CLUSTER: ClusterPage(questions).show,
    }


def people_and_programs(rt: Runtime, settings: GatewaySettings, parts: RestParts) -> web.Application:
    """The application that answers both."""
    pages = Pages(PAGES, pool=settings.pool, prefix=settings.prefix, proxies=settings.proxies)
    front = Front(parts.persons, parts.limits, pages.problem)
    application = front.application(parts.handlers)
    watch = TableWatch(parts.tables)
    rt.loop(watch.run(), name="watched tables")
    shown = page_handlers(Questions(parts.handlers, front.require))
    pages.add_to(application, front, shown, LiveParts(watch, most=settings.rest_streams))
    return application
