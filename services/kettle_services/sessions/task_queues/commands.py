"""What people do with task queues: begin one, give it tasks, look at it, end it."""

import secrets
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.sessions.domain.state import texts_stream
from kettle_services.sessions.domain.task_queues.queue import FUNCTION, TaskQueue
from kettle_services.sessions.task_queues.access import QueueAccess
from kettle_services.sessions.task_queues.engine import QueueEngine
from kettle_services.sessions.task_queues.views import queue_view
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.task_queues import (
    AddTasks,
    CancelTasks,
    CreateTaskQueue,
    ListTaskQueues,
    ShowTaskQueue,
    TaskQueues,
    TaskQueueTold,
    TaskQueueView,
    TasksAdded,
)
from kettle_wire.endpoint import Position
from kettle_wire.events import Event
from kettle_wire.events.task_queue import (
    QueueCancelled,
    QueueClosed,
    QueueCreated,
    QueueTasksAdded,
    TaskQueueEvent,
    TaskTextsKept,
)
from kettle_wire.identity import Identity
from kettle_wire.task_queues import LARGEST_PART, MOST_TASKS, TaskPlan, TaskRange

_ID_BYTES: Final = 6


class QueueCommands:
    """Decides about the task queues of one engine."""

    def __init__(self, engine: QueueEngine, access: QueueAccess, *, limit: int, most: int) -> None:
        """
        `limit`: queues of one person that are not over; `most`: bytes of all tasks of one person that may be run.
        """
        self._engine = engine
        self._access = access
        self._limit = limit
        self._most = most

    async def create(self, request: CreateTaskQueue, caller: Identity) -> Decision[TaskQueueTold]:
        """A new queue, without tasks."""
        _require_sense(request.plan, request.function)
        own = [each for each in self._engine.queues.values() if each.owner == caller.name and not each.ended]
        if len(own) >= self._limit:
            raise RefusedError(
                RefusalCode.LIMIT,
                f"you have {len(own)} task queues that are not over, which is the most: cancel one of them, as "
                f"{min(own, key=lambda each: each.created).name} (kettle tasks cancel NAME)",
            )
        if request.name and any(each.name == request.name for each in own):
            raise RefusedError(
                RefusalCode.UNACCEPTABLE,
                f"you have a task queue {request.name} already: give this one another name, or cancel that one "
                f"(kettle tasks cancel {request.name})",
            )
        queue = secrets.token_hex(_ID_BYTES)
        created = QueueCreated(
            queue=queue,
            owner=caller.name,
            name=request.name or f"tasks-{queue}",
            plan=request.plan,
            followed=self._engine.record.shard.frame,
        )
        function = TaskTextsKept(first=0, texts=[request.function])
        more = [(texts_stream(queue, FUNCTION), function)] if request.plan.kind == "functions" else []
        return self._decided(queue, [created], more)

    async def add(self, request: AddTasks, caller: Identity) -> Decision[TasksAdded]:
        """More tasks of an own queue."""
        queue = self._access.owned(request.queue, caller)
        if queue.state != "open":
            how = "is over" if queue.ended else "takes no more tasks"
            raise RefusedError(RefusalCode.SESSION_OVER, f"task queue {queue.name} {how}: begin another one")
        facts, more, first = list[TaskQueueEvent](), list[tuple[str, Event]](), 0
        if request.tasks:
            size = self._require_room(queue, request.tasks)
            part, first = queue.added + 1, queue.tasks + 1
            tasks = TaskRange(first, first + len(request.tasks) - 1)
            facts.append(QueueTasksAdded(part=part, tasks=tasks, size=size))
            more.append((texts_stream(queue.id, part), TaskTextsKept(first=first, texts=request.tasks)))
        if request.close:
            facts.append(QueueClosed(by=caller.name))
        changes, after = self._engine.following(queue.id, facts)
        assert after is not None, "tasks that come have no queue be forgotten"

        def reply(position: Position) -> TasksAdded:
            return TasksAdded(position=position, first=first, queue=queue_view(after))

        return Decision(reply, [*more, *changes], effect=lambda: self._engine.changed(queue.id))

    def _require_room(self, queue: TaskQueue, tasks: list[bytes]) -> int:
        """The bytes of tasks, if they may come; raises RefusedError."""
        size = sum(map(len, tasks))
        for number, each in enumerate(tasks, queue.tasks + 1):
            if queue.plan.kind != "functions" and (b"\0" in each or not each.strip()):
                what = "has a NUL character" if each.strip() else "is empty"
                raise RefusedError(
                    RefusalCode.UNACCEPTABLE, f"task {number} {what}: a task is a line of text"
                )
            if queue.plan.kind == "lines" and b"\n" in each:
                raise RefusedError(RefusalCode.UNACCEPTABLE, f"task {number} has more than one line")
        if size > LARGEST_PART:
            raise RefusedError(
                RefusalCode.TOO_LARGE,
                f"{size:,} bytes of tasks in one request, of which {LARGEST_PART:,} are the most: add them in parts",
            )
        if queue.tasks + len(tasks) > MOST_TASKS:
            raise RefusedError(
                RefusalCode.LIMIT,
                f"a task queue has {MOST_TASKS:,} tasks at most, and {queue.name} would have {queue.tasks + len(tasks):,}: "
                "begin another one",
            )
        kept = sum(
            part.size
            for each in self._engine.queues.values()
            if each.owner == queue.owner
            for part in each.parts
        )
        if kept + size > self._most:
            raise RefusedError(
                RefusalCode.BUSY,
                f"tasks of yours that have no result yet would have {kept + size:,} bytes, of which {self._most:,} are the "
                "most: more can come when some have ended",
            )
        return size

    async def cancel(self, request: CancelTasks, caller: Identity) -> Decision[TaskQueueTold]:
        """The end of one, by its owner or an administrator."""
        queue = self._access.shown(request.queue, caller)
        if queue.ended:
            return self._decided(queue.id, [])
        return self._decided(queue.id, [QueueCancelled(by=caller.name, reason=request.reason)])

    def _decided(
        self, queue: str, facts: list[TaskQueueEvent], more: list[tuple[str, TaskTextsKept]] | None = None
    ) -> Decision[TaskQueueTold]:
        changes, after = self._engine.following(queue, facts)
        assert after is not None, "a command has no queue be forgotten"

        def reply(position: Position) -> TaskQueueTold:
            return TaskQueueTold(position=position, queue=queue_view(after))

        return Decision(reply, [*(more or []), *changes], effect=lambda: self._engine.changed(queue))

    async def list_queues(self, request: ListTaskQueues, caller: Identity) -> TaskQueues:
        """Those that somebody may see."""
        if request.everybody:
            self._access.require_everybody(caller)
        found = [
            each
            for each in self._engine.queues.values()
            if (request.ended or not each.ended) and (request.everybody or caller.is_person(each.owner))
        ]
        found.sort(key=lambda each: each.created)
        return TaskQueues(queues=[self._view(each) for each in found])

    async def show(self, request: ShowTaskQueue, caller: Identity) -> TaskQueueView:
        """One of them, when it is over or the time that is waited has passed."""
        queue = self._access.shown(request.queue, caller)
        await self._engine.until(queue.id, lambda each: bool(each.ended), within=request.wait)
        return self._view(self._access.shown(queue.id, caller))

    def _view(self, queue: TaskQueue) -> TaskQueueView:
        return queue_view(queue, self._engine.workers(queue.id))


def _require_sense(plan: TaskPlan, function: bytes) -> None:
    """Raise RefusedError: what is said does not fit the kind of tasks."""
    if (plan.kind == "functions") != bool(function):
        raise RefusedError(
            RefusalCode.UNACCEPTABLE, "a function belongs to tasks of the kind functions, and to these alone"
        )
    if (plan.kind == "lines") != bool(plan.program):
        raise RefusedError(
            RefusalCode.UNACCEPTABLE, "a program belongs to tasks of the kind lines, and to these alone"
        )
