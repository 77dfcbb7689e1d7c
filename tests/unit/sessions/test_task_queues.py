"""Task queues: that each task gets one result, whatever is said and whatever is lost."""

import asyncio
import random
import time
from collections import Counter
from typing import Any

import msgspec
import pytest

from kettle.bus.ports import RefusedError
from kettle_services.sessions.domain.state import SessionsState
from kettle_services.sessions.domain.task_queues.pieces import numbers
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.task_queues import AddTasks, CancelTasks, CreateTaskQueue, TaskWorkerAsks
from kettle_wire.events.task_queue import QueueTasksEnded, QueueTasksReturned, TaskQueueEvent
from kettle_wire.identity import user
from kettle_wire.jobs import JobId
from kettle_wire.task_queues import TaskColumns, TaskExit, TaskPlan, TaskRange

from .one_queue import OWNER, OneQueue, columns


def results(one: OneQueue) -> Counter[int]:
    """How many results each task has, by what is recorded."""
    found: Counter[int] = Counter()
    for _, event in one.events:
        if isinstance(event, QueueTasksEnded):
            again = set(event.again)
            found.update(
                number for place, number in enumerate(numbers(event.results.tasks)) if place not in again
            )
        if isinstance(event, QueueTasksReturned):
            found.update(numbers(event.failed))
    return found


@pytest.mark.parametrize("seed", range(30))
async def test_each_task_has_one_result_whatever_happens(seed: int) -> None:
    """
    Workers report, repeat what they have reported, give back, vanish and begin again, and some tasks fail.
    """
    chance = random.Random(seed)
    one = await OneQueue(60, TaskPlan(retries=2)).begun()
    attempts: dict[str, int] = dict.fromkeys(("7.0", "7.1", "8.0"), 1)
    held: dict[str, dict[int, list[int]]] = {}
    old: list[tuple[str, int, dict[int, TaskColumns]]] = []
    while not one.queue.ended:
        job = chance.choice(list(attempts))
        mine = held.setdefault(job, {})
        if chance.random() < 0.1:  # killed, and begun again
            attempts[job] += 1
            mine.clear()
            one.numbers[job] = 0
        done: dict[int, TaskColumns] = {}
        for lease, tasks in list(mine.items()):
            some = sorted(chance.sample(tasks, chance.randint(0, len(tasks))))
            if some:
                done[lease] = columns(*some, failed=[each for each in some if chance.random() < 0.2])
                mine[lease] = [each for each in tasks if each not in some]
        if chance.random() < 0.1:
            mine.clear()  # what is left is given back
        if old and chance.random() < 0.3:  # what was said already, or by another run
            who, run, said = chance.choice(old)
            if run == attempts[who] and who == job:
                done = {**said, **done}
        holds = [lease for lease, tasks in mine.items() if tasks]
        orders = await one.says(job, attempts[job], done=done, holds=holds, want=chance.randint(0, 9))
        old.append((job, attempts[job], done))
        held[job] = {lease: mine[lease] for lease in holds}
        for each in orders.leases:
            assert [b"task %d" % number for number in numbers(each.tasks)] == each.texts
            held[job][each.lease] = list(numbers(each.tasks))
        queue = one.queue
        assert 60 == queue.waiting + queue.running + queue.totals.done + queue.totals.failed
    assert dict.fromkeys(range(1, 61), 1) == results(one)
    assert {} == one.state.texts.states
    again = SessionsState()
    for stream, event in one.events:
        again.apply(stream, event, one.at)
    assert one.state.queues.states == again.queues.states


async def test_a_lease_counts_for_its_worker_alone() -> None:
    """A number that is guessed, of another's job or of an earlier run records nothing."""
    one = await OneQueue(4).begun()
    await one.says("7.0", want=2)
    [lease] = one.queue.leases
    tasks = [each for piece in one.queue.leases[lease].pieces for each in range(piece.first, piece.last + 1)]
    before = list(one.events)
    for job, run, number in (("8.0", 1, lease), ("7.0", 1, lease + 1), ("8.0", 7, lease)):
        await one.says(job, run, done={number: columns(*tasks)}, holds=[lease])
    assert before == one.events
    assert 0 == one.queue.totals.done


async def test_a_job_of_somebody_else_gets_nothing() -> None:
    """The shadow says whose job it is; that it names the queue is no right."""
    one = await OneQueue(4).begun()
    with pytest.raises(RefusedError, match="works for no task queue of its owner") as refused:
        await one.says("9.0", owner="mallory", want=4)
    assert RefusalCode.DENIED == refused.value.code
    assert {} == one.queue.leases


async def test_a_report_that_comes_late_is_refused() -> None:
    """One of an earlier run of the job, and one with a number that was heard already."""
    one = await OneQueue(8).begun()
    await one.says("7.0", 2, want=2, number=5)
    with pytest.raises(RefusedError, match="has begun again"):
        await one.says("7.0", 1, want=2)
    with pytest.raises(RefusedError, match="a later report"):
        await one.says("7.0", 2, want=2, number=5)
    assert 1 == len(one.queue.leases)


async def test_the_task_that_ends_its_worker_is_found_and_no_other_is_given_up() -> None:
    """Leases become smaller until it is alone."""
    one, runs = await OneQueue(100).begun(), 0
    while not one.queue.ended:
        runs += 1
        orders = await one.says("7.0", runs, want=100)
        for lease in orders.leases:
            tasks = list(numbers(lease.tasks))
            if 37 not in tasks:
                await one.says("7.0", runs, done={lease.lease: columns(*tasks)})
        one.numbers["7.0"] = 0
    assert dict.fromkeys(range(1, 101), 1) == results(one)
    assert (99, 1) == (one.queue.totals.done, one.queue.totals.failed)
    [gone] = [each.failed for _, each in one.events if isinstance(each, QueueTasksReturned) and each.failed]
    assert [TaskRange(37, 37)] == gone
    assert one.queue.totals.lost <= 5


async def test_a_worker_that_is_not_heard_has_lost_its_tasks() -> None:
    """It has so many seconds after each word."""
    one = await OneQueue(4, lease=10.0).begun()
    await one.says("7.0", want=4)
    one.clock = 9.0
    one.engine.look(one.queue.id)
    assert 2 == one.queue.running
    await one.says("7.0", holds=[1])
    one.clock = 18.0
    one.engine.look(one.queue.id)
    assert 2 == one.queue.running
    one.clock = 19.5
    one.engine.look(one.queue.id)
    assert (0, 4, 1) == (one.queue.running, one.queue.waiting, one.queue.totals.lost)


@pytest.mark.parametrize(
    "wrong",
    [
        TaskColumns(tasks=[TaskRange(1, 2)], wall_us=[1], cpu_us=[1, 1]),
        TaskColumns(tasks=[TaskRange(2, 2), TaskRange(1, 1)], wall_us=[1, 1], cpu_us=[1, 1]),
        TaskColumns(tasks=[TaskRange(2, 1)]),
        TaskColumns(tasks=[TaskRange(1, 1)], wall_us=[1], cpu_us=[1], exits=[TaskExit(1, 1)]),
        TaskColumns(tasks=[TaskRange(1, 1)], wall_us=[1], cpu_us=[1], outputs=[b"x" * 2000]),
        TaskColumns(tasks=[TaskRange(1, 1_000_000)]),
    ],
)
async def test_a_report_that_makes_no_sense_is_refused(wrong: TaskColumns) -> None:
    """It leaves nothing in the record."""
    one = await OneQueue(4).begun()
    await one.says("7.0", want=2)
    before = list(one.events)
    with pytest.raises(RefusedError, match="lease 1: "):
        await one.says("7.0", done={1: wrong}, holds=[1])
    assert before == one.events


async def test_bytes_that_are_no_report_are_refused() -> None:
    """With what is wrong about them."""
    one = await OneQueue(1).begun()
    for body in (b"", b"{}", b'{"number": 0}', b'{"number": 1, "more": 2}', b"\xff"):
        request = TaskWorkerAsks(queue=one.queue.id, owner="ada", job=JobId(7, 0), attempt=1, body=body)
        with pytest.raises(RefusedError) as refused:
            await one.questions.asks(request, OWNER)
        assert RefusalCode.MALFORMED == refused.value.code


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"tasks": [b"ok", b"a\0b"]}, "task 2 has a NUL"),
        ({"tasks": [b" "]}, "task 1 is empty"),
        ({"tasks": [b"x" * 60_000] * 10}, "in one request"),
        ({"tasks": [b"x" * 6_000] * 2}, "more can come when some have ended"),
    ],
)
async def test_tasks_that_cannot_be_taken_are_refused(said: dict[str, Any], match: str) -> None:
    """With the number of the task, and what to do."""
    one = await OneQueue().begun()
    with pytest.raises(RefusedError, match=match):
        await one.asked.add(AddTasks(id="x", queue="fits", **said), OWNER)
    assert 0 == one.queue.tasks


async def test_how_many_queues_somebody_has_is_limited() -> None:
    """One with a name that is taken is refused, too."""
    one = await OneQueue().begun()
    with pytest.raises(RefusedError, match="you have a task queue fits already"):
        await one.asked.create(CreateTaskQueue(id="d", name="fits"), OWNER)
    for number in range(2):
        await one.carry_out(one.asked.create(CreateTaskQueue(id=f"e{number}"), OWNER))
    with pytest.raises(RefusedError, match="which is the most"):
        await one.asked.create(CreateTaskQueue(id="f"), OWNER)
    await one.carry_out(one.asked.create(CreateTaskQueue(id="g", name="fits"), user("bob")))


async def test_administrators_end_queues_of_others_and_give_them_no_tasks() -> None:
    """Tasks run as the owner: nobody else gives any."""
    one, root = await OneQueue(2).begun(), user("root")
    with pytest.raises(RefusedError, match="nobody else gives it tasks"):
        await one.asked.add(AddTasks(id="x", queue=one.queue.id, tasks=[b"id"]), root)
    await one.says("7.0", want=1)
    told = await one.carry_out(one.asked.cancel(CancelTasks(id="y", queue=one.queue.id, reason="why"), root))
    assert ("cancelled", "cancelled by root: why", 2) == (
        told.queue.outcome,
        told.queue.reason,
        told.queue.cancelled,
    )
    assert (await one.says("7.0", holds=[1])).over


async def test_what_is_kept_of_a_queue_is_small() -> None:
    """Its row is written with each event: what it holds does not grow with the tasks that are done."""
    one = await OneQueue(1_000).begun()
    while not one.queue.ended:
        orders = await one.says("7.0", want=50)
        done = {each.lease: columns(*numbers(each.tasks)) for each in orders.leases}
        await one.says("7.0", done=done)
        assert len(msgspec.msgpack.encode(one.queue)) < 1_000
    kinds = {type(event) for _, event in one.events if isinstance(event, TaskQueueEvent)}
    assert QueueTasksEnded in kinds


async def test_a_queue_that_is_over_is_forgotten_in_time() -> None:
    """After some time, or when so many others of its owner have ended."""
    one = await OneQueue(1, ended=1).begun()
    driving = asyncio.create_task(one.engine.run())
    for number in range(3):
        told = await one.carry_out(one.asked.create(CreateTaskQueue(id=f"n{number}"), OWNER))
        one.at = time.time() + number
        await one.carry_out(one.asked.cancel(CancelTasks(id=f"o{number}", queue=told.queue.id), OWNER))
        for _ in range(10):
            await asyncio.sleep(0)
    driving.cancel()
    assert 1 == sum(bool(each.ended) for each in one.engine.queues.values())
    assert "fits" in {each.name for each in one.engine.queues.values()}
