"""The pages of the pool, in a real browser."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import msgspec
import pytest
from tests.scenario.asking import patiently
from yarl import URL

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.gateway.rest.use_of_slots import machine_map, machine_uses
from kettle_wire.ads.types import Ad

from .browser import NO_WIDER, PHONE, Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

PAGES: Final = (
    "/machines",
    "/fairshare",
    "/submitters",
    "/negotiations",
    "/own-machines",
    "/pools",
    "/log",
    "/usage",
    "/failures",
    "/alerts",
    "/services",
)
DRAWN: Final[dict[str, str]] = dict.fromkeys(("/machines", "/fairshare"), "[data-drawn]")
"""Pages with a drawing, and what is there when it is made."""


async def asked(look: Looks, path: str, **query: Any) -> Any:
    """What the REST interface answers to who looks."""
    async with (
        aiohttp.ClientSession(look.address, headers=look.headers, middlewares=(patiently,)) as session,
        session.get(path, params=query) as response,
    ):
        assert 200 == response.status, await response.text()
        return await response.json()


async def until(look: Looks, path: str, holds: Callable[[Any], bool], **query: Any) -> Any:
    """What is answered when something is true of it: tables follow what is recorded."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(found := await asked(look, path, **query)):
            await asyncio.sleep(0.05)
    return found


def on_claims(found: Any, job: str) -> list[Any]:
    """The claims on which a job runs."""
    return [each for each in found["claims"] if each.get("job", {}).get("id") == job]


async def the_machine(look: Looks) -> str:
    """The name of the pool's machine, when it has told of itself."""
    found = await until(look, "/v2/machines:use", lambda found: bool(found["machines"]))
    return str(found["machines"][0]["name"])


def alone(machine: str) -> str:
    """The page of machines with only this one."""
    return "/machines?filter=" + quote(f'Machine == "{machine}"')


async def test_everybody_can_read_the_pages_of_the_pool(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Wish 14: on every page axe finds nothing, no script fails, nothing is asked of other hosts, and no page is wider than the
    window; what is drawn is drawn.
    """
    made = await pool.client.submit("executable = /bin/false\nqueue 2\n", cwd=tmp_path)
    await pool.client.wait(select(made.cluster))
    machine = await the_machine(look)
    cycles = await until(look, "/v2/negotiations", lambda found: bool(found["negotiations"]))
    newest = cycles["negotiations"][0]["cycle"]
    paths = [*PAGES, f"/machines/{quote(machine)}", f"/negotiations/{newest}", "/usage?group_by=day&by=owner"]
    async with look.at("/machines") as seen:
        for path in paths:
            await seen.require_readable(path, until=DRAWN.get(path, "main"))
        assert ([], []) == (seen.said, seen.elsewhere)
    async with look.at("/machines", scheme="dark", size=PHONE) as seen:
        for path, drawn in DRAWN.items():
            assert 200 == await seen.go(path), path
            await seen.page.wait_for_selector(drawn)
            assert await seen.page.evaluate(NO_WIDER), path
        assert ([], []) == (seen.said, seen.elsewhere)


async def test_a_machine_says_what_runs_there_and_what_ran(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Wish 9: the page of a machine has the jobs that run there now, those that ran there lately with how each ended, and its ads, in
    which attributes are searched; of the past the pages have which slots were claimed, and for which jobs.
    """
    machine = await the_machine(look)
    over = await pool.client.submit("executable = /bin/true\nqueue\n", cwd=tmp_path)
    await pool.client.wait(select(over.cluster))
    on = await pool.client.submit("executable = /bin/sleep\narguments = 600\nqueue\n", cwd=tmp_path)
    there = f"{on.cluster}.0@schedd"
    await until(
        look,
        f"/v2/machines/{quote(machine)}",
        lambda found: there in [job["id"] for job in found.get("jobs", [])],
    )
    await until(look, "/v2/attempts", lambda found: bool(found["attempts"]), job=f"{over.cluster}.0")
    async with look.at(f"/machines/{quote(machine)}") as seen:
        assert there in await seen.text("[aria-labelledby=running]")
        assert f"{over.cluster}.0@schedd" in await seen.text("[aria-labelledby=lately]")
        assert "its program ended" in await seen.text(
            f"[aria-labelledby=lately] tr:has-text('{over.cluster}.0@')"
        )
        await seen.page.fill("[name=search]", "enteredcurrent")
        await seen.page.press("[name=search]", "Enter")
        await seen.page.wait_for_url("**search=enteredcurrent*")
        names = await seen.page.locator("details.ad[open] tbody th").all_inner_texts()
        assert {"EnteredCurrentState", "EnteredCurrentActivity"} == set(names)
        claims = await until(look, "/v2/claims", lambda found: bool(on_claims(found, there)))
        [claim] = on_claims(claims, there)
        moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        await seen.go(f"/machines?as_of={moment}")
        assert f"{machine} {claim['slot']}" in await seen.text(f"tbody tr:has-text('{on.cluster}.0')")
        await seen.go(f"/machines?as_of={moment}&owner=nobody")
        assert "No slot was claimed then by nobody" == await seen.text(".empty h2")


async def test_a_machine_is_emptied_from_its_page(look: Looks, pool: ThrowawayPool) -> None:
    """
    Without scripts, too, an administrator has a machine take no jobs, and take jobs again; its page says that it drains and why.
    """
    machine = await the_machine(look)
    path = f"/machines/{quote(machine)}"

    def drains(found: Any) -> bool:
        return any(slot["attributes"].get("Draining") is True for slot in found["slots"])

    empties = False
    try:
        async with look.at(path, scripts=False) as seen:
            await seen.page.click("text=Empty it, or have it")
            await seen.page.fill("[name=reason]", "a disk")
            await seen.page.click("button:has-text('Drain: no new jobs')")
            assert f"{machine} takes no new jobs" in await seen.text("[role=status]")
            empties = True
            await until(look, f"/v2{path}", drains)
            await seen.page.reload()
            assert "yes: a disk" in await seen.text("dl.facts")
            await seen.page.click("button:has-text('Take jobs again')")
            assert f"{machine} takes jobs again." == await seen.text("[role=status] p")
            empties = False
    finally:
        if empties:
            await pool.client.hosts.cancel_drain(machine)
    await until(look, f"/v2{path}", lambda found: not drains(found))


async def test_the_map_is_used_with_keys_and_says_what_it_shows(look: Looks) -> None:
    """
    Wish 14: the map of machines has a legend with counts, says in words what is under the cursor, is used with keys, and its
    choices stand in the address.
    """
    machine = await the_machine(look)
    async with look.at(f"{alone(machine)}&colour=owner") as seen:
        await seen.page.wait_for_selector("[data-drawn='1']")
        await seen.page.select_option("[name=colour]:visible", "arch")
        assert (await seen.text("[data-legend]")).endswith(" 1")
        assert "arch" == URL(seen.page.url).query["colour"]
        await seen.page.focus("canvas")
        assert (await seen.text("[data-said]")).startswith(f"{machine} · ")
        await seen.page.press("canvas", "Enter")
        await seen.page.wait_for_url(f"**/machines/{quote(machine)}")
        assert machine == await seen.text("h1")
    assert [] == seen.said


async def test_ten_thousand_machines_are_one_map(look: Looks) -> None:
    """Ten thousand machines are drawn, each is found with keys, and the legend dims the others."""
    await the_machine(look)
    slots: list[Ad] = [
        {
            "Machine": f"node{number:05d}",
            "State": "Claimed" if number % 4 else "Unclaimed",
            "Cpus": 8,
            "TotalCpus": 8,
            "RemoteOwner": f"user{number % 40}",
            "EnteredCurrentState": 1_700_000_000 + number,
            "Arch": "X86_64",
        }
        for number in range(10_000)
    ]
    uses = machine_uses(slots)
    drawn = msgspec.json.encode(machine_map(uses, datetime.now(UTC)))
    async with look.at("/log") as seen:
        await seen.page.route(
            "**/v2/machines:map*", lambda route: route.fulfill(body=drawn, content_type="application/json")
        )
        await seen.go("/machines?arrange=colour")
        await seen.page.wait_for_selector("[data-drawn='10000']")
        assert "B all cores claimed 7,500 F unclaimed 2,500" == await seen.text("[data-legend]")
        await seen.page.focus("canvas")
        await seen.page.press("canvas", "End")
        assert (await seen.text("[data-said]")).startswith("node09996 · unclaimed · 0 of 8 cores in use")
        await seen.page.click("[data-legend] >> text=unclaimed")
        assert 1 == await seen.page.locator("[data-legend] [aria-pressed=true]").count()
    assert [] == seen.said


async def test_machines_are_a_table_without_scripts(look: Looks) -> None:
    """Without JavaScript the machines are found by filters, and the map is not there."""
    machine = await the_machine(look)
    async with look.at(alone(machine), scripts=False) as seen:
        assert machine == await seen.text("tbody th")
        assert not await seen.page.is_visible("[data-machine-map]")
        await seen.page.fill(".filters [name=filter]", "Cpus < 0")
        await seen.page.click(".filters button")
        assert "No machine is like this" == await seen.text(".empty h2")


async def test_failures_are_grouped_by_their_cause(look: Looks, pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Wish 11: jobs that failed alike are one line, with how many they are, when the first and the last was seen, and the way to them.
    """
    made = await pool.client.submit(
        "executable = /bin/sh\narguments = \"-c 'exit 93'\"\nqueue 3\n", cwd=tmp_path
    )
    await pool.client.wait(select(made.cluster))
    await until(
        look,
        "/v2/failures",
        lambda found: any(each.get("code") == 93 and each["count"] >= 3 for each in found["failures"]),
        kind="exit",
    )
    async with look.at("/failures?kind=exit") as seen:
        row = "tr:has-text('exit code 93')"
        assert 1 == await seen.page.locator(row).count()
        assert 2 == await seen.page.locator(f"{row} time").count()
        there = await seen.page.get_attribute(f"{row} a", "href")
        assert there is not None
        assert ("/history", "ExitCode == 93") == (URL(there).path, URL(there).query["filter"])


async def test_the_log_is_shown_as_it_was(look: Looks, pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    The slider leads to the same list as of an earlier moment, where what came later is not there; so do links without scripts.
    """
    made = await pool.client.submit("executable = /bin/true\nhold = true\nqueue\n", cwd=tmp_path)
    stream = f"cluster/{made.cluster}"
    await until(look, "/v2/log", lambda found: bool(found["records"]), stream=stream)
    async with look.at(f"/log?kind=cluster.*&stream=cluster/{made.cluster}") as seen:
        assert 1 == await seen.page.locator(".log tbody tr").count()
        await seen.page.focus("#slider")
        await seen.page.press("#slider", "Home")
        await seen.page.wait_for_url("**as_of=*")
        assert "Nothing like this is recorded" in await seen.text(".empty h2")
        assert "The past" in await seen.text(".moment")
        await seen.page.click(".steps >> text=now")
        await seen.page.wait_for_selector(".log tbody tr")
        await seen.page.wait_for_load_state()  # before its script has come, a key says nothing to the slider
        await seen.page.focus("#slider")
        await seen.page.press("#slider", "ArrowLeft")
        await seen.page.wait_for_url("**as_of=*")
        assert await seen.text("[data-said]") in await seen.text(".moment")
        await seen.page.click("text=a minute later")
        await seen.page.wait_for_selector(".moment.past")
        assert await seen.text("[data-said]") in await seen.text(".moment")
    async with look.at(f"/log?stream=cluster/{made.cluster}", scripts=False) as plain:
        await plain.page.click("text=a day earlier")
        assert "Nothing like this is recorded" in await plain.text(".empty h2")


async def test_usage_is_added_up_by_what_somebody_chooses(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Wish 15: usage is grouped by project and owner, all of it, and the same is a table for other programs, where no text is a formula.
    """
    text = 'executable = /bin/true\n+ProjectName = "{}"\nqueue {}\n'
    for project, jobs in (("=harmless", 1), ("pages", 2)):
        made = await pool.client.submit(text.format(project, jobs), cwd=tmp_path)
        await pool.client.wait(select(made.cluster))
    await until(
        look,
        "/v2/usage",
        lambda found: {"pages", "=harmless"} <= {row["key"]["project"] for row in found["rows"]},
        group_by="project",
    )
    async with look.at("/usage") as seen:
        await seen.page.select_option("[name=group_by]", "project")
        await seen.page.select_option("[name=by]", "owner")
        await seen.page.click(".filters button")
        await seen.page.wait_for_selector("tbody tr:has-text('pages')")
        heads = await seen.page.locator("thead th").all_inner_texts()
        assert ["Project", "Owner"] == heads[:2]
        there = await seen.page.get_attribute("text=Download as CSV", "href")
    async with aiohttp.ClientSession(look.address, headers=look.headers) as session:
        assert there is not None
        async with session.get(there) as response:
            assert "text/csv" == response.content_type
            assert response.headers["Content-Disposition"].startswith("attachment")
            rows = (await response.text()).splitlines()
    assert rows[0].startswith("project,owner,jobs,")
    assert any(row.startswith("pages,") for row in rows)
    assert any(row.startswith("'=harmless,") for row in rows)


async def test_a_cycle_says_what_it_refused_and_why(look: Looks, pool: ThrowawayPool, tmp_path: Path) -> None:
    """A cycle that refuses jobs names them with the part of their requirements that refuses."""
    before = await asked(look, "/v2/negotiations", limit=1)
    seen_last = max((each["cycle"] for each in before["negotiations"]), default=0)
    await pool.client.submit("executable = /bin/true\nrequest_memory = 900G\nqueue 2\n", cwd=tmp_path)

    def refusing(found: Any) -> list[int]:
        return [
            each["cycle"]
            for each in found["negotiations"]
            if each["rejected"] == 2 and each["cycle"] > seen_last
        ]

    found = await until(look, "/v2/negotiations", lambda found: bool(refusing(found)))
    cycle = refusing(found)[0]
    async with look.at("/negotiations") as seen:
        await seen.page.click(f"tbody th a:text-is('{cycle}')")
        assert "RequestMemory" in await seen.text("[aria-labelledby=rejected]")
