"""
A person who has only to wait for a service sees a page that asks again; a program gets a problem document.
"""

import pytest
from aiohttp.test_utils import make_mocked_request

from kettle_services.gateway.published.waiting_page import waiting_page, waits_with_a_page
from kettle_services.gateway.rest.refusals import RequestRefused

YET = RequestRefused(
    502, "service.nothing_listens", "nothing listens on port 8888 of <job> yet", retry_after=1.2
)
NEVER = RequestRefused(410, "not_found", "it has ended")
BROWSER = {"Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Mode": "navigate"}


@pytest.mark.parametrize(
    ("method", "headers", "refusal", "page"),
    [
        ("GET", BROWSER, YET, True),
        ("GET", {"Accept": "text/html"}, YET, True),
        ("GET", BROWSER, NEVER, False),
        ("POST", BROWSER, YET, False),
        ("GET", BROWSER | {"Sec-Fetch-Mode": "cors"}, YET, False),
        ("GET", {"Accept": "*/*"}, YET, False),
        ("GET", {}, YET, False),
    ],
)
def test_only_who_opens_a_page_waits_with_one(
    method: str, headers: dict[str, str], refusal: RequestRefused, page: bool
) -> None:
    """And only if waiting helps."""
    assert page == waits_with_a_page(make_mocked_request(method, "/jobs/1.0/web/", headers), refusal)


def test_the_page_says_why_and_asks_again() -> None:
    """Whatever the sentence has in it is text; nothing but the page is loaded."""
    made = waiting_page(YET)
    assert made.text is not None
    assert (502, "2", "no-store") == (made.status, made.headers["Retry-After"], made.headers["Cache-Control"])
    assert "nothing listens on port 8888 of &lt;job&gt; yet." in made.text
    assert '<meta http-equiv="refresh" content="2">' in made.text
    assert made.headers["Content-Security-Policy"].startswith("default-src 'none'")
