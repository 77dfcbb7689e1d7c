"""
Several tasks in one job: in their order, in one sandbox, with retries, sidecars and containers of their own.
"""

import asyncio
import io
import json
import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.client import select
from kettle.testing.container_images import tar_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.files import FileServer, webdav
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobCompleted, JobContinued, JobStepped, JobSuspended, JobVacated
from kettle_wire.jobs import JobId
from kettle_wire.tasks import Step

from .evidence import Evidence
from .job_log import written
from .waiting import happened

WITHIN_S = PATIENCE_S


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    # A task that is asked to end has all the time that a busy machine may need for it.
    return {"settings": {"startd": {"machine_max_vacate_time": 600.0}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    with webdav(tmp_path_factory.mktemp("served")) as serving:
        yield serving


def description(tasks: dict[str, Any], more: str = "") -> str:
    """A submit description of one job with these tasks."""
    return (
        f"executable = tasks\ntransfer_executable = false\noutput = out\nerror = err\nlog = log\n{more}"
        f"+KettleTasks = {json.dumps(json.dumps(tasks))}\nqueue\n"
    )


def shell(script: str, **more: Any) -> dict[str, Any]:
    """A task that is a line of the shell."""
    return {"cmd": ["/bin/sh", "-c", script], **more}


async def run(
    pool: ThrowawayPool, place: Path, tasks: dict[str, Any], more: str = ""
) -> tuple[JobCompleted, list[Step]]:
    """Run them to their end: what was recorded of that, and of their steps."""
    submitted = await pool.client.submit(description(tasks, more), cwd=place)
    job = JobId(submitted.cluster, 0)
    completed = await happened(pool.client, job, JobCompleted)
    return completed, await stepped(pool, job)


async def stepped(pool: ThrowawayPool, job: JobId) -> list[Step]:
    """The steps that are recorded of a job."""
    events = [each.event for each in await pool.client.events(job)]
    return [step for event in events if isinstance(event, JobStepped) for step in event.steps]


def ends(steps: list[Step]) -> list[tuple[str, int | None, int, str, int | None]]:
    """How each step ended that is one of a task."""
    return [
        (step.kind, step.task, step.retry, step.outcome, step.code)
        for step in steps
        if step.kind in {"task", "sidecar"} and step.outcome != "begun"
    ]


async def test_tasks_share_a_sandbox_and_a_failing_one_is_tried_again(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The second task fails once and is tried again in its place, beside a sidecar that never ends by itself, while what the first one
    has left ends with it; what each says comes in their order, and each step is recorded and in its log.
    """
    tasks = {
        "tasks": [
            shell("trap 'exit 0' TERM; while :; do echo up > beside; sleep 0.05; done", type="sidecar"),
            shell(
                "until test -e beside; do sleep 0.02; done; sleep 600 & echo $! > left; "
                "echo one > made; echo $PROMINENCE_TASK_NUM"
            ),
            shell(
                "kill -0 $(cat left) || cat made; test -e again || { touch again; exit 3; }; echo $WHO",
                env={"WHO": "two's"},
                retries=2,
            ),
            shell("echo three", stdout="own"),
        ],
    }
    completed, steps = await run(pool, tmp_path, tasks)

    assert completed.exit.code == 0
    assert (tmp_path / "out").read_text() == "1\none\none\ntwo's\nthree\n"
    assert (tmp_path / "own").read_text() == "three\n"
    (*tries, ended) = ends(steps)
    assert tries == [
        ("task", 1, 0, "done", 0),
        ("task", 2, 0, "failed", 3),
        ("task", 2, 1, "done", 0),
        ("task", 3, 0, "done", 0),
    ]
    assert ended[:4] == ("sidecar", 0, 0, "done")
    await written(tmp_path / "log", "task 2, 1 retry, exited with code 0")


async def test_the_first_failure_ends_the_job_unless_failures_are_ignored(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    After a task that fails the next does not run, and the job exits with 1; with `ignore_failures` it does, and with
    `success_on_failure` the job exits with 0. A program that is not there is a failure as well.
    """
    tasks = [{"cmd": ["no-such-program"]}, shell("echo second")]
    completed, steps = await run(pool, tmp_path, {"tasks": tasks, "retries": 1})
    assert completed.exit.code == 1
    assert ends(steps) == [("task", 0, 0, "failed", None), ("task", 0, 1, "failed", None)]
    assert "no-such-program" in steps[0].reason
    assert "" == (tmp_path / "out").read_text()

    lenient = {"tasks": tasks, "ignore_failures": True, "success_on_failure": True}
    completed, steps = await run(pool, tmp_path, lenient)
    assert completed.exit.code == 0
    assert ends(steps) == [("task", 0, 0, "failed", None), ("task", 1, 0, "done", 0)]
    assert "second\n" == (tmp_path / "out").read_text()


async def test_an_image_that_is_not_what_it_should_be_is_not_run(
    pool: ThrowawayPool, tmp_path: Path, server: FileServer
) -> None:
    """
    One from a URL is compared with its digest before any task runs; the job has failed, and the step says why.
    """
    server.write("image.tar", b"no image")
    image = {"image": f"http://127.0.0.1:{server.port}/image.tar", "sha256": "0" * 64}
    completed, steps = await run(pool, tmp_path, {"tasks": [shell("true"), shell("true", **image)]})

    assert completed.exit.code == 1
    assert [("fetch", "failed")] == [(step.kind, step.outcome) for step in steps]
    assert "its SHA-256 is" in steps[0].reason


async def test_a_task_that_ignores_the_end_of_its_time_is_killed(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    When `wall_time` is over the running task is asked to end, and killed where it does not, as here by a signal that nobody
    handles; the next one does not run, and the results are sent all the same.
    """
    (tmp_path / "made").write_text("before\n")
    tasks = {
        "tasks": [{"cmd": ["/bin/sleep", "600"]}, shell("touch never")],
        "wall_time": 2,
        "outputs": [{"name": "m*e"}],
    }
    more = "transfer_input_files = made\nkill_sig = SIGURG\njob_max_vacate_time = 1\n"
    completed, steps = await run(pool, tmp_path, tasks, more)

    assert completed.exit.code == 1
    (*begun, ended) = [(step.outcome, step.signal) for step in steps if step.kind == "task"]
    assert ended == ("ended", 9 if begun else None)
    assert "wall_time" in steps[-1].reason
    assert not (tmp_path / "never").exists()


async def test_a_job_is_suspended_and_held_with_its_task_and_its_sidecar(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    Both stop and go on; at the end the running task hears the soft signal, no further task is begun, nothing is left, and what was
    done before is recorded.
    """
    at = evidence.directory
    tasks = {
        "tasks": [
            shell("true"),
            shell(
                f"echo $$ > {at}/sidecar; while :; do echo x >> {at}/ticks; sleep 0.05; done", type="sidecar"
            ),
            shell(f"trap 'touch {at}/heard; exit 0' TERM; touch {at}/runs; while :; do sleep 0.05; done"),
            shell(f"touch {at}/never"),
        ],
    }
    submitted = await pool.client.submit(description(tasks), cwd=evidence.work)
    job = JobId(submitted.cluster, 0)
    async with asyncio.timeout(WITHIN_S):
        while not all((at / name).exists() for name in ("runs", "ticks", "sidecar")):
            await asyncio.sleep(0.05)
    await pool.client.act("suspend", select(submitted.cluster))
    await happened(pool.client, job, JobSuspended)
    async with asyncio.timeout(WITHIN_S):  # what the kernel did for it just then it may do to its end
        before = ""
        while before != (before := (at / "ticks").read_text()):
            await asyncio.sleep(0.2)
    await pool.client.act("continue", select(submitted.cluster))
    await happened(pool.client, job, JobContinued)
    await pool.client.act("hold", select(submitted.cluster))
    await happened(pool.client, job, JobVacated)

    assert (at / "heard").exists()
    assert not (at / "never").exists()
    assert not Path(f"/proc/{(at / 'sidecar').read_text().strip()}").exists()
    steps = await stepped(pool, job)
    assert ends(steps)[0] == ("task", 0, 0, "done", 0)
    assert ends(steps)[1][:4] == ("task", 2, 0, "ended")
    await pool.client.remove(select(submitted.cluster))


async def test_what_was_done_is_recorded_before_its_machine_is_lost(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    The end of a task is recorded while the next one runs; when its starter is killed there, the job runs again from its first task,
    and its ad has the steps of that attempt alone.
    """
    at = evidence.directory
    tasks = {
        "tasks": [
            shell("true"),
            shell(
                f"echo $PPID > {at}/new; mv {at}/new {at}/starter; until test -e {at}/go; do sleep 0.05; done"
            ),
        ]
    }
    submitted = await pool.client.submit(description(tasks), cwd=evidence.work)
    job = JobId(submitted.cluster, 0)
    done = ("task", 0, 0, "done", 0)
    async with asyncio.timeout(WITHIN_S):
        while done not in ends(await stepped(pool, job)) or not (at / "starter").exists():
            await asyncio.sleep(0.05)
    os.kill(int((at / "starter").read_text()), signal.SIGKILL)
    await happened(pool.client, job, JobVacated)
    (at / "go").touch()
    completed = await happened(pool.client, job, JobCompleted)
    (ad,) = await pool.client.history(select(submitted.cluster))

    assert (2, 0) == (completed.attempt, completed.exit.code)
    assert [done, done, ("task", 1, 0, "done", 0)] == ends(await stepped(pool, job))
    assert [done, ("task", 1, 0, "done", 0)] == ends(
        msgspec.json.decode(str(ad["KettleSteps"]), type=list[Step])
    )


async def test_a_moldable_job_takes_what_its_slot_has(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Cores that are asked for by an expression on those of the slot are what the tasks are told."""
    more = "request_cpus = ifThenElse(TARGET.Cpus >= 2, 2, 1)\n"
    await run(pool, tmp_path, {"tasks": [shell("echo $PROMINENCE_CPUS")]}, more)

    assert "2\n" == (tmp_path / "out").read_text()


async def test_artifacts_are_unpacked_and_results_sent(
    pool: ThrowawayPool, tmp_path: Path, server: FileServer
) -> None:
    """
    An archive that is fetched by URL is unpacked before the first task; a directory is sent as .tgz to its URL, a file comes home,
    and a result that is not there fails the job while the others are sent.
    """
    source = tmp_path / "source" / "data"
    source.mkdir(parents=True)
    (source / "words").write_text("b\na\n")
    at = f"http://127.0.0.1:{server.port}"
    server.write("data.tgz", tar_of(source.parent, mode="w:gz"))
    server.write("hello", b"#!/bin/sh\necho hello\n")
    tasks = {
        "artifacts": [{"url": f"{at}/data.tgz"}, {"url": f"{at}/hello", "executable": True}],
        "tasks": [{"cmd": ["./hello"]}, shell("mkdir made; sort words > made/sorted; echo x > x", workdir="data")],
        "outputs": [
            {"name": "data/made", "directory": True, "url": f"{at}/made.tgz"},
            {"name": "none*", "url": f"{at}/none"},
            {"name": "data/x"},
        ],
    }  # fmt: skip
    completed, steps = await run(pool, tmp_path, tasks)
    sent = server.read("made.tgz")

    assert completed.exit.code == 1
    assert (tmp_path / "out").read_text() == "hello\n"
    assert (tmp_path / "x").read_text() == "x\n"
    assert not (tmp_path / "words").exists()
    with tarfile.open(fileobj=io.BytesIO(sent or b"")) as packed:
        assert sorted(packed.getnames()) == ["made", "made/sorted"]
    assert [(step.kind, step.outcome, step.name) for step in steps if step.kind in {"fetch", "send"}] == [
        ("fetch", "done", f"{at}/data.tgz"),
        ("fetch", "done", f"{at}/hello"),
        ("send", "done", "data/made"),
        ("send", "failed", "none*"),
    ]
    assert all(step.bytes for step in steps if step.kind == "fetch")
