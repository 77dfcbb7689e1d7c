"""Signing in and out in a real browser, and what a page of somebody else can make that browser do."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Route

from kettle.testing.throwaway_pool import ThrowawayPool

from .browser import Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

EVIL = """
<!doctype html><title>Evil</title>
<a href="{address}/jobs?owner=nobody">Look at this</a>
<a class="login" href="{address}{link}">And this</a>
<iframe src="{address}/jobs"></iframe>
<form class="logout" method="post" action="{address}/logout"><button>Go</button></form>
<form class="link" method="post" action="{address}/login"><input name="link" value="{code}"><button>Go</button></form>
<form class="end" method="post" action="{address}/v2/browser-sessions:end" enctype="text/plain">
<input name='{{"ids": ["x"], "' value='": 1}}'><button>Go</button></form>
"""


@asynccontextmanager
async def another_site(text: str) -> AsyncGenerator[str]:
    """A page under another name of this machine, which is another site for a browser."""

    async def page(_request: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html")

    application = web.Application()
    application.router.add_get("/", page)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://localhost:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def link_of(pool: ThrowawayPool) -> str:
    """What `kettle web` opens."""
    status, out, err = await pool.kettle("web", "--json")
    assert 0 == status, err
    return str(json.loads(out)["url"])


async def test_a_person_signs_in_by_a_token_and_out(look: Looks) -> None:
    """
    Without a session there are the ways in, at the address that was wanted, to which a good token leads; a wrong one is refused
    with the reason, and who has signed out is a stranger.
    """
    token = look.headers["Authorization"].removeprefix("Bearer ")
    async with look.at("/jobs?owner=nobody", headers={}, status=401) as seen:
        assert "Sign in" == await seen.text("h1")
        assert [] == await seen.violations()
        await seen.page.fill("#token", "wrong")
        await seen.page.click("text=Sign in by the token")
        await seen.page.wait_for_selector("[role=alert]")
        assert "none of an issuer" in await seen.text("[role=alert]")
        await seen.go("/jobs?owner=nobody")
        await seen.page.fill("#token", token)
        await seen.page.click("text=Sign in by the token")
        await seen.page.wait_for_url("**/jobs?owner=nobody")
        assert "Jobs" in await seen.text("h1")
        (cookie,) = await seen.page.context.cookies()
        assert (True, "Strict", "/") == (cookie.get("httpOnly"), cookie.get("sameSite"), cookie.get("path"))
        assert "" == await seen.page.evaluate("document.cookie")
        await seen.page.click("text=Sign out")
        await seen.page.wait_for_url("**/login")
        assert 401 == await seen.go("/jobs")
        assert [] == await seen.page.context.cookies()


async def test_a_link_that_a_person_opens_signs_in_and_goes_away(look: Looks, pool: ThrowawayPool) -> None:
    """The address of the page that is seen has no code in it, nor has the way back to it."""
    async with look.at("/login", headers={}) as seen:
        address = await link_of(pool)
        used = address.partition("link=")[2]
        await seen.page.goto(f"{address}&next=/jobs")
        assert f"{look.address}/jobs" == seen.page.url
        await seen.page.reload()
        assert "Jobs" in await seen.text("h1")
        assert 403 == await seen.go(f"/login?link={used}")
        assert "used already" in await seen.text("[role=alert]")


async def test_a_page_whose_session_has_ended_says_so(look: Looks, pool: ThrowawayPool) -> None:
    """
    A live page that is let in no more does not go on trying: it says that somebody is signed out, and leads to the
    way in.
    """
    async with look.at("/login", headers={}) as seen:
        assert 0 == await seen.page.locator("nav, .moment").count()

        async def stranger(route: Route) -> None:
            await seen.page.context.clear_cookies()
            await route.continue_()

        await seen.page.route("**/live/**", stranger)
        await seen.page.goto(f"{await link_of(pool)}&next=/jobs")
        await seen.page.click("[data-live-state=off] >> text=sign in")
        await seen.page.wait_for_selector("#token")
        assert f"{look.address}/jobs" == seen.page.url


async def test_another_site_can_lead_here_and_do_nothing(look: Looks, pool: ThrowawayPool) -> None:
    """
    A link in somebody's mail shows the page to who has signed in; a form of another site changes nothing, signs nobody in or out,
    and our pages are in nobody's frame.
    """
    async with look.at("/login", headers={}) as seen:
        await seen.page.goto(f"{await link_of(pool)}&next=/jobs")
        stranger = await link_of(pool)
        words: dict[str, Any] = {
            "address": look.address,
            "link": stranger.removeprefix(look.address),
            "code": stranger.partition("link=")[2],
        }
        before = (await seen.page.context.cookies())[0].get("value")
        async with another_site(EVIL.format(**words)) as evil:
            for form in ("logout", "link", "end"):
                await seen.page.goto(evil)
                async with seen.page.expect_navigation() as going:
                    await seen.page.click(f"form.{form} button")
                response = await going.value
                assert response.status in {403, 401, 415}, form
            await seen.page.goto(evil)
            await seen.page.click("a.login")
            await seen.page.wait_for_selector("text=Sign in by the link")
            await seen.page.goto(evil)
            await seen.page.click("text=Look at this")
            await seen.page.wait_for_url("**/jobs?owner=nobody")
            assert "Jobs" in await seen.text("h1")
        assert before == (await seen.page.context.cookies())[0].get("value")
        assert any("frame-ancestors" in said or "X-Frame-Options" in said for said in seen.said)
