"""A gateway's web server with sessions and nothing behind it, and browsers that use it."""

import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import aiohttp

from kettle.accounts.lookup import own_name
from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.keys.fetching import FetchLimits, HttpFetcher
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verifier import Verifier
from kettle.runtime.authorization import Authorization
from kettle.runtime.http_server import serving
from kettle.runtime.people import People
from kettle.runtime.policy_in_force import PolicyInForce
from kettle.testing.servers.held_port import held_port
from kettle_services.gateway.pages.home_page import HOME
from kettle_services.gateway.pages.live import LiveParts
from kettle_services.gateway.pages.page import Led
from kettle_services.gateway.pages.serving import Pages
from kettle_services.gateway.pages.table_watch import TableWatch
from kettle_services.gateway.rest.application import Answer, Asked, Front, Handler, RequestLimits
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.local_accounts import LocalAccounts
from kettle_services.gateway.rest.own_iam import OwnIam
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams
from kettle_services.gateway.security_headers import add_security_headers
from kettle_services.gateway.sessions.browser_sessions import BrowserSessions
from kettle_services.gateway.sessions.links import Links
from kettle_services.gateway.sessions.login import Login
from kettle_services.gateway.sessions.oidc.provider import Provider
from kettle_services.gateway.sessions.oidc.routes import IssuerLogin
from kettle_services.gateway.sessions.origins import Origins
from kettle_services.gateway.sessions.own_sessions import OwnSessions
from kettle_services.gateway.sessions.session_table import Lives, SessionTable
from kettle_services.gateway.settings import LoginIssuer
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.jobs import Jobs
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Route

TOKEN = "the contents of the private file"
PROGRAM = {"Authorization": f"Bearer {TOKEN}"}
OPENED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
"""What a browser says of an address that a person has opened."""


class Gateway:
    """A gateway's web server with pages of nobody's, and a browser that keeps cookies."""

    def __init__(
        self,
        url: str,
        table: SessionTable,
        rules: Path,
        policy: PolicyInForce,
        persons: Persons,
        links: Links,
    ) -> None:
        self.url = url
        self.own_pages = {"Sec-Fetch-Site": "same-origin", "Origin": self.url}
        self.table = table
        self.rules = rules
        self.policy = policy
        self.persons = persons
        self.links = links

    @asynccontextmanager
    async def browser(self) -> AsyncGenerator[aiohttp.ClientSession]:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(self.url, cookie_jar=jar) as session:
            yield session

    async def link(self) -> str:
        async with (
            aiohttp.ClientSession(self.url, headers=PROGRAM) as program,
            program.post("/v2/browser-sessions:link") as response,
        ):
            assert 200 == response.status
            return str((await response.json())["path"])

    @asynccontextmanager
    async def signed_in(self) -> AsyncGenerator[aiohttp.ClientSession]:
        async with self.browser() as browser:
            status, _ = await sent(browser, "GET", await self.link(), headers=OPENED)
            assert 303 == status
            yield browser

    def csrf(self) -> str:
        """Of the only session that there is."""
        (session,) = self.table.of(own_name())
        return session.csrf


async def sent(
    browser: aiohttp.ClientSession, method: str, path: str, **said: Any
) -> tuple[int, aiohttp.ClientResponse]:
    async with browser.request(method, path, allow_redirects=False, **said) as response:
        await response.read()
        return response.status, response


@asynccontextmanager
async def gateway_at(
    directory: Path,
    login: Sequence[LoginIssuer] = (),
    *,
    secret: str = "",
    audiences: Sequence[str] = (),
    rules: str = "",
    people: People | None = None,
    handlers: Mapping[Route, Handler] = MappingProxyType({}),
    encryption: ssl.SSLContext | None = None,
    port: int = 0,
    rate: float = 100.0,
) -> AsyncGenerator[Gateway]:
    """
    A gateway whose rules are in a directory. `login`: where people sign in, by a client with this secret; `audiences`: of
    these issuers' tokens; `people`: of whom iam has said something; `handlers`: what answers instead of nothing; `encryption`: of its port; `port`: 0: one that is free; `rate`: requests
    of a person a second, ten times as many as of who shows no good credential.
    """
    path = directory / "rules.toml"
    path.write_text(rules)
    policy = PolicyInForce("gateway", Authorization(domain="pool", rules=str(path)), None)
    limits = RequestLimits(rate=rate, burst=20.0, all_rate=1000.0, all_burst=1000.0, proxies=frozenset())
    table, links = SessionTable(Lives(3600.0, 3600.0)), Links()
    port = port or held_port()
    url = f"{'https' if encryption else 'http'}://127.0.0.1:{port}"
    trusted = Issuers(Issuer(url=each.issuer, audiences=(each.client, *audiences)) for each in login)
    async with HttpFetcher.open(FetchLimits(plain_loopback=True)) as fetcher:
        keys = KeyCache(fetcher)
        verifier = Verifier(trusted, keys)
        persons = Persons(
            policy, verifier, OwnIam(directory), LocalAccounts(directory), TOKEN, people or People()
        )
        sessions = BrowserSessions(table, Origins("", ()), persons)
        back = f"{url}/login/return"
        providers = {each.issuer: Provider(each, secret, fetcher, keys, verifier, back) for each in login}
        issuers = IssuerLogin(providers, keys, sessions, persons, limits, url)
        answers = {**dict.fromkeys(ROUTES, _nothing), **OwnSessions(table, links).handlers(), **handlers}
        front = Front(persons, limits, sessions)
        application = front.application(answers)
        pages = Pages((), pool="pool")
        pages.add_to(application, front, {HOME: _no_page}, LiveParts(_nothing_new(), Streams(9, 9)))
        add_security_headers(application)
        Login(sessions, links, persons, limits, issuers).add_to(application, pages.login)
        async with serving(application, "127.0.0.1", port, encryption):
            yield Gateway(url, table, path, policy, persons, links)


def _nothing_new() -> TableWatch:
    """Of tables that nobody reads."""
    return TableWatch(cast("JobTables", None))


async def _no_page(asked: Asked) -> Led:
    if asked.request.path.startswith("/live"):
        raise RequestRefused(503, ProblemCode.UNAVAILABLE, "there is nothing to be seen")
    return Led("/login")


async def _nothing(_asked: Asked) -> Answer:
    return Answer(Jobs(jobs=[]))
