"""The pages of one job, of a cluster and of somebody's jobs, and what is done there."""

import asyncio
from pathlib import Path

import pytest
from tests.scenario.evidence import Evidence
from yarl import URL

from kettle.client import select
from kettle.client.connections.transport import new_id
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.queue import EDIT_JOBS, EditJobs
from kettle_wire.endpoint import Position

from .browser import Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]


def place(position: Position) -> str:
    """Where something is recorded, for pages that wait until they can show it."""
    return f"{position.shard}:{position.frame}"


HELD = "executable = /bin/true\narguments = a b\nhold = true\nqueue {}\n"
SIFTED = "document.querySelectorAll('#attributes tbody tr:not([hidden])').length <= 2"


async def test_a_job_says_why_it_waits_and_what_has_happened(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Wishes 1, 5, 6 and 14: the page of a job has the reason in words, what would be if it asked for less, the time line and the events, and
    follows what is recorded without taking away what somebody writes; at an earlier moment it shows the job as it was, and it tells what is different since.
    """
    big = "executable = /bin/true\nrequest_memory = 4TB\nqueue\n"
    cluster = (await pool.client.submit(big, cwd=tmp_path)).cluster
    async with look.at("/jobs?state=idle") as seen:
        await seen.page.click(f"tbody a:text-is('{cluster}.0')")
        await seen.page.wait_for_selector(f"h1:text-is('Job {cluster}.0')")
        async with asyncio.timeout(PATIENCE_S):
            # A negotiation that refuses a job is no reason to send its page again.
            while "4 TiB of memory" not in await seen.text("section:has(#why)"):
                await seen.page.reload()
        assert f"Job {cluster}.0" == await seen.text("h1")
        assert "idle" == await seen.text(".title .state")
        assert 1 == await seen.page.locator(".gantt rect.idle").count()
        assert "submitted cluster" in await seen.text("section:has(#events)")
        await seen.page.click("text=Change it")
        await seen.page.fill("[name=RequestMemory]", "16")
        await seen.page.click("text=Would it run?")
        await seen.page.wait_for_selector("p[role=status]:has-text('slots could run it')")
        assert "16" == await seen.page.input_value("[name=RequestMemory]")
        assert [] == await seen.violations()
        await seen.go(f"/jobs/{cluster}.0")
        assert "memory 4.0 TiB" in await seen.text("section:has(#facts)")
        await seen.page.wait_for_selector("[data-live-state=on]")
        await seen.page.click("text=Change it")
        await seen.page.fill("[name=Name]", "Colour")
        await seen.page.fill("[data-sift]", "holdreasoncode")
        await pool.client.hold(select(f"{cluster}.0"), reason="for a test")
        await seen.page.wait_for_selector(".title .state.held")
        assert "for a test" in await seen.text("section:has(#events)")
        await seen.page.wait_for_function(SIFTED)
        assert "Colour" == await seen.page.input_value("[name=Name]:visible")
        await seen.page.reload()
        assert "held for" in await seen.text("section:has(#why)")
        await seen.page.click("tbody tr:has-text('idle') >> text=differences")
        assert "JobStatus 1 5" in await seen.text("#attributes")
        await seen.page.click("tbody tr:has-text('idle') >> text=job")
        assert "idle" == await seen.text(".title .state")
        assert "The past" in await seen.text(".moment.past")
        await seen.page.click("text=Back to now")
        assert "held" == await seen.text(".title .state")
        await seen.page.wait_for_load_state()
        await seen.page.fill("[data-sift]", "holdreasoncode")
        await seen.page.wait_for_function(SIFTED)
    assert ([], []) == (seen.said, seen.elsewhere)


async def test_a_cluster_shows_its_failures_by_cause(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """Wishes 11 and 15: a cluster says how far it is, and how many jobs failed for which reason."""
    failing = (await pool.client.submit("executable = /bin/false\nqueue 2\n", cwd=tmp_path)).cluster
    await pool.client.wait(select(failing))
    submitted = await pool.client.submit(HELD.format(3), cwd=tmp_path)
    async with look.at(f"/clusters/{submitted.cluster}?at_least={place(submitted.position)}") as seen:
        assert "0 of 3 have ended" in await seen.text(".counts")
        assert "on hold" in await seen.text("section:has(#causes) tbody")
        await seen.go(f"/clusters/{failing}@schedd")
        await seen.page.wait_for_selector("text=exited with code 1")
        await seen.go("/")
        await seen.page.wait_for_selector("text=Held, and waiting for you")
        await seen.page.wait_for_selector("section:has(#ended) >> text=code 1")
        await seen.page.wait_for_selector("section:has(#machines) >> text=cores are in use")
        assert 404 == await seen.go("/clusters/999999")
    assert [] == seen.elsewhere


async def test_jobs_are_held_and_released_again_without_scripts(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Wish 7: what is ticked is held and can be released again at once; all that match are removed only when the number is right.
    """
    big = "executable = /bin/true\nrequest_memory = 4TB\nqueue 3\n"
    submitted = await pool.client.submit(big, cwd=tmp_path)
    cluster = submitted.cluster
    path = f"/jobs?cluster={cluster}&at_least={place(submitted.position)}"
    async with look.at(path, scripts=False) as seen:
        await seen.page.check(f"[value='{cluster}.1@schedd']")
        await seen.page.fill(".bulk [name=reason]", "wait a moment")
        await seen.page.click("button:text-is('Hold')")
        assert "1 job was put on hold." == await seen.text("[role=status] p")
        assert "Jobs in the queues" == await seen.text("h1")
        assert str(cluster) == URL(seen.page.url).query["cluster"]
        [ad] = await pool.client.jobs(select(f"{cluster}.1"))
        assert (5, True) == (ad["JobStatus"], str(ad["HoldReason"]).startswith("wait a moment"))
        await seen.page.click("button:has-text('Undo')")
        assert "1 job was released." == await seen.text("[role=status] p")
        await seen.page.reload()
        assert 0 == await seen.page.locator("[role=status]").count()
        await seen.page.click("button:text-is('Hold')")
        assert "no job is ticked" in (await seen.text("[role=status] .problem")).lower()
        await seen.page.check("[name=all][value='1']")
        await seen.page.click("button:has-text('Remove')")
        assert "Remove 3 jobs?" == await seen.text("h1")
        await pool.client.remove(select(f"{cluster}.2"))
        await seen.page.click("button:has-text('Remove 3 jobs')")
        assert "these are 2 jobs, and not 3" in (await seen.text("[role=status] .problem")).lower()
        await seen.page.check("[name=all][value='1']")
        await seen.page.click("button:has-text('Remove')")
        await seen.page.click("button:has-text('Remove 2 jobs')")
        assert "2 jobs were removed." == await seen.text("[role=status] p")
        assert [] == await pool.client.jobs(select(cluster))


async def test_a_description_is_checked_as_it_is_typed_and_kept_after_an_error(
    look: Looks, pool: ThrowawayPool
) -> None:
    """
    Wish 13: an error is said at its line while it is typed, and after it was sent with what was typed; then the jobs are submitted,
    and one of them can be submitted again.
    """
    wrong = "executable = /bin/true\nrequest_memry = 5\nqueue 2\n"
    async with look.at("/submit") as seen:
        await seen.page.wait_for_selector("[data-live-state]")
        await seen.page.fill("#text", wrong)
        await seen.page.wait_for_selector("#check >> text=did you mean 'request_memory'?")
        assert "2 request_memry = 5" == await seen.text("#check pre")
        await seen.page.click("button.main")
        await seen.page.wait_for_selector("#text[aria-invalid=true]")
        assert wrong == await seen.page.input_value("#text")
        await seen.page.wait_for_load_state()  # what is typed before the scripts have come is not checked
        await seen.page.fill("#text", wrong.replace("memry = 5", "memory = 4TB"))
        await seen.page.wait_for_selector("#check >> text=2 jobs: nothing is wrong")
        await seen.page.click("button.main")
        await seen.page.wait_for_selector("h1:has-text('Cluster')")
        cluster = URL(seen.page.url).name.partition("@")[0]
        assert 2 == len(await pool.client.jobs(select(int(cluster))))
        await seen.page.click(f"tbody a:text-is('{cluster}.0') >> nth=0")
        await seen.page.click("text=Submit one like it")
        text = await seen.page.input_value("#text")
        assert "executable = /bin/true" in " ".join(text.split())
        assert "+" not in text
    assert [] == seen.elsewhere


PATIENT = """#!/bin/sh
echo '<script>alert(1)</script>'
echo wanted one
echo trouble >&2
until [ -e %s ]; do sleep 0.2; done
echo wanted two
"""


async def test_output_is_read_searched_followed_and_kept(
    look: Looks, pool: ThrowawayPool, tmp_path: Path, evidence: Evidence
) -> None:
    """
    Wish 10: the end of what a running job writes is shown as text, searched, and followed until the run is over; then its files are
    listed with their sizes, and each of them is had, and all in one archive.
    """
    going = evidence.directory / "go"
    (tmp_path / "program").write_text(PATIENT % going)
    (tmp_path / "program").chmod(0o755)
    submitted = await pool.client.submit(
        "executable = program\noutput = out\nerror = err\nqueue\n", cwd=tmp_path
    )
    cluster = submitted.cluster
    try:
        async with look.at(f"/jobs/{cluster}.0?at_least={place(submitted.position)}") as seen:
            await seen.page.click("text=Output and files")
            await seen.page.wait_for_selector("#output")
            await seen.go(f"/jobs/{cluster}.0/files")
            while "wanted one" not in await seen.text("#output"):
                await seen.go(f"/jobs/{cluster}.0/files")
            assert "<script>alert(1)</script>" in await seen.text("pre.output")
            await seen.page.fill("[name=find]", "WANTED")
            assert "wanted one" == await seen.text("pre.output")
            await seen.page.click("button:text-is('Follow')")
            await seen.page.wait_for_selector("text=Followed as it is written")
            going.touch()
            await seen.page.wait_for_selector("text=The run is over")
            assert "wanted one wanted two" == await seen.text("pre.output")
            await pool.client.wait(select(cluster))
            await seen.go(f"/jobs/{cluster}.0/files?stream=stderr")
            assert "trouble" == await seen.text("pre.output")
            assert [] == await seen.violations()
            async with seen.page.expect_download() as awaited:
                await seen.page.click("tbody a:text-is('Standard error')")
            assert b"trouble\n" == Path(await (await awaited.value).path()).read_bytes()
            async with seen.page.expect_download() as awaited:
                await seen.page.click("text=All in one archive")
            assert f"{cluster}.0.tar" == (await awaited.value).suggested_filename
            assert ([], []) == (seen.said, seen.elsewhere)
    finally:
        going.touch()


async def test_a_waiting_job_is_changed_unless_it_is_another_by_then(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    What a job asks for is changed on its page, as it was shown there; where it has changed meanwhile nothing is done, and that is said
    beside what was typed, which can be sent again; also a value that cannot be read is kept.
    """
    submitted = await pool.client.submit(HELD.format(1), cwd=tmp_path)
    job = f"{submitted.cluster}.0"
    async with look.at(f"/jobs/{job}?at_least={place(submitted.position)}", scripts=False) as seen:
        await seen.page.click("text=Change it")
        await seen.page.fill("[name=RequestMemory]", "2048")
        await seen.page.fill("[name=Name]", "Colour")
        await seen.page.fill("[name=Value]", '"blue"')
        await seen.page.click("button:text-is('Change')")
        assert "memory 2.0 GiB" in await seen.text("section:has(#facts)")
        [ad] = await pool.client.jobs(select(job))
        assert (2048, "blue") == (ad["RequestMemory"], ad["Colour"])
        edit = EditJobs(id=new_id(), select=select(job), attributes={"JobPrio": 7})
        await pool.client.requests.ask(EDIT_JOBS, edit)
        await seen.page.click("text=Change it")
        await seen.page.fill("[name=RequestMemory]", "4096")
        await seen.page.click("button:text-is('Change')")
        assert "has changed since its page was shown" in await seen.text("[role=alert]")
        [ad] = await pool.client.jobs(select(job))
        assert 2048 == ad["RequestMemory"]
        assert "4096" == await seen.page.input_value("[name=RequestMemory]")
        await seen.page.fill("[name=Name]", "Colour")
        await seen.page.fill("[name=Value]", "1 +")
        await seen.page.click("button:text-is('Change')")
        assert "cannot be read" in await seen.text("[role=alert]")
        kept = [await seen.page.input_value(f"[name={name}]") for name in ("Name", "Value", "RequestMemory")]
        assert ["Colour", "1 +", "4096"] == kept
        await seen.page.fill("[name=Value]", "1 + 1")
        await seen.page.click("button:text-is('Change')")
        assert "memory 4.0 GiB" in await seen.text("section:has(#facts)")
        assert f"/jobs/{job}@schedd" == URL(seen.page.url).path


async def test_it_is_said_where_an_unknown_job_may_be(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The page of a job that is not there says that, and leads to what its cluster has left; a job that has written nothing has a page
    that says so.
    """
    async with look.at("/jobs/999999.0", status=404) as seen:
        await seen.page.click("text=those of cluster 999999")
        assert "No job in the history is like this" == await seen.text(".empty h2")
        submitted = await pool.client.submit(HELD.format(1), cwd=tmp_path)
        job = f"{submitted.cluster}.0"
        await seen.go(f"/jobs/{job}?at_least={place(submitted.position)}")
        assert 200 == await seen.go(f"/jobs/{job}/files")
        assert "_condor_stdout" in await seen.text("#output .problem")
