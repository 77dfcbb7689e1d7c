"""What all pages have in common, in a real browser."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool

from .browser import NO_WIDER, PHONE, Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

DESCRIPTIONS = (
    "executable = /bin/true\nhold = true\nqueue 8\n",
    "executable = /usr/bin/env\narguments = fit.py --seed $(Process)\nrequest_memory = 4TB\nqueue 6\n",
    "executable = /bin/sleep\narguments = 600\nqueue 4\n",
)
PICTURES = {"/jobs": "jobs-page.png", "/": "home-page.png"}
"""What the documentation shows."""


async def test_everybody_can_read_them(look: Looks, pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Wish 14: axe finds nothing, light and dark, wide and narrow; nothing is asked of other hosts, no script fails, and no page is
    wider than the window.
    """
    ended = (await pool.client.submit("executable = /bin/true\nqueue 3\n", cwd=tmp_path)).cluster
    await pool.client.wait(select(ended))
    submitted = [await pool.client.submit(text, cwd=tmp_path) for text in DESCRIPTIONS]
    cluster = submitted[-1].cluster
    async with look.at("/jobs") as seen:
        await seen.page.wait_for_selector("[data-live-state=on]")
        await seen.page.wait_for_selector(".jobs")
        await seen.page.wait_for_selector(f"tbody a:text-is('{cluster}.0')")
        for path in (
            "/",
            "/jobs",
            "/jobs?group_by=owner",
            "/history",
            f"/jobs/{cluster}.0",
            f"/jobs/{cluster}.0/files",
            f"/clusters/{cluster}",
            "/submit",
        ):
            await seen.require_readable(path, picture=PICTURES.get(path, ""))
        assert ([], []) == (seen.said, seen.elsewhere)
        await seen.require_readable("/jobs?stte=idle", status=400)
    async with look.at("/jobs", scheme="dark", size=PHONE) as seen:
        assert 0 == await seen.page.locator(".menu[open]").count()
        assert await seen.page.evaluate(NO_WIDER)
        assert [] == await seen.violations()
        assert ([], []) == (seen.said, seen.elsewhere)


async def test_a_refusal_is_a_page_for_browsers_and_a_document_for_programs(look: Looks) -> None:
    """
    A parameter that is unknown, an address that is none and a missing credential are said in words to people.
    """
    async with look.at("/jobs?stte=idle", status=400) as seen:
        assert "there is no parameter stte; the nearest is state" in (await seen.text("[role=alert]")).lower()
        assert 404 == await seen.go("/nowhere")
        assert "There is no page with this address" in await seen.text("[role=alert]")
    async with look.at("/jobs", headers={}, status=401) as seen:
        assert "Sign in" == await seen.text("h1")
    async with aiohttp.ClientSession(look.address, headers=look.headers) as session:
        async with session.get("/jobs?stte=idle") as response:
            assert "application/problem+json" == response.content_type
        async with session.get("/jobs") as response:
            assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            assert "DENY" == response.headers["X-Frame-Options"]
            assert len(await response.read()) < 100_000


async def test_somebody_chooses_dark_or_light(look: Looks) -> None:
    """The theme that was chosen is the theme of the next page, from its first byte on."""
    async with look.at("/jobs") as seen:
        await seen.page.click("[data-theme-switch]")
        await seen.go("/jobs?owner=nobody")
        assert "dark" == await seen.page.get_attribute("html", "data-theme")
        colour = "getComputedStyle(document.body).backgroundColor"
        assert "rgb(17, 22, 28)" == await seen.page.evaluate(colour)


async def test_files_of_pages_are_kept_for_ever(look: Looks) -> None:
    """
    A file has its hash in its name, may be kept without end, and is small: all together less than 90 kB.
    """
    async with look.at("/jobs") as seen:
        expression = "performance.getEntriesByType('resource').filter(e => e.name.includes('/assets/')).map(e => e.name)"
        names: list[str] = await seen.page.evaluate(expression)
    assert len(names) >= 4
    async with aiohttp.ClientSession(auto_decompress=False, headers={"Accept-Encoding": "gzip"}) as session:
        answers = await asyncio.gather(*(session.get(name) for name in names))
        sizes = [len(await answer.read()) for answer in answers]
    assert {"public, max-age=31536000, immutable"} == {answer.headers["Cache-Control"] for answer in answers}
    assert sum(sizes) < 90_000
