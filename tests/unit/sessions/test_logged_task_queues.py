"""Task queues and their log: how its events are numbered, and what is read from it."""

from collections.abc import AsyncIterator
from typing import Any

from kettle.audit.event_checks import Recorded, Walk
from kettle.audit.report import AuditReport
from kettle.eventsourcing.memory import MemoryLog
from kettle_services.sessions.domain.state import texts_stream
from kettle_services.sessions.domain.task_queues.queue import FUNCTION
from kettle_services.sessions.task_queues.results import TaskResults
from kettle_wire.commands.task_queues import CancelTasks, ExplainTask, ReadTaskResults
from kettle_wire.events import TaskTextsDropped, decode
from kettle_wire.frames import Frame
from kettle_wire.task_queues import TaskPlan

from .one_queue import OWNER, LoggedQueue, columns, logged


class SlowLog(MemoryLog):
    """Task 2 of a queue ends while its log is read."""

    queue: LoggedQueue | None = None

    async def read(self, *said: Any, **more: Any) -> AsyncIterator[Frame]:
        async for frame in super().read(*said, **more):
            yield frame
        if self.queue is not None and not self.queue.queue.ended:
            await self.queue.says("8.0", done={2: columns(2)})


async def test_the_function_of_a_queue_is_dropped_once() -> None:
    """
    Whatever is said to a queue that is over: its stream has ended, and what came there would begin another one.
    """
    log, report = MemoryLog(), AuditReport.empty()
    async with logged(log, 1, TaskPlan(kind="functions")) as one:
        [lease] = (await one.says("7.0", want=1)).leases
        assert (await one.says("7.0", done={lease.lease: columns(1)})).over
        assert (await one.says("8.0", want=1)).over
        await one.carry_out(one.asked.cancel(CancelTasks(id="z", queue=one.queue.id), OWNER))
        await one.shard.committed()
        function = texts_stream(one.queue.id, FUNCTION)
    walk, dropped = Walk("sessions.schedd", report), 0
    async for frame in log.read("sessions.schedd"):
        for place, entry in enumerate(frame.entries):
            walk.feed(Recorded(frame.position + place, frame.number, frame.epoch, frame.at, entry))
            dropped += entry.stream == function and isinstance(decode(entry.data), TaskTextsDropped)
    walk.finish()
    assert [] == [f"{each.name}: {each.first}" for each in report.checks if each.problems]
    assert 1 == dropped


async def test_who_hears_that_a_queue_is_over_has_all_results() -> None:
    """
    The last one is recorded while the log is read: this page or the next one has it, and the reader is told to go on.
    """
    log = SlowLog()
    async with logged(log, 2) as one:
        await one.says("7.0", want=1)
        await one.says("8.0", want=1)
        await one.says("7.0", done={1: columns(1)})
        log.queue, results = one, TaskResults(one.engine, one.access, log)
        found, after, goes_on = list[int](), 0, True
        while goes_on:
            page = await results.page(ReadTaskResults(queue=one.queue.id, after=after, wait=60.0), OWNER)
            found += [each.first for batch in page.batches for each in batch.results.tasks]
            after, goes_on = page.after, page.more or page.queue.state != "ended"
    assert [1, 2] == found


async def test_a_task_that_has_just_ended_is_explained_by_its_result() -> None:
    """What is folded is waited for until the log has it."""
    log = MemoryLog()
    async with logged(log, 1) as one:
        await one.says("7.0", want=1)
        await one.says("7.0", done={1: columns(1)})
        results = TaskResults(one.engine, one.access, log)
        explained = await results.explain(ExplainTask(queue=one.queue.id, task=1), OWNER)
    assert ("done", "it ended well") == (explained.state, explained.why)
