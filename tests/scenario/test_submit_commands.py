"""
Commands of submit descriptions that have the daemons do something else than run a job once: each seen in a real pool.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from kettle.client import Client, job_id, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.userlog import Held, Submitted, Terminated
from kettle_wire.ads.types import Ad
from kettle_wire.events import (
    JobAssigned,
    JobCompleted,
    JobEdited,
    JobHeld,
    JobStarted,
    JobVacated,
)
from kettle_wire.jobs import JobId

from .job_log import logged, written
from .waiting import happened

SH = "executable = /bin/sh\ntransfer_executable = false\n"
SITE: dict[str, dict[str, Any]] = {
    "schedd": {"system_job_machine_attrs": ["Cpus"]},
    "startd": {"monitor_interval": 0.2, "machine_max_vacate_time": 600.0},
}


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": SITE}


async def submit(pool: ThrowawayPool, text: str, cwd: Path, queue: str = "queue") -> int:
    return (await pool.client.submit(f"{text}{queue}\n", cwd=cwd)).cluster


async def ran(pool: ThrowawayPool, text: str, cwd: Path) -> tuple[str, JobCompleted]:
    """Run one job to its end; its id and how it ended."""
    job = f"{await submit(pool, text, cwd)}.0"
    return job, await happened(pool.client, job, JobCompleted)


async def queued(client: Client, job: str) -> Ad:
    (ad,) = await client.jobs(select(job_id(job)))
    return ad


async def test_jobs_are_submitted_on_hold(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    From the first moment on, in the frame of their submission; released, they run. Only those that say so are held.
    """
    cluster = await submit(
        pool, "executable = /bin/true\nlog = log\nhold = $(x)\n", tmp_path, "queue x in (true false)"
    )
    held = await happened(pool.client, f"{cluster}.0", JobHeld)
    assert (15, "submitted on hold at user's request") == (held.code, held.reason)
    await happened(pool.client, f"{cluster}.1", JobCompleted)
    ad = await queued(pool.client, f"{cluster}.0")
    assert (5, 15, 0) == (ad["JobStatus"], ad["HoldReasonCode"], ad["NumJobStarts"])
    await pool.client.release(select(job_id(f"{cluster}.0")))
    await happened(pool.client, f"{cluster}.0", JobCompleted)
    kinds = [type(each) for each in await logged(tmp_path / "log", Terminated, times=2) if each.job.proc == 0]
    assert [Submitted, Held] == kinds[:2]


async def test_many_jobs_on_hold_are_one_event(pool: ThrowawayPool, tmp_path: Path) -> None:
    """And those that come little by little do not come before they are released."""
    cluster = await submit(pool, "executable = /bin/true\nhold = true\n", tmp_path, "queue 300")
    jobs = await pool.client.jobs(select(cluster))
    assert {(5, 15)} == {(ad["JobStatus"], ad["HoldReasonCode"]) for ad in jobs}
    assert 300 == len(jobs)
    await pool.client.remove(select(cluster))
    late = await submit(pool, "executable = /bin/true\nhold = true\nmax_idle = 2\n", tmp_path, "queue 3")
    assert [] == await pool.client.jobs(select(late))
    await pool.client.release(select(late))
    for proc in range(3):
        await happened(pool.client, f"{late}.{proc}", JobCompleted)


async def test_a_noop_job_ends_without_a_machine(pool: ThrowawayPool, tmp_path: Path) -> None:
    """As it says, at once, and whatever it requires; the log tells of its end and of no start."""
    text = "executable = /bin/false\nrequirements = false\nlog = log\nnoop_job = ProcId < 2\n"
    text += "noop_job_exit_code = ifThenElse(ProcId == 0, 7, undefined)\nnoop_job_exit_signal = 9\n"
    cluster = await submit(pool, text, tmp_path, "queue 3")
    ended = [await happened(pool.client, f"{cluster}.{proc}", JobCompleted) for proc in range(2)]
    assert [(0, 7, None), (0, None, 9)] == [(e.attempt, e.exit.code, e.exit.signal) for e in ended]
    (left,) = await pool.client.jobs(select(cluster))
    assert (2, 1) == (left["ProcId"], left["JobStatus"])
    events = await logged(tmp_path / "log", Terminated, times=2)
    assert 5 == len(events)
    async with asyncio.timeout(PATIENCE_S):
        while len(past := await pool.client.history(select(cluster))) < 2:
            await asyncio.sleep(0.05)
    for ad in past:
        assert (4, 0, 0, 0.0, 0) == tuple(
            ad[name]
            for name in (
                "JobStatus",
                "NumJobStarts",
                "NumShadowStarts",
                "RemoteWallClockTime",
                "CommittedTime",
            )
        )
    await pool.client.remove(select(cluster))


async def test_the_ad_tells_of_the_machines(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Attributes of the newest slot and of those before, and their names; what the site wants of all jobs, too.
    """
    text = SH + "arguments = \"-c 'test $$(Cpus) = 1 && exit 1'\"\nmax_retries = 1\nleave_in_queue = true\n"
    text += (
        "job_machine_attrs = OpSys, Nothing\njob_machine_attrs_history_length = 2\nmatch_list_length = 3\n"
    )
    job, _ = await ran(pool, text.replace("$$(Cpus)", "1"), tmp_path)
    ad = await queued(pool.client, job)
    assert ("LINUX", "LINUX") == (ad["MachineAttrOpSys0"], ad["MachineAttrOpSys1"])
    assert (1, 1) == (ad["MachineAttrCpus0"], ad["MachineAttrCpus1"])
    assert ad["LastRemoteHost"] == ad["LastMatchName0"]
    assert ("LastMatchName1" in ad, "LastMatchName2" in ad, "MachineAttrNothing0" in ad) == (
        True,
        False,
        False,
    )
    await pool.client.remove(select(job_id(job)))


async def test_a_job_gets_more_memory_when_it_has_run_out_of_it(pool: ThrowawayPool, tmp_path: Path) -> None:
    """It is not held, asks for the next amount and runs again; with the last amount it is held."""
    eats = "python3 -c 'x = b\"x\" * (300 << 20); import time; time.sleep(60)'"
    text = f"shell = {eats}\nrequest_memory = 32\nretry_request_memory = 64, 80\n"
    job = f"{await submit(pool, text, tmp_path)}.0"
    first = await happened(pool.client, job, JobEdited)
    assert {"RequestMemory": 64} == first.attributes
    held = await happened(pool.client, job, JobHeld)
    assert (34, 102) == (held.code, held.subcode)
    ad = await queued(pool.client, job)
    assert (80, 2) == (ad["RequestMemory"], ad["NumEdits"])
    vacated = [e.event for e in await pool.client.events(job_id(job)) if isinstance(e.event, JobVacated)]
    assert [34, 34, 34] == [each.ending.code for each in vacated]
    await pool.client.remove(select(job_id(job)))


async def test_a_job_begins_in_a_directory_of_its_choice(pool: ThrowawayPool, tmp_path: Path) -> None:
    """One of its own, or one that the machine has."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/inner").write_text("here")
    text = (
        "shell = cat inner; cd /; pwd\noutput = out\ntransfer_input_files = data\nremote_initialdir = data\n"
    )
    _, ended = await ran(pool, text, tmp_path)
    assert (0, "here/\n") == (ended.exit.code, (tmp_path / "out").read_text())
    await ran(pool, "shell = pwd\noutput = out\nremote_initialdir = /usr\n", tmp_path)
    assert "/usr\n" == (tmp_path / "out").read_text()
    text = "shell = pwd\nremote_initialdir = /no/such\n"
    absent = f"{await submit(pool, text, tmp_path)}.0"
    assert 14 == (await happened(pool.client, absent, JobHeld)).code
    await pool.client.remove(select(job_id(absent)))


async def test_the_stack_is_as_large_as_the_job_wants(pool: ThrowawayPool, tmp_path: Path) -> None:
    await ran(pool, f"shell = ulimit -s\noutput = out\nstack_size = {3 << 20}\n", tmp_path)
    assert "3072\n" == (tmp_path / "out").read_text()


async def test_results_go_into_a_directory(pool: ThrowawayPool, tmp_path: Path) -> None:
    """All of them, streams too; it is made."""
    text = "shell = echo said; echo made > made\noutput = out\noutput_directory = results/$(Cluster)\n"
    job, _ = await ran(pool, text, tmp_path)
    place = tmp_path / "results" / job.partition(".")[0]
    assert {"out": "said\n", "made": "made\n"} == {file.name: file.read_text() for file in place.iterdir()}


async def test_a_job_whose_results_are_newer_is_skipped(pool: ThrowawayPool, tmp_path: Path) -> None:
    """When what it takes along is changed, it runs."""
    source, result = tmp_path / "source", tmp_path / "result"
    source.write_text("new")
    result.write_text("old")
    for age, file in enumerate((result, source)):
        at = time.time() - 100 * (age + 1)
        os.utime(file, (at, at))
    text = SH + "arguments = \"-c 'cp source result'\"\ntransfer_input_files = source\n"
    text += "transfer_output_files = result\nskip_if_dataflow = true\nlog = log\nleave_in_queue = true\n"
    job, ended = await ran(pool, text, tmp_path)
    assert (0, "old") == (ended.exit.code, result.read_text())
    assert 0 == (await queued(pool.client, job))["NumJobStarts"]
    await written(tmp_path / "log", "Dataflow job was skipped.")
    source.touch()
    again, _ = await ran(pool, text, tmp_path)
    assert "new" == result.read_text()
    assert 1 == (await queued(pool.client, again))["NumJobStarts"]
    await pool.client.remove(select(job_id(job), job_id(again)))


async def test_a_claim_is_kept_for_the_next_job(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A job that is submitted when the one before has ended gets its claim; a job that does not want it gives it back.
    """
    text = "executable = /bin/true\nkeep_claim_idle = 600\nrequest_memory = 77\n"
    claims: list[str] = []
    for _ in range(2):
        job, _ = await ran(pool, text, tmp_path)
        claims.append((await happened(pool.client, job, JobAssigned)).claim)
    assert 1 == len(set(claims))
    not_kept = text.replace("keep_claim_idle = 600\n", "")
    job, _ = await ran(pool, not_kept, tmp_path)
    assert claims[0] == (await happened(pool.client, job, JobAssigned)).claim
    job, _ = await ran(pool, text, tmp_path)
    assert claims[0] != (await happened(pool.client, job, JobAssigned)).claim
    await ran(pool, not_kept, tmp_path)  # nobody has to wait for the machine


async def test_the_next_job_waits_for_its_start(pool: ThrowawayPool, tmp_path: Path) -> None:
    """All have their machines at once, and each starts no sooner than so many delays after that."""
    cluster = await submit(pool, "executable = /bin/true\nnext_job_start_delay = 3\n", tmp_path, "queue 3")
    starts = [(await happened(pool.client, f"{cluster}.{proc}", JobStarted)).at for proc in range(3)]
    told = [each for proc in range(3) for each in await pool.client.events(JobId(cluster, proc))]
    first = min(each.at for each in told if isinstance(each.event, JobAssigned))
    assert all(start - first >= 2.5 * number for number, start in enumerate(sorted(starts))), starts


async def test_what_an_evicted_job_printed_is_kept_or_erased(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Erased, unless it says otherwise and what it makes is kept, too."""
    text = 'shell = echo again; test -e made && exit; trap "exit 1" TERM; touch made; sleep 60 & wait\noutput = out\n'
    text += "should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\n"
    for said, expected in (
        ("", "again\n"),
        ("erase_output_and_error_on_restart = false\n", "again\nagain\n"),
    ):
        job = f"{await submit(pool, text + said, tmp_path)}.0"
        await happened(pool.client, job, JobStarted)
        async with asyncio.timeout(PATIENCE_S):
            while not any((sandbox / "made").exists() for sandbox in pool.sandboxes):
                await asyncio.sleep(0.02)
        await pool.client.act("vacate", select(job_id(job)))
        await happened(pool.client, job, JobCompleted)
        assert expected == (tmp_path / "out").read_text()


async def test_a_record_of_the_sandbox_comes_back(pool: ThrowawayPool, tmp_path: Path) -> None:
    """What was there before and afterwards, and the variables; whatever else is wanted of the results."""
    (tmp_path / "given").touch()
    text = 'shell = touch made\ntransfer_input_files = given\nenvironment = "A=7"\n'
    job, _ = await ran(pool, f'{text}manifest = true\ntransfer_output_files = ""\n', tmp_path)
    cluster = job.partition(".")[0]
    place = tmp_path / f"{cluster}_0_manifest"
    before, after = (set((place / name).read_text().splitlines()) for name in ("in", "out"))
    assert {"./made", f"./{cluster}_0_manifest/"} <= after - before
    assert "./given" in before & after
    assert "A=7" in (place / "environment").read_text().splitlines()
    assert not (tmp_path / "made").exists()
    await ran(pool, f"{text}manifest_dir = about/it\n", tmp_path)
    assert {"in", "out", "environment"} == {file.name for file in (tmp_path / "about" / "it").iterdir()}
