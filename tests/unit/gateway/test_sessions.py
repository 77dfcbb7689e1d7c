"""Sessions of browsers: how they begin and end, and what a browser that was deceived can do with one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from kettle.runtime.authorization import Authorization
from kettle.runtime.http_server import serving
from kettle.runtime.policy_in_force import PolicyInForce
from kettle_services.gateway.rest.application import Answer, Asked, Front, RequestLimits
from kettle_services.gateway.rest.local_accounts import LocalAccounts, own_account
from kettle_services.gateway.rest.own_iam import OwnIam
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.sessions.browser_sessions import BrowserSessions
from kettle_services.gateway.sessions.credential import Credential
from kettle_services.gateway.sessions.links import LIFE_S, Links
from kettle_services.gateway.sessions.login import Login
from kettle_services.gateway.sessions.origins import Origins
from kettle_services.gateway.sessions.own_sessions import OwnSessions
from kettle_services.gateway.sessions.session_table import Lives, SessionTable
from kettle_services.gateway.sessions.targets import own_target
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.jobs import Jobs

TOKEN = "the contents of the private file"
TOKEN_OF_ADA = Credential(token="t")
PROGRAM = {"Authorization": f"Bearer {TOKEN}"}
OPENED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
"""What a browser says of an address that a person has opened."""


def begin(table: SessionTable, person: str = "ada", now: float = 0.0) -> str:
    return table.begin(person, TOKEN_OF_ADA, "token", address="", agent="", now=now)[0]


def test_a_session_ends_by_its_age_and_by_idleness() -> None:
    """Each request puts off the one and not the other."""
    table = SessionTable(Lives(whole=100.0, idle=10.0))
    shown = begin(table)
    for now in range(9, 100, 9):
        assert table.find(shown, float(now)) is not None
    assert table.find(shown, 100.0) is None
    shown = begin(table, now=200.0)
    assert table.find(shown, 210.0) is None
    assert 0 == len(table)


def test_a_session_is_known_by_nothing_that_anybody_sees() -> None:
    """Neither its id nor what a page repeats opens it."""
    table = SessionTable(Lives(whole=100.0, idle=100.0))
    shown, session = table.begin("ada", TOKEN_OF_ADA, "token", address="", agent="", now=0.0)
    for other in (session.id, session.csrf, "", shown[:-1], f"{shown} ", "\udcff"):
        assert table.find(other, 1.0) is None
    assert table.find(shown, 1.0) is session
    assert shown not in repr(session)


def test_of_many_sessions_those_that_are_not_used_end() -> None:
    """One person has only so many, which does not touch those of others."""
    table = SessionTable(Lives(whole=100.0, idle=100.0), most_of_one=2, most=3)
    of_bob = begin(table, "bob")
    first, second = begin(table), begin(table)
    table.find(first, 1.0)
    third = begin(table)
    assert [None, True, True, True] == [
        table.find(each, 2.0) and True for each in (second, first, third, of_bob)
    ]
    begin(table, "cyd")
    assert table.find(first, 3.0) is None
    assert 3 == len(table)


def test_a_link_works_once_within_a_minute() -> None:
    """A second use, a late one and a code that was never made are the same: nothing."""
    links = Links()
    made = links.make(TOKEN_OF_ADA, 0.0)
    assert [None, TOKEN_OF_ADA, None] == [links.redeem(each, 1.0) for each in (made[:-1], made, made)]
    assert links.redeem(links.make(TOKEN_OF_ADA, 0.0), LIFE_S) is None


@pytest.mark.parametrize(
    ("said", "leads"),
    [
        ("/jobs?state=held&page=x", "./jobs?state=held&page=x"),
        ("//evil.example/", "./"),
        ("/\\evil.example", "./"),
        ("https://evil.example/", "./"),
        ("javascript:alert(1)", "./"),
        ("/jobs\r\nSet-Cookie: a=b", "./"),
        ("\t//evil.example", "./"),
        ("", "./"),
        ("/" + "x" * 3000, "./"),
    ],
)
def test_nothing_leads_to_another_site(said: str, leads: str) -> None:
    """Only a path of ours is kept, and it is relative: no server's name can be in it."""
    assert leads == own_target(said)


class Gateway:
    """A gateway's web server with pages of nobody's, and a browser that keeps cookies."""

    def __init__(self, port: int, table: SessionTable, rules: Path, policy: PolicyInForce) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.own_pages = {"Sec-Fetch-Site": "same-origin", "Origin": self.url}
        self.table = table
        self.rules = rules
        self.policy = policy

    @asynccontextmanager
    async def browser(self) -> AsyncGenerator[aiohttp.ClientSession]:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(self.url, cookie_jar=jar) as session:
            yield session

    async def link(self) -> str:
        async with (
            aiohttp.ClientSession(self.url, headers=PROGRAM) as program,
            program.post("/v2/sessions:link") as response,
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
        (session,) = self.table.of(own_account())
        return session.csrf


async def sent(
    browser: aiohttp.ClientSession, method: str, path: str, **said: Any
) -> tuple[int, aiohttp.ClientResponse]:
    async with browser.request(method, path, allow_redirects=False, **said) as response:
        await response.read()
        return response.status, response


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    rules = tmp_path / "rules.toml"
    rules.write_text("")
    policy = PolicyInForce("gateway", Authorization(domain="pool", rules=str(rules)), None)
    persons = Persons(policy, None, OwnIam(tmp_path), LocalAccounts(tmp_path), TOKEN)
    limits = RequestLimits(rate=100.0, burst=20.0, proxies=frozenset())
    table, links = SessionTable(Lives(3600.0, 3600.0)), Links()
    sessions = BrowserSessions(table, Origins("", ()), persons)

    async def nothing(_asked: Asked) -> Answer:
        return Answer(Jobs(jobs=[]))

    handlers = {**dict.fromkeys(ROUTES, nothing), **OwnSessions(table, links).handlers()}
    application = Front(persons, limits, sessions).application(handlers)
    Login(sessions, links, persons, limits).add_to(application)
    async with serving(application, "127.0.0.1", 0) as port:
        yield Gateway(port, table, rules, policy)


async def test_a_link_signs_a_browser_in_and_leaves_the_address(gateway: Gateway) -> None:
    """
    The code is exchanged for a cookie that no script sees and no other site sends, and does not work again.
    """
    link = await gateway.link()
    async with gateway.browser() as browser:
        assert 401 == (await sent(browser, "GET", "/v2/jobs"))[0]
        status, response = await sent(browser, "GET", f"{link}&next=/v2/jobs", headers=OPENED)
        assert (303, "./v2/jobs") == (status, response.headers["Location"])
        cookie = response.headers["Set-Cookie"]
        port = gateway.url.rpartition(":")[2]
        assert cookie.startswith(f"kettle-session-{port}=")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert "Domain" not in cookie
        status, response = await sent(browser, "GET", "/v2/jobs")
        assert (200, "Authorization, Cookie") == (status, response.headers["Vary"])
    async with gateway.browser() as other:
        status, response = await sent(other, "GET", link, headers=OPENED)
        assert (403, "link.unknown") == (status, (await response.json())["code"])


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {},
        {**OPENED, "Sec-Purpose": "prefetch"},
    ],
)
async def test_a_link_is_not_used_by_who_has_not_opened_it(gateway: Gateway, headers: dict[str, str]) -> None:
    """
    Another site that leads there signs nobody in as somebody else, and a look beforehand uses nothing up.
    """
    link = await gateway.link()
    async with gateway.browser() as browser:
        for method in ("GET", "HEAD"):
            status, response = await sent(browser, method, link, headers=headers)
            assert 303 != status
            assert "Set-Cookie" not in response.headers
        form = {"link": link.partition("=")[2]}
        assert 403 == (await sent(browser, "POST", "/login", data=form, headers=headers))[0]
        status, _ = await sent(browser, "POST", "/login", data=form, headers=gateway.own_pages)
        assert 303 == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
async def test_what_changes_something_comes_from_our_own_pages(
    gateway: Gateway, headers: dict[str, str], status: int
) -> None:
    """
    A browser shows its cookie for any page: what it says about that page decides, also if the token of the session were known.
    """
    async with gateway.signed_in() as browser:
        headers = {"X-CSRF-Token": gateway.csrf(), **headers}
        found, response = await sent(
            browser, "POST", "/v2/sessions:end", json={"ids": ["x"]}, headers=headers
        )
        assert status == found
        if status == 403:
            assert "csrf" == (await response.json())["code"]
        assert 200 == (await sent(browser, "GET", "/v2/jobs", headers=headers))[0]


async def test_a_change_repeats_what_only_our_pages_know(gateway: Gateway) -> None:
    """Without the token of this very session, or with that of another one, nothing is done."""
    body = {"ids": ["x"]}
    async with gateway.signed_in() as browser, gateway.signed_in():
        mine, others = (each.csrf for each in gateway.table.of(own_account()))
        for token, expected in (("", 403), (others, 403), (mine[:-1], 403), (mine, 200)):
            headers = {**gateway.own_pages, **({"X-CSRF-Token": token} if token else {})}
            found, _ = await sent(browser, "POST", "/v2/sessions:end", json=body, headers=headers)
            assert expected == found
        for token, expected in ((others, 403), (mine, 303)):
            status, _ = await sent(
                browser, "POST", "/logout", data={"csrf": token}, headers=gateway.own_pages
            )
            assert expected == status
        assert 401 == (await sent(browser, "GET", "/v2/jobs"))[0]


async def test_a_login_begins_a_session_of_its_own(gateway: Gateway) -> None:
    """What a browser showed before is not adopted, and ends: who gave it to the browser is not signed in."""
    async with gateway.browser() as browser:
        name = f"kettle-session-{gateway.url.rpartition(':')[2]}"
        browser.cookie_jar.update_cookies({name: "fixed"})
        _, response = await sent(browser, "GET", await gateway.link(), headers=OPENED)
        first = response.cookies[name].value
        assert "fixed" != first
        _, response = await sent(browser, "GET", await gateway.link(), headers=OPENED)
        assert first != response.cookies[name].value
    async with aiohttp.ClientSession(gateway.url, cookies={name: first}) as thief:
        assert 401 == (await sent(thief, "GET", "/v2/jobs"))[0]
    assert 1 == len(gateway.table)


async def test_somebody_lists_and_ends_the_own_sessions(gateway: Gateway) -> None:
    """They are told apart by where they began, and an ended one is refused."""
    async with gateway.signed_in() as one, gateway.signed_in() as two:
        _, response = await sent(one, "GET", "/v2/sessions")
        listed = (await response.json())["sessions"]
        assert [True, False] == [each["current"] for each in listed]
        assert {"link"} == {each["way"] for each in listed}
        assert set() == {"credential", "csrf", "key"} & set(listed[0])
        async with aiohttp.ClientSession(gateway.url, headers=PROGRAM) as program:
            status, response = await sent(
                program, "POST", "/v2/sessions:end", json={"ids": [listed[1]["id"], "x"]}
            )
            assert (200, [listed[1]["id"]]) == (status, (await response.json())["ended"])
        assert 200 == (await sent(one, "GET", "/v2/jobs"))[0]
        assert 401 == (await sent(two, "GET", "/v2/jobs"))[0]


async def test_a_token_of_the_header_counts_before_a_cookie(gateway: Gateway) -> None:
    """A program's request needs nothing that pages send; a wrong token is refused whatever the cookie is."""
    async with gateway.signed_in() as browser:
        body = {"ids": ["x"]}
        assert 200 == (await sent(browser, "POST", "/v2/sessions:end", json=body, headers=PROGRAM))[0]
        wrong = {"Authorization": "Bearer x"}
        assert 401 == (await sent(browser, "GET", "/v2/jobs", headers=wrong))[0]
        link = {**gateway.own_pages, "X-CSRF-Token": gateway.csrf()}
        assert 403 == (await sent(browser, "POST", "/v2/sessions:link", headers=link))[0]


async def test_codes_cannot_be_tried_for_long(gateway: Gateway) -> None:
    """Somebody who invents codes is told to wait."""
    async with gateway.browser() as browser:
        statuses = [
            (await sent(browser, "GET", f"/login?link={each}", headers=OPENED))[0] for each in range(22)
        ]
    assert {403, 429} == set(statuses)
    assert 429 == statuses[-1]


async def test_a_session_does_not_outlive_a_ban(gateway: Gateway) -> None:
    """
    Who is banned is refused with the reason at the next request, and has to sign in again when the ban is lifted.
    """
    async with gateway.signed_in() as browser:
        gateway.rules.write_text(f'[[bans]]\nowner = "{own_account()}"\nreason = "mines coins"\n')
        assert gateway.policy.changed()
        status, response = await sent(browser, "GET", "/v2/jobs")
        assert (403, True) == (status, "mines coins" in (await response.json())["detail"])
        gateway.rules.write_text("# lifted\n")
        assert gateway.policy.changed()
        assert 401 == (await sent(browser, "GET", "/v2/jobs"))[0]
