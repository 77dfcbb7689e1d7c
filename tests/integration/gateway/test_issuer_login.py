"""
Signing in to the pages at an issuer: the way of a browser there and back, and all that can be wrong with it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.integration.auth.provider import keys, provider
from tests.integration.iam.issuer import TokenIssuer, token_issuer
from yarl import URL

from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.keys.discovery import FetchError, metadata_urls
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verifier import Verifier
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle_services.gateway.sessions.oidc.flow import LoginFailed
from kettle_services.gateway.sessions.oidc.provider import Provider
from kettle_services.gateway.sessions.oidc.tokens import EARLY_S
from kettle_services.gateway.settings import LoginIssuer

from .browsing import OPENED, Gateway, gateway_at, sent

CLIENT = "kettle-web"
POOL = "https://pool.example.org"
RULES = """
[[rules]]
when.issuer = "{issuer}"
when.subject = '/^([a-z]+)$/'
owner = '\\1'
"""


@asynccontextmanager
async def site(
    directory: Path, *, secret: str = "", resource: str = ""
) -> AsyncGenerator[tuple[TokenIssuer, Gateway]]:
    """An issuer, and a gateway at which its people sign in."""
    async with token_issuer() as issuer:
        login = LoginIssuer(issuer=issuer.url, client=CLIENT, resource=resource)
        rules = RULES.replace("{issuer}", issuer.url)
        async with gateway_at(directory, [login], secret=secret, audiences=[POOL], rules=rules) as gateway:
            yield issuer, gateway


async def begun(browser: aiohttp.ClientSession, issuer: TokenIssuer, target: str = "/") -> URL:
    """The address at which the issuer sends a browser back to us, which has not gone there yet."""
    path = str(URL("/login/start").with_query(issuer=issuer.url, next=target))
    status, response = await sent(browser, "GET", path, headers={"Sec-Fetch-Site": "same-origin"})
    assert 303 == status
    async with browser.get(response.headers["Location"], allow_redirects=False) as response:
        return URL(response.headers["Location"])


async def back(browser: aiohttp.ClientSession, place: URL, **query: str | None) -> tuple[int, Any]:
    """Go back, with another address if a word of it is given: what comes of it."""
    words = {name: word for name, word in {**place.query, **query}.items() if word is not None}
    status, response = await sent(browser, "GET", str(place.with_query(words).relative()))
    text = await response.text()
    return status, text if status == 200 else (await response.json())["code"]


@pytest.mark.parametrize("resource", ["", POOL])
@pytest.mark.parametrize("secret", ["", "a secret: 100%"])
async def test_somebody_signs_in_and_out(tmp_path: Path, resource: str, secret: str) -> None:
    """
    The rules name her by what the issuer says, whichever of its tokens the pool knows; she is led to where she wanted to go by a
    page of ours, and her sign-in is renewed no more when she leaves.
    """
    async with (
        site(tmp_path, resource=resource, secret=secret) as (issuer, gateway),
        gateway.browser() as ada,
    ):
        status, page = await back(ada, await begun(ada, issuer, "/v2/browser-sessions"))
        assert (200, True) == (status, 'content="0; url=../v2/browser-sessions"' in page)
        assert issuer.clients[0].startswith("Basic ") if secret else [CLIENT] == issuer.clients
        _, response = await sent(ada, "GET", "/v2/browser-sessions")
        (session,) = (await response.json())["sessions"]
        assert ("issuer", True) == (session["way"], session["current"])
        (held,) = gateway.table.of("ada")
        form = {"csrf": held.csrf}
        assert 303 == (await sent(ada, "POST", "/logout", data=form, headers=gateway.own_pages))[0]
        assert 401 == (await sent(ada, "GET", "/v2/browser-sessions"))[0]
        assert ["refresh-of-ada-0"] == issuer.revoked


async def test_the_way_back_is_for_one_browser_and_one_login(tmp_path: Path) -> None:
    """
    A browser that has not begun signs nobody in, so nobody is signed in as somebody else; a changed word is refused, and a code
    works once.
    """
    async with site(tmp_path) as (issuer, gateway), gateway.browser() as mallory, gateway.browser() as ada:
        of_mallory = await begun(mallory, issuer)
        assert (403, "login.failed") == await back(ada, of_mallory)
        place = await begun(ada, issuer)
        for wrong in (
            {"state": "x"},
            {"state": None},
            {"state": of_mallory.query["state"]},
            {"code": None},
            {"code": of_mallory.query["code"]},
            {"iss": "https://evil.example"},
            {"iss": None},
        ):
            assert (403, "login.failed") == await back(ada, place, **wrong), wrong
        assert 0 == len(gateway.table)
        place = await begun(ada, issuer)
        assert 200 == (await back(ada, place))[0]
        assert (403, "login.failed") == await back(ada, place)


@pytest.mark.parametrize(
    "changed",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another-client"},
        {"aud": POOL},
        {"azp": "another-client"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"sub": "eve; rm"},
    ],
)
async def test_an_id_token_that_is_not_for_this_login_signs_nobody_in(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    """
    Another login's, another client's, another issuer's, an old one, and one that the rules make nobody of.
    """
    async with site(tmp_path) as (issuer, gateway), gateway.browser() as ada:
        issuer.changed = changed
        status, code = await back(ada, await begun(ada, issuer))
        assert (403, "user.unmapped" if "sub" in changed else "login.failed") == (status, code)
        assert 0 == len(gateway.table)


async def test_what_the_issuer_refuses_is_said(tmp_path: Path) -> None:
    """Its sentence is shown as text, and nothing in it is obeyed."""
    async with site(tmp_path) as (issuer, gateway), gateway.browser() as ada:
        place = await begun(ada, issuer)
        words = {
            "error": "access_denied",
            "error_description": "no <b>\x1b[1m",
            "state": place.query["state"],
        }
        query = URL("/login/return").with_query({**words, "iss": issuer.url})
        status, response = await sent(ada, "GET", str(query))
        problem = await response.json()
        assert (403, "login.failed") == (status, problem["code"])
        assert "not signed you in: no <b>\\x1b[1m" in problem["detail"]
        assert "application/problem+json" == response.content_type


async def test_another_page_sends_nobody_to_an_issuer(tmp_path: Path) -> None:
    """Nor does an issuer that is none of ours get anybody."""
    async with site(tmp_path) as (issuer, gateway), gateway.browser() as ada:
        for name, site_ in ((issuer.url, "cross-site"), ("https://evil.example", "none"), ("", "none")):
            query = str(URL("/login/start").with_query(issuer=name))
            _, response = await sent(ada, "GET", query, headers={"Sec-Fetch-Site": site_})
            assert ("../login", None) == (response.headers["Location"], response.headers.get("Set-Cookie"))


async def test_an_issuer_that_is_away_is_not_asked_by_everybody_who_comes(tmp_path: Path) -> None:
    """Of many who begin one asks, and a while later the next; who begins again and again is told to wait."""
    asked: list[str] = []

    class Away:
        """Issuers that answer nobody."""

        async def document(self, url: str) -> bytes:
            asked.append(url)
            await asyncio.sleep(0)
            raise FetchError(f"{url} does not answer")

        async def form(
            self, url: str, fields: Mapping[str, str], headers: Mapping[str, str]
        ) -> tuple[int, bytes]:
            raise FetchError(url)

    moment = [100.0]
    issuer, keys = "https://away.example", KeyCache(Away())
    provider = Provider(
        LoginIssuer(issuer=issuer, client=CLIENT),
        "",
        Away(),
        keys,
        Verifier(Issuers([Issuer(url=issuer, audiences=(CLIENT,))]), keys),
        "http://127.0.0.1/login/return",
        clock=lambda: moment[0],
    )
    for after in (0.0, 4.0, 2.0):
        moment[0] += after
        found = await asyncio.gather(*(provider.begin("/") for _ in range(10)), return_exceptions=True)
        assert {LoginFailed} == {type(each) for each in found}
    assert 2 * list(metadata_urls(issuer)) == asked
    port = held_port()
    login = LoginIssuer(issuer=f"http://127.0.0.1:{port}", client=CLIENT)
    async with gateway_at(tmp_path, [login], rate=0.01) as gateway, gateway.browser() as mallory:
        path = str(URL("/login/start").with_query(issuer=login.issuer))
        statuses = [(await sent(mallory, "GET", path, headers=OPENED))[0] for _ in range(60)]
    assert {403, 429} == set(statuses)


async def test_a_session_lives_as_long_as_the_issuer_renews_its_token(tmp_path: Path) -> None:
    """A token that is about to end is exchanged once; when the issuer gives no more, the session is over."""
    async with site(tmp_path) as (issuer, gateway), gateway.browser() as ada:
        issuer.expires_in = 25
        assert 200 == (await back(ada, await begun(ada, issuer)))[0]
        issuer.expires_in = 600
        for _ in range(2):
            assert 200 == (await sent(ada, "GET", "/v2/browser-sessions"))[0]
        assert 1 == issuer.refreshed
        (session,) = gateway.table.of("ada")
        later = time.time() + 590
        issuer.changed = {"sub": "bob"}
        with pytest.raises(Exception, match="somebody else"):
            await session.credential.renew(later)


async def test_a_session_is_over_when_the_issuer_gives_no_more_tokens(tmp_path: Path) -> None:
    """The request that finds it out is refused with the reason, and then nobody is signed in."""
    async with site(tmp_path) as (issuer, gateway), gateway.browser() as ada:
        issuer.expires_in = int(EARLY_S) + 1
        assert 200 == (await back(ada, await begun(ada, issuer)))[0]
        issuer.forget()
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await sent(ada, "GET", "/v2/browser-sessions"))[0] == 200:
                await asyncio.sleep(0.1)
        problem = await answer[1].json()
        assert (401, "token.expired") == (problem["status"], problem["code"])
        assert problem["detail"].endswith("; sign in again")
        assert 0 == len(gateway.table)
        status, response = await sent(ada, "GET", "/v2/browser-sessions")
        assert (401, "token.absent") == (status, (await response.json())["code"])


async def test_who_signs_out_at_the_issuer_is_signed_out_here(tmp_path: Path) -> None:
    """
    The issuer ends the session of one browser, or all of a person; no other token does that, and nobody without its key.
    """
    async with site(tmp_path) as (issuer, gateway), gateway.browser() as ada, gateway.browser() as bob:
        for browser, name in ((ada, "ada"), (bob, "bob")):
            issuer.person = name
            assert 200 == (await back(browser, await begun(browser, issuer)))[0]
        good = issuer.logout_token(CLIENT, sub="ada")
        refused = [
            "x",
            f"{good[:-4]}AAAA",
            issuer.token("ada", CLIENT),
            issuer.logout_token("another", sub="ada"),
            issuer.logout_token(CLIENT, sub="ada", nonce="n"),
            issuer.logout_token(CLIENT, sub="ada", iat=int(time.time()) - 900, exp=None),
            issuer.logout_token(CLIENT, sub="ada", iss="https://evil.example"),
            issuer.logout_token(CLIENT),
        ]
        for token, expected in [*((each, 400) for each in refused), (good, 200)]:
            assert 200 == (await sent(ada, "GET", "/v2/jobs"))[0]
            form = {"logout_token": token}
            assert expected == (await sent(bob, "POST", "/login/backchannel", data=form))[0]
        assert 401 == (await sent(ada, "GET", "/v2/jobs"))[0]
        assert 200 == (await sent(bob, "GET", "/v2/jobs", headers=OPENED))[0]
        form = {"logout_token": issuer.logout_token(CLIENT, sid="session-1")}
        assert 200 == (await sent(bob, "POST", "/login/backchannel", data=form))[0]
        assert 401 == (await sent(bob, "GET", "/v2/jobs"))[0]


async def test_somebody_signs_in_at_a_provider_that_others_have_written(tmp_path: Path) -> None:
    """
    Its own pages ask who she is and what she allows; then she is here, by the name that the rules make of it.
    """
    port = held_port()
    back = f"http://127.0.0.1:{port}/login/return"
    async with provider(keys(1), device=False, back=back) as one:
        login, rules = LoginIssuer(issuer=one.url, client=CLIENT), RULES.replace("{issuer}", one.url)
        async with gateway_at(tmp_path, [login], rules=rules, port=port) as gateway, gateway.browser() as ada:
            path = str(URL("/login/start").with_query(issuer=one.url, next="/v2/browser-sessions"))
            _, response = await sent(ada, "GET", path, headers=OPENED)
            page = await one.browse(ada, response.headers["Location"], "ada")
            assert 'content="0; url=../v2/browser-sessions"' in page
            _, response = await sent(ada, "GET", "/v2/browser-sessions")
            (session,) = (await response.json())["sessions"]
            assert ("issuer", True) == (session["way"], session["current"])
            assert ["ada"] == [each.person for each in gateway.table]
