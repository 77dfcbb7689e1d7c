"""What a browser can do that has signed in, and what one that was deceived cannot."""

import time
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from kettle.accounts.lookup import own_name
from kettle_services.gateway.rest.credential import Credential

from .browsing import OPENED, PROGRAM, Gateway, gateway_at, sent


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    async with gateway_at(tmp_path) as made:
        yield made


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


async def test_a_page_of_ours_opens_no_link_for_a_person(gateway: Gateway) -> None:
    """Who had one lead there by an address would sign somebody in as himself."""
    link = await gateway.link()
    async with gateway.browser() as browser:
        status, response = await sent(browser, "GET", link, headers={"Sec-Fetch-Site": "same-origin"})
        assert (200, None) == (status, response.headers.get("Set-Cookie"))


async def test_a_link_of_somebody_else_waits_for_the_button(gateway: Gateway, tmp_path: Path) -> None:
    """
    Who is signed in and opens the link of another goes on as before; a link of the same person needs no button.
    """
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "account-mallory.creds").touch()
    of_mallory = gateway.links.make("mallory", Credential(account="mallory"), time.time())
    async with gateway.signed_in() as browser:
        status, response = await sent(browser, "GET", f"/login?link={of_mallory}", headers=OPENED)
        assert (200, None) == (status, response.headers.get("Set-Cookie"))
        assert 303 == (await sent(browser, "GET", await gateway.link(), headers=OPENED))[0]
        assert 0 == len(gateway.table.of("mallory"))
        form = {"link": of_mallory}
        assert 303 == (await sent(browser, "POST", "/login", data=form, headers=gateway.own_pages))[0]
        assert 1 == len(gateway.table.of("mallory"))


@pytest.mark.parametrize(
    ("site", "encoding"),
    [("same-origin", "gzip"), ("none", "gzip"), ("same-site", None), ("cross-site", None)],
)
async def test_how_small_a_page_becomes_is_nothing_for_others(
    gateway: Gateway, site: str, encoding: str | None
) -> None:
    """A page is compressed, but not for another origin, which could learn from that what is on it."""
    async with gateway.browser() as browser:
        status, response = await sent(browser, "GET", "/login", headers={"Sec-Fetch-Site": site})
        assert (200, encoding) == (status, response.headers.get("Content-Encoding"))
        assert "Accept-Encoding" in response.headers["Vary"]


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
            browser, "POST", "/v2/browser-sessions:end", json={"ids": ["x"]}, headers=headers
        )
        assert status == found
        if status == 403:
            assert "csrf" == (await response.json())["code"]
        assert 200 == (await sent(browser, "GET", "/v2/jobs", headers=headers))[0]


async def test_a_change_repeats_what_only_our_pages_know(gateway: Gateway) -> None:
    """Without the token of this very session, or with that of another one, nothing is done."""
    body = {"ids": ["x"]}
    async with gateway.signed_in() as browser, gateway.signed_in():
        mine, others = (each.csrf for each in gateway.table.of(own_name()))
        for token, expected in (("", 403), (others, 403), (mine[:-1], 403), (mine, 200)):
            headers = {**gateway.own_pages, **({"X-CSRF-Token": token} if token else {})}
            found, _ = await sent(browser, "POST", "/v2/browser-sessions:end", json=body, headers=headers)
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
        _, response = await sent(one, "GET", "/v2/browser-sessions")
        listed = (await response.json())["sessions"]
        assert [True, False] == [each["current"] for each in listed]
        assert {"link"} == {each["way"] for each in listed}
        assert set() == {"credential", "csrf", "key"} & set(listed[0])
        async with aiohttp.ClientSession(gateway.url, headers=PROGRAM) as program:
            status, response = await sent(
                program, "POST", "/v2/browser-sessions:end", json={"ids": [listed[1]["id"], "x"]}
            )
            assert (200, [listed[1]["id"]]) == (status, (await response.json())["ended"])
        assert 200 == (await sent(one, "GET", "/v2/jobs"))[0]
        assert 401 == (await sent(two, "GET", "/v2/jobs"))[0]


async def test_a_token_of_the_header_counts_before_a_cookie(gateway: Gateway) -> None:
    """A program's request needs nothing that pages send; a wrong token is refused whatever the cookie is."""
    async with gateway.signed_in() as browser:
        body = {"ids": ["x"]}
        assert 200 == (await sent(browser, "POST", "/v2/browser-sessions:end", json=body, headers=PROGRAM))[0]
        wrong = {"Authorization": "Bearer x"}
        assert 401 == (await sent(browser, "GET", "/v2/jobs", headers=wrong))[0]
        link = {**gateway.own_pages, "X-CSRF-Token": gateway.csrf()}
        assert 403 == (await sent(browser, "POST", "/v2/browser-sessions:link", headers=link))[0]


async def test_codes_cannot_be_tried_for_long(tmp_path: Path) -> None:
    """Somebody who invents codes is told to wait."""
    async with gateway_at(tmp_path, rate=0.01) as gateway, gateway.browser() as browser:
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
        gateway.rules.write_text(f'[[bans]]\nowner = "{own_name()}"\nreason = "mines coins"\n')
        assert gateway.policy.changed()
        status, response = await sent(browser, "GET", "/v2/jobs")
        assert (403, True) == (status, "mines coins" in (await response.json())["detail"])
        gateway.rules.write_text("# lifted\n")
        assert gateway.policy.changed()
        assert 401 == (await sent(browser, "GET", "/v2/jobs"))[0]


async def test_another_site_signs_nobody_out(gateway: Gateway) -> None:
    """A browser that shows no cookie, because another site has sent the form, is not told to forget it."""
    async with gateway.browser() as browser:
        status, response = await sent(browser, "POST", "/logout", headers={"Sec-Fetch-Site": "cross-site"})
        assert (403, None) == (status, response.headers.get("Set-Cookie"))
