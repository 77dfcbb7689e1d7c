"""The page of the queues, in a real browser."""

import asyncio
import re
from pathlib import Path

import aiohttp
import pytest
from playwright.async_api import Route
from tests.scenario.asking import patiently
from yarl import URL

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .browser import Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

HELD = "executable = /bin/true\nhold = true\nrequest_memory = 77\nqueue {}\n"


async def submitted(pool: ThrowawayPool, directory: Path, jobs: int) -> int:
    """The number of a cluster of held jobs."""
    return (await pool.client.submit(HELD.format(jobs), cwd=directory)).cluster


async def test_filters_stand_in_the_address_and_are_about_all_jobs(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Wishes 2 and 4: what is filtered, sorted and grouped is found in the queue and not on the page; the address, a reload and the
    way back show it again.
    """
    cluster = await submitted(pool, tmp_path, 60)
    other = await submitted(pool, tmp_path, 2)
    async with look.at(f"/jobs?cluster={cluster}") as seen:
        await seen.page.wait_for_selector(f"th:has-text('{cluster}.59')")
        assert "60 jobs of this kind held 60" == await seen.text(".counts")
        assert 50 == await seen.page.locator(".jobs tbody tr").count()
        await seen.page.click("a[rel=next]")
        await seen.page.wait_for_selector(f"tbody a:text-is('{cluster}.0')")
        assert 10 == await seen.page.locator(".jobs tbody tr").count()
        await seen.page.fill(".filters [name=cluster]", "")
        wanted = f"ClusterId == {other} && RequestMemory == 77"
        await seen.page.fill(".filters [name=filter]", wanted)
        await seen.page.press(".filters [name=filter]", "Enter")
        await seen.page.wait_for_selector(f"tbody a:text-is('{other}.1')")
        assert {"filter": wanted} == dict(URL(seen.page.url).query)
        await seen.page.reload()
        assert "2 jobs of this kind held 2" == await seen.text(".counts")
        await seen.page.click("thead >> text=Owner")
        await seen.page.wait_for_url("**sort=-owner*")
        assert {"filter": wanted, "sort": "-owner"} == dict(URL(seen.page.url).query)
        assert "descending" == await seen.page.get_attribute("thead th:has-text('Owner')", "aria-sort")
        await seen.page.select_option(".filters [name=group_by]", "cluster")
        await seen.page.click(".filters button")
        assert f"schedd {other} 2" == await seen.text(".groups tbody tr")
        await seen.page.go_back()
        await seen.page.wait_for_selector(f"tbody a:text-is('{other}.1')")
    assert [] == seen.elsewhere


async def test_the_list_is_live(look: Looks, pool: ThrowawayPool, tmp_path: Path) -> None:
    """Wish 5: what is recorded is seen without a reload, and no address is asked again and again."""
    async with look.at("/jobs?filter=RequestMemory==77") as seen:
        await seen.page.wait_for_selector("[data-live-state=on]")
        asked: list[str] = []
        seen.page.on("request", lambda request: asked.append(request.url))
        cluster = await submitted(pool, tmp_path, 2)
        await seen.page.wait_for_selector(f"tr:has-text('{cluster}.1') .held")
        await pool.client.remove(select(f"{cluster}.1"))
        await seen.page.wait_for_selector(f"tr:has-text('{cluster}.1')", state="detached")
        assert [] == asked
    assert [] == seen.said


async def test_a_list_that_cannot_be_live_at_first_is_so_later(look: Looks) -> None:
    """When the connection of a live page fails at first, the page stays as it is and tries again."""
    async with look.at("/submit") as seen:
        failures = ["failed", "unavailable"]

        async def fail_first(route: Route) -> None:
            match failures.pop() if failures else "":
                case "failed":
                    await route.abort()
                case "unavailable":
                    await route.fulfill(status=503, content_type="text/html", body="<p>not now</p>")
                case _:
                    await route.continue_()

        await seen.page.route("**/live/**", fail_first)
        await seen.go("/jobs")
        await seen.page.wait_for_selector("[data-live-state=on]")
        assert [] == failures
        assert "The queues are empty" == await seen.text(".empty h2")


async def test_a_list_is_live_whenever_its_scripts_come(look: Looks) -> None:
    """A page whose scripts come late, one long after the other, is live all the same."""
    turn = "new Promise(done => { const look = () => setTimeout(window.htmx ? () => setTimeout(done) : look); look(); })"
    async with look.at("/submit") as seen:

        async def late(route: Route) -> None:
            await seen.page.evaluate(turn)
            await route.continue_()

        for name in ("hx-sse", "kettle"):
            await seen.page.route(f"**/assets/{name}.*.js", late)
        await seen.go("/jobs")
        await seen.page.wait_for_selector("[data-live-state=on]")
        assert [] == seen.said


async def test_a_page_is_live_when_it_is_seen(look: Looks) -> None:
    """A page that was opened behind another one takes no connection before it is looked at."""
    async with look.at("/submit") as seen:
        unseen = "Object.defineProperty(document, 'hidden', {get: () => !window.seen, configurable: true})"
        await seen.page.add_init_script(unseen)
        asked: list[str] = []
        seen.page.on("request", lambda request: asked.append(URL(request.url).path))
        await seen.go("/jobs")
        await seen.page.evaluate("new Promise(done => setTimeout(done))")
        assert "/live/jobs" not in asked
        await seen.page.evaluate("window.seen = true; document.dispatchEvent(new Event('visibilitychange'))")
        await seen.page.wait_for_selector("[data-live-state=on]")
        assert "/live/jobs" in asked


async def test_columns_are_chosen_and_remembered(look: Looks, pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Wish 8: the columns that were chosen are there again at the next visit; attributes of the ad can be columns.
    """
    await submitted(pool, tmp_path, 1)
    async with look.at("/jobs") as seen:
        await seen.page.wait_for_selector(".jobs")
        await seen.page.click("details.columns summary")
        for name in ("owner", "command", "runs", "where"):
            await seen.page.uncheck(f".columns [value={name}]")
        await seen.page.check(".columns [value=asked]")
        await seen.page.click(".columns button")
        await seen.page.wait_for_selector("thead th:text-is('Memory asked, MiB')")
        wanted = ["", "Job", "State", "Memory asked, MiB", "In this state since"]
        assert wanted == await seen.page.locator(".jobs thead th").all_inner_texts()
        await seen.go("/jobs?fields=Cmd")
        assert [*wanted, "Cmd"] == await seen.page.locator(".jobs thead th").all_inner_texts()
        assert "/bin/true" in await seen.text(".jobs tbody tr")


async def until_empty(look: Looks) -> None:
    """
    Wait until the tables have forgotten the jobs of the test before: a page without scripts shows them as they are once.
    """
    async with (
        asyncio.timeout(PATIENCE_S),
        aiohttp.ClientSession(look.address, headers=look.headers, middlewares=(patiently,)) as session,
    ):
        while True:
            async with session.get("/v2/jobs") as response:
                if not (await response.json())["jobs"]:
                    return
            await asyncio.sleep(0.05)


async def test_the_page_needs_no_scripts(look: Looks) -> None:
    """Without JavaScript the form of filters leads to an address without the fields that were left empty."""
    await until_empty(look)
    async with look.at("/jobs", scripts=False) as seen:
        assert "The queues are empty" == await seen.text(".empty h2")
        await seen.page.fill(".filters [name=owner]", "nobody")
        await seen.page.fill(".filters [name=since]", "2026-11-25 10:00")
        await seen.page.click(".filters button")
        await seen.page.wait_for_url(
            re.compile("/jobs[?]owner=nobody&since=2026-11-25T10(:|%3A)00(:|%3A)00Z$")
        )
        assert "No job in the queues is like this" == await seen.text(".empty h2")


async def test_a_slip_in_a_filter_costs_nothing_that_was_typed(look: Looks) -> None:
    """
    What is wrong with a filter is said beside it, what was typed is still there, and so is who is signed in.
    """
    async with look.at("/jobs", scripts=False) as seen:
        who = await seen.text(".who span")
        await seen.page.fill(".filters [name=owner]", "ada")
        await seen.page.fill(".filters [name=cluster]", "zzz")
        await seen.page.click(".filters button.main")
        assert "ada" == await seen.page.input_value("main [name=owner]")
        assert "cluster" in (await seen.text("#wrong-cluster")).lower()
        assert who == await seen.text(".who span")
        await seen.page.fill("main [name=cluster]", "7")
        await seen.page.click("main button.main")
        await seen.page.wait_for_url("**/jobs?owner=ada&cluster=7")
        await seen.page.fill(".filters [name=filter]", "JobPrio >")
        await seen.page.click(".filters button.main")
        assert "JobPrio >" == await seen.page.input_value("main [name=filter][aria-invalid=true]")
