"""A task queue over a record in memory, with its owner and its workers."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from kettle_services.sessions.domain.state import SessionsState
from kettle_services.sessions.domain.task_queues.queue import TaskQueue
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
        self.shard = SimpleNamespace(frame=0, name="sessions.schedd")
        self.events: list[tuple[str, Event]] = []
        self.at = 1_000.0
        self.clock = 0.0
        self.engine = QueueEngine(
            cast("Any", self), lease=lease, keep=100.0, most=ended, clock=lambda: self.clock
        )
        access = QueueAccess(self.engine, lambda caller: caller.name == "root")
        self.asked = QueueCommands(self.engine, access, limit=3, most=10_000)
        self.questions = WorkerQuestions(self.engine)
        self.numbers: dict[str, int] = {}
        self.plan, self.first = plan or TaskPlan(), tasks

    async def begun(self) -> "OneQueue":
        """With its tasks, closed."""
        await self.carry_out(self.asked.create(CreateTaskQueue(id="c", name="fits", plan=self.plan), OWNER))
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


def columns(*tasks: int, failed: Sequence[int] = ()) -> TaskColumns:
    """Results of tasks that ran for a millisecond each."""
    exits = [TaskExit(place, 1, "no") for place, number in enumerate(tasks) if number in failed]
    return TaskColumns(
        tasks=[TaskRange(each, each) for each in tasks],
        wall_us=[1000] * len(tasks),
        cpu_us=[500] * len(tasks),
        exits=exits,
    )
