"""Task queues on a pool: many small commands and calls of functions, which ordinary jobs work through."""

import asyncio
import base64
import os
import pty
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kettle.client import Client, CommandRefusedError, SyncClient, select
from kettle.client.task_results import TaskResult
from kettle.task_queues.executor import TaskExecutor, TaskFailedError
from kettle.task_queues.worker_jobs import WorkerJobs, description
from kettle.testing.commands.running import KETTLE
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.cli.__main__ import main
from kettle_wire.commands.task_queues import TaskQueueView
from kettle_wire.events import JobHeld
from kettle_wire.task_queues import TaskPlan

from .asking import patiently
from .evidence import Evidence
from .job_log import written
from .persons import somebody
from .waiting import happened

MANY = 10_000 if os.environ.get("KETTLE_TEST_LONG") else 1_000
SMALL = WorkerJobs(memory=16, disk=1, python=sys.executable)


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    # Jobs run this Python, which an account of a slot may not reach.
    return {
        "settings": {
            "startd": {"num_cpus": 4, "memory": 2000, "job_account": "own"},
            "gateway": {"rest": True},
        }
    }


async def begun(client: Client, queue: TaskQueueView, workers: int = 1, more: tuple[str, ...] = ()) -> int:
    """The cluster of the workers of a queue."""
    jobs = WorkerJobs(workers=workers, memory=16, disk=1, more=more)
    return (await client.submit(description(queue.id, queue.name, jobs))).cluster


async def ended(client: Client, queue: TaskQueueView) -> list[TaskResult]:
    """All results of a queue, by their numbers, when it is over."""
    async with asyncio.timeout(PATIENCE_S):
        shown = await client.tasks.wait(queue.id)
    assert ("ended", "done") == (shown.state, shown.outcome)
    found = [each async for each in client.tasks.results(queue.id)]
    return sorted(found, key=lambda each: each.task)


async def first_output(client: Client, queue: TaskQueueView) -> bytes:
    """What the first task printed, as soon as that is on record."""
    async with asyncio.timeout(PATIENCE_S):
        async for each in client.tasks.results(queue.id, follow=True):
            if each.task == 1:
                return each.output
    raise AssertionError("the queue is over, and its first task has no result")


def parent(pid: int) -> int:
    """The parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def test_each_of_many_commands_has_one_result(pool: ThrowawayPool, evidence: Evidence) -> None:
    """One of two workers is killed in the middle, and so is the service."""
    client, begun_by, go = pool.client, evidence.directory / "begun", evidence.directory / "go"
    # However fast they are and however late it is noticed, this one is run at that moment.
    middle = f"echo $PPID >>{begun_by}; until [ -e {go} ]; do sleep 0.05; done"
    queue = await client.tasks.create(TaskPlan(), [middle.encode(), *[b"true"] * (MANY - 1)])
    await begun(client, queue, 2)
    lane = int((await written(begun_by, "\n")).split()[0])
    os.kill(parent(lane), signal.SIGKILL)
    died = pool.kill("sessions")
    await pool.restarted("sessions", after=died)
    go.touch()
    results = await ended(client, queue)
    assert list(range(1, MANY + 1)) == [each.task for each in results]
    assert all(each.ok for each in results)
    shown = await client.tasks.show(queue.id)
    assert (MANY, 0, 1) == (shown.done, shown.failed, shown.lost)
    assert 2 == len(begun_by.read_text().split())


async def test_exits_and_outputs_are_recorded(client: Client) -> None:
    """A command's exit, its signal, and what it printed; one is run again until it ends well."""
    commands = [
        b"exit 3",
        b"kill -9 $$",
        b"echo out; echo err >&2",
        b"head -c 3000 /dev/zero",
        b"no-such-program",
        b"test -e once || { touch once; exit 1; }",
        b"(sleep 100 & echo $! > left) && true",
    ]
    queue = await client.tasks.create(TaskPlan(retries=1), commands)
    await begun(client, queue)
    results = await ended(client, queue)
    assert [3, -9, 0, 0, 127, 0, 0] == [each.exit for each in results]
    assert b"out\nerr\n" == results[2].output
    assert (1024, True) == (len(results[3].output), results[3].cut)
    shown = await client.tasks.show(queue.id)
    assert 4 == shown.again  # each of those that failed, once
    explained = await client.tasks.explain(queue.id, 1)
    assert ("failed", "it ended with exit code 3") == (explained.state, explained.why)


async def test_a_command_that_takes_too_long_is_killed(client: Client) -> None:
    """It is tried again as any that fails, and its result says why."""
    queue = await client.tasks.create(TaskPlan(wall=0.5, retries=1), [b"sleep 100"])
    await begun(client, queue)
    (result,) = await ended(client, queue)
    assert (-9, "it was killed after 0.5 s, its time limit") == (result.exit, result.reason)
    assert 0.5 <= result.wall
    assert 1 == (await client.tasks.show(queue.id)).again


async def test_functions_are_called_and_those_that_end_their_process_fail(pool: ThrowawayPool) -> None:
    """Values come in the order of the arguments; a call that fails says why."""

    def work() -> None:
        with SyncClient.connect(environ={**os.environ, "KETTLE_HOME": str(pool.home)}) as client:
            tasks = TaskExecutor(client, SMALL)
            assert [2**each for each in range(500)] == list(tasks.map(pow, [2] * 500, range(500)))
            with pytest.raises(TaskFailedError, match="ValueError"):
                list(tasks.map(int, ["1", "x"]))
            with pytest.raises(TaskFailedError, match="exit code 7"):
                list(tasks.map(os._exit, [7]))

    await asyncio.to_thread(work)


async def test_lines_are_answered_by_a_program_that_lives_on(client: Client) -> None:
    """One process answers them all, and is started again when it has ended."""
    plan = TaskPlan(
        kind="lines", program=["/bin/sh", "-c", 'while read x; do [ $x = end ] && exit 4; echo "$x $$"; done']
    )
    queue = await client.tasks.create(plan, [b"a", b"b", b"end", b"c"])
    await begun(client, queue)
    results = await ended(client, queue)
    pids = [each.output.split()[-1] for each in results if each.ok]
    assert [b"a", b"b", b"c"] == [each.output.split()[0] for each in results if each.ok]
    assert [pids[0]] * 2 == pids[:2]
    assert pids[1] != pids[2]
    assert (4, "the program has ended without an answer") == (results[2].exit, results[2].reason)


async def test_a_queue_is_its_owners_by_every_way(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Nobody else sees it, gives it tasks, ends it, or has a job that gets its tasks."""
    client = pool.client
    queue = await client.tasks.create(TaskPlan(), [b"true"])
    async with somebody(pool, "mallory", tmp_path) as mallory:
        for asked in (
            mallory.tasks.show(queue.id),
            mallory.tasks.show(queue.name),
            mallory.tasks.add(queue.id, [b"id"]),
            mallory.tasks.cancel(queue.id),
            mallory.tasks.page(queue.id),
            mallory.tasks.explain(queue.id, 1),
        ):
            with pytest.raises(CommandRefusedError, match="there is no task queue"):
                await asked
        with pytest.raises(CommandRefusedError, match="administrators"):
            await mallory.tasks.list(everybody=True)
        assert [] == await mallory.tasks.list()
    await client.tasks.cancel(queue.id)


async def test_a_queue_that_is_cancelled_ends_what_runs(client: Client) -> None:
    """Its workers end, and nothing of it is run."""
    queue = await client.tasks.create(TaskPlan(), [b"true", *[b"sleep 1000"] * 5])
    cluster = await begun(client, queue, 1)
    await first_output(client, queue)
    shown = await client.tasks.cancel(queue.id, "enough")
    assert ("cancelled", 5, 1) == (shown.outcome, shown.cancelled, shown.done)
    async with asyncio.timeout(PATIENCE_S):
        await client.wait(select(cluster))
    with pytest.raises(CommandRefusedError, match="is over"):
        await client.tasks.add(queue.id, [b"true"])


async def test_over_http(pool: ThrowawayPool) -> None:
    """A queue is begun, though it is asked for twice, gets more tasks, and its results are read."""
    home = pool.home / "gateway"
    headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}"}
    address, once = (
        f"http://127.0.0.1:{(home / 'port').read_text().strip()}/v2/task-queues",
        {"Idempotency-Key": "queue"},
    )
    async with aiohttp.ClientSession(headers=headers, middlewares=(patiently,)) as http:
        new = {"name": "http", "tasks": ["echo a"]}
        first, second = [await (await http.post(address, json=new, headers=once)).json() for _ in range(2)]
        assert (first["id"], 1) == (second["id"], second["tasks"])
        added = await (
            await http.post(f"{address}/http/tasks", json={"tasks": ["exit 2"], "close": True})
        ).json()
        assert ("closed", 2) == (added["state"], added["waiting"])
        queue = await pool.client.tasks.show(first["id"])
        await begun(pool.client, queue)
        await ended(pool.client, queue)
        page = await (await http.get(f"{address}/{queue.id}/results")).json()
        assert not page["more"]
        outputs = [
            base64.b64decode(each)
            for batch in page["batches"]
            for each in batch["results"].get("outputs", ())
        ]
        assert b"a\n" in outputs
        task = await (await http.get(f"{address}/{queue.id}/tasks/2")).json()
        assert ("failed", "it ended with exit code 2") == (task["state"], task["why"])
        assert 404 == (await http.get(f"{address}/{queue.id}/tasks/3")).status
        listed = await (await http.get(address, params={"ended": "true"})).json()
        assert queue.id in [each["id"] for each in listed["queues"]]
        async with http.post(f"{address}/{queue.id}/tasks", json={"tasks": ["id"]}) as refused:
            assert 409 == refused.status


async def test_at_a_terminal(
    pool: ThrowawayPool, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file to results, and why it is so."""
    monkeypatch.setenv("KETTLE_HOME", str(pool.home))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tasks.txt"
    file.write_text("# two\necho one\nexit 5\n")

    async def typed(*words: str, status: int = 0) -> str:
        found = await asyncio.to_thread(main, ["tasks", *words])
        said = "".join(capfd.readouterr())
        assert status == found, said
        return said

    small = ("--memory", "16", "--disk", "1")
    assert "no worker" in await typed("submit", str(file), "--as", "fits", "--workers", "0")
    assert "No job works for it" in await typed("why", "fits")
    assert "Task 2 is waiting" in await typed("why", "fits.2")
    await typed("workers", "fits", "1", *small)
    assert "1 failed" in await typed("wait", "fits", status=1)
    assert "one" in await typed("results", "fits")
    assert "one" not in await typed("results", "fits", "--failed")
    assert "exit code 5" in await typed("show", "fits.2")
    assert "has ended (done)" in await typed("show", "fits")
    assert "fits" in await typed("list", "--ended")
    again = ("submit", str(file), "--again", "fits", "--workers", "0")
    assert "has 1 task, and no worker" in await typed(*again, "--as", "left")
    assert "is not over" in await typed("submit", str(file), "--again", "left", status=1)
    assert "exit 5" in await typed("show", "left.1")
    file.write_text("exit 5\n")
    assert "had 2 tasks and the file has 1" in await typed(*again, status=1)
    file.write_bytes(b"ok\n\xff\n")
    assert "tasks.txt:2: byte 1 of the line is no UTF-8" in await typed("submit", str(file), status=2)
    assert "no task queue nothing" in await typed("show", "nothing", status=1)


async def test_a_person_sees_how_far_a_queue_is(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A bar while the tasks are recorded, and one until all have a result; the words at the end stay."""
    file = tmp_path / "tasks.txt"
    file.write_text("true\ntrue\n")
    ours, theirs = pty.openpty()
    words = ("tasks", "submit", str(file), "--as", "bars", "--memory", "16", "--disk", "1", "--wait")
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "TERM": "xterm"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *KETTLE, *words, stderr=theirs, env=environ
    )
    os.close(theirs)
    async with asyncio.timeout(PATIENCE_S):
        said = await asyncio.to_thread(whole, ours)
        assert 0 == await process.wait(), said
    for bar in ("recorded", "bars", "2/2"):
        assert bar in said
    assert "Queue bars has ended (done): 2 tasks done" in said


def whole(terminal: int) -> str:
    """All that is written to a terminal."""
    with os.fdopen(terminal, "rb", buffering=0) as end:
        said = bytearray()
        with suppress(OSError):  # EIO: nobody has it open any more
            while data := end.read(65536):
                said += data
    return said.decode()


async def test_a_worker_that_cannot_run_its_lanes_is_held(pool: ThrowawayPool) -> None:
    """
    It says why, before it has a task that would seem to have been the cause; the next worker does all of them.
    """
    client = pool.client
    queue = await client.tasks.create(TaskPlan(), [b"true"])
    for python in ("/nowhere/python3", "/bin/false"):
        jobs = WorkerJobs(memory=16, disk=1, python=python)
        cluster = (await client.submit(description(queue.id, queue.name, jobs))).cluster
        held = await happened(client, f"{cluster}.0", JobHeld)
        assert f"{python}, which is to run the tasks, cannot be run" in held.reason
    await begun(client, queue)
    (result,) = await ended(client, queue)
    assert result.ok
    assert (0, 0) == ((shown := await client.tasks.show(queue.id)).again, shown.lost)


@pytest.fixture
def client(pool: ThrowawayPool) -> Client:
    return pool.client
