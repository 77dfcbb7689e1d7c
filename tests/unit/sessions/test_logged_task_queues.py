"""Task queues and their log: how its events are numbered, and what is read from it."""

from kettle.audit.event_checks import Recorded, Walk
from kettle.audit.report import AuditReport
from kettle.eventsourcing.memory import MemoryLog
from kettle_services.sessions.domain.state import texts_stream
from kettle_services.sessions.domain.task_queues.queue import FUNCTION
from kettle_wire.commands.task_queues import CancelTasks
from kettle_wire.events import TaskTextsDropped, decode
from kettle_wire.task_queues import TaskPlan

from .one_queue import OWNER, columns, logged


async def test_the_function_of_a_queue_is_dropped_once() -> None:
    """Whatever is said to a queue that is over: its stream has ended, and what came there would begin another one."""
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
