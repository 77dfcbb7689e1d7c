"""What strangers get at the origins of jobs."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kettle.runtime.http_server import serving
from kettle_services.gateway.domain.service_origins import ServiceOrigins, label
from kettle_services.gateway.published.service_pages import ServicePages
from kettle_services.gateway.published.service_sessions import ServiceSessions, state_of
from kettle_services.gateway.rest.application import RequestLimits
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.sessions.session_table import Lives, SessionTable

from .published_parts import JOB, Gateway, ask

HOST = f"{label('s', JOB)}.jobs.example"


class NothingIsAsked(Gateway):
    """A gateway whose queues are not to be asked."""

    def __init__(self) -> None:
        super().__init__()

        async def asked(*_: object) -> object:
            raise AssertionError("a stranger has a queue asked")

        self.jobs.access_point = self.jobs.job = asked  # type: ignore[method-assign, assignment]


@asynccontextmanager
async def pages(url: str) -> AsyncGenerator[tuple[int, ServiceSessions, SessionTable]]:
    made = NothingIsAsked()
    table = SessionTable(Lives(whole=100.0, idle=100.0))
    sessions = ServiceSessions(table, cast("Any", made.persons))
    limits = RequestLimits(rate=1e5, burst=1e5, all_rate=1e5, all_burst=1e5, proxies=frozenset())
    shown = ServicePages(
        made.access, made.requests, sessions, ServiceOrigins(url), limits, "http://gateway.example"
    )
    async with serving(shown.application(), "127.0.0.1", 0, None) as port:
        yield port, sessions, table


@pytest.mark.parametrize(
    ("path", "cookie", "status"),
    [
        ("/jobs/12.0/web/", "", 303),
        ("/jobs/12.0@s/web/", "kettle-services=invented", 303),
        ("/services-enter?code=x&to=/jobs/12.0/web/", "kettle-services-secret=invented", 403),
        ("/jobs/13.0/web/", "", 421),
        ("/services-enter?code=x&to=/jobs/13.0/web/", "", 421),
    ],
)
async def test_a_stranger_has_no_queue_asked(path: str, cookie: str, status: int) -> None:
    """
    Nobody without a session learns which jobs there are, nor has access points and the database work for it.
    """
    async with pages("http://*.jobs.example") as (port, _, _):
        said = await ask(
            port, f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        )
    assert status == int(said.split()[1]), said


@pytest.mark.parametrize(
    ("url", "before"), [("http://*.jobs.example", ""), ("https://*.jobs.example", "__Host-")]
)
async def test_no_other_job_gives_a_browser_a_session(url: str, before: str) -> None:
    """
    A page of another job can set cookies for all hosts of the domain, save those that begin with `__Host-`: others are none over HTTPS.
    """
    async with pages(url) as (port, sessions, table):
        head = f"Host: {HOST}\r\nConnection: close\r\n"
        led = await ask(port, f"GET /jobs/12.0/web/ HTTP/1.1\r\n{head}\r\n")
        assert f"Set-Cookie: {before}kettle-services-secret=".encode() in led
        _, session = table.begin(
            "mallory", Credential(token="t"), "token", address="", agent="", now=time.time()
        )
        for name in ("kettle-services-secret", "__Host-kettle-services-secret"):
            code = sessions.make_code(session, ("s", JOB), state_of("known"))
            path = f"/services-enter?code={code}&to=/jobs/12.0/web/"
            said = await ask(port, f"GET {path} HTTP/1.1\r\n{head}Cookie: {name}=known\r\n\r\n")
            right = name == f"{before}kettle-services-secret"
            assert (303 if right else 403) == int(said.split()[1]), said
            assert right == (f"Set-Cookie: {before}kettle-services=".encode() in said)
