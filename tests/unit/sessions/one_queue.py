"""A task queue over a record in memory, with its owner and its workers."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle_services.sessions.domain.state import SessionsState
from kettle_services.sessions.domain.task_queues.queue import TaskQueue
from kettle_services.sessions.record import Record
from kettle_services.sessions.task_queues.access import QueueAccess
from kettle_services.sessions.task_queues.commands import QueueCommands
from kettle_services.sessions.task_queues.engine import QueueEngine
from kettle_services.sessions.task_queues.workers import WorkerQuestions
from kettle_wire.commands.task_queues import (
    AddTasks,
    CreateTaskQueue,
    LeaseReport,
    TaskWorkerAsks,
    WorkerOrders,
    WorkerReport,
)
from kettle_wire.endpoint import Position
from kettle_wire.events import Event, decode, encode
from kettle_wire.identity import user
from kettle_wire.jobs import JobId
from kettle_wire.task_queues import TaskColumns, TaskExit, TaskPlan, TaskRange

OWNER = user("ada")


class OneQueue:
    """Folds what is decided at once, and keeps it."""

    def __init__(
        self, tasks: int = 0, plan: TaskPlan | None = None, *, lease: float = 60.0, ended: int = 200
    ) -> None:
        self.state = SessionsState()
        self.shard: Any = SimpleNamespace(frame=0, name="sessions.schedd")
        self.events: list[tuple[str, Event]] = []
        self.at = 1_000.0
        self.clock = 0.0
        self.engine = QueueEngine(
            cast("Any", self), lease=lease, keep=100.0, most=ended, clock=lambda: self.clock
        )
        self.access = QueueAccess(self.engine, lambda caller: caller.name == "root")
        self.asked = QueueCommands(self.engine, self.access, limit=3, most=10_000)
        self.questions = WorkerQuestions(self.engine)
        self.numbers: dict[str, int] = {}
        self.plan, self.first = plan or TaskPlan(), tasks

    async def begun(self) -> "OneQueue":
        """With its tasks, closed."""
        function = b"f" if self.plan.kind == "functions" else b""
        create = CreateTaskQueue(id="c", name="fits", plan=self.plan, function=function)
        await self.carry_out(self.asked.create(create, OWNER))
        if self.first:
            texts = [b"task %d" % number for number in range(1, self.first + 1)]
            await self.carry_out(
                self.asked.add(AddTasks(id="a", queue="fits", tasks=texts, close=True), OWNER)
            )
        return self

    @property
    def queue(self) -> TaskQueue:
        """As it is now."""
        [queue] = self.state.queues.states.values()
        return queue

    def record(self, changes: Sequence[tuple[str, Event]]) -> None:
        """Fold what is decided, as it comes from the log."""
        self.shard.frame += 1
        for stream, event in changes:
            self.events.append((stream, event))
            self.state.apply(stream, decode(encode(event)), self.at)

    async def carry_out(self, deciding: Any) -> Any:
        """What a command answers."""
        decision = await deciding
        self.record(decision.changes)
        if decision.effect is not None:
            decision.effect()
        return decision.reply(Position("sessions.schedd", self.shard.frame))

    async def says(
        self,
        job: str = "7.0",
        attempt: int = 1,
        *,
        owner: str = "ada",
        number: int | None = None,
        done: dict[int, TaskColumns] | None = None,
        **said: Any,
    ) -> WorkerOrders:
        """What a worker hears."""
        self.numbers[job] = number or self.numbers.get(job, 0) + 1
        results = [LeaseReport(lease=lease, results=columns) for lease, columns in (done or {}).items()]
        report = WorkerReport(number=self.numbers[job], results=results, **said)
        request = TaskWorkerAsks(
            queue=self.queue.id,
            owner=owner,
            job=JobId.parse(job),
            attempt=attempt,
            body=msgspec.json.encode(report),
        )
        answer = await self.carry_out(self.questions.asks(request, cast("Any", None)))
        return msgspec.json.decode(answer.body, type=WorkerOrders)


class LoggedQueue(OneQueue):
    """One whose events are committed to a log, a moment after they are folded."""

    def __init__(self, recorded: Record, tasks: int, plan: TaskPlan | None) -> None:
        super().__init__(tasks, plan)
        self._recorded = recorded
        self.state, self.shard = recorded.state, recorded.shard

    def record(self, changes: Sequence[tuple[str, Event]]) -> None:
        """Fold what is decided, and have it committed."""
        if changes:
            self._recorded.record(changes)


@asynccontextmanager
async def logged(log: MemoryLog, tasks: int = 0, plan: TaskPlan | None = None) -> AsyncGenerator[LoggedQueue]:
    """With its tasks, closed."""
    async with Shard.own(log, "sessions.schedd", owner="test") as shard:
        record = await Record.recall(log, MemoryWorkingSet(log), shard, SessionsState(), interval=1)
        running = asyncio.create_task(shard.run())
        queue = LoggedQueue(record, tasks, plan)
        await queue.begun()
        yield queue
        running.cancel()


def columns(*tasks: int, failed: Sequence[int] = ()) -> TaskColumns:
    """Results of tasks that ran for a millisecond each."""
    exits = [TaskExit(place, 1, "no") for place, number in enumerate(tasks) if number in failed]
    return TaskColumns(
        tasks=[TaskRange(each, each) for each in tasks],
        wall_us=[1000] * len(tasks),
        cpu_us=[500] * len(tasks),
        exits=exits,
    )
