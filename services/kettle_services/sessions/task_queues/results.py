"""The results of tasks, read from the log: they are in no memory and in no other table."""

from collections.abc import AsyncIterator
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.log import ReadableLog
from kettle_services.sessions.domain.state import QUEUE
from kettle_services.sessions.domain.task_queues.columns import some
from kettle_services.sessions.domain.task_queues.pieces import counted, numbers
from kettle_services.sessions.domain.task_queues.queue import TaskQueue
from kettle_services.sessions.task_queues.access import QueueAccess
from kettle_services.sessions.task_queues.engine import QueueEngine
from kettle_services.sessions.task_queues.views import queue_view
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.task_queues import (
    ExplainTask,
    ReadTaskResults,
    TaskBatch,
    TaskResultsPage,
    TaskView,
)
from kettle_wire.events import decode
from kettle_wire.events.task_queue import QueueTasksEnded, QueueTasksReturned
from kettle_wire.identity import Identity
from kettle_wire.task_queues import TaskColumns, TaskState

_PAGE_BYTES: Final = 512 * 1024
_PAGE_TASKS: Final = 20_000
_FRAMES: Final = 2_000
"""A page looks at so many frames at most, whatever is in them."""
LOST: Final = "its worker was lost each time that it ran"


class TaskResults:
    """Reads them for people."""

    def __init__(self, engine: QueueEngine, access: QueueAccess, log: ReadableLog) -> None:
        self._engine = engine
        self._access = access
        self._log = log

    async def page(self, request: ReadTaskResults, caller: Identity) -> TaskResultsPage:
        """Results behind a frame, as many as fit into an answer."""
        queue = self._access.shown(request.queue, caller)
        after, known = max(request.after, queue.followed), self._ends(queue)
        page, after, more = await self._read(queue.id, after)
        if not page and not more and request.wait and not queue.ended:
            await self._engine.until(
                queue.id, lambda each: bool(each.ended) or self._ends(each) != known, within=request.wait
            )
            queue = self._access.shown(queue.id, caller)
            page, after, more = await self._read(queue.id, after)
        # The queue as it was before the reading: who hears that it is over has all results, or hears that there are more.
        return TaskResultsPage(batches=page, after=after, more=more, queue=queue_view(queue))

    def _ends(self, queue: TaskQueue) -> int:
        return queue.totals.done + queue.totals.failed

    async def _read(self, queue: str, after: int) -> tuple[list[TaskBatch], int, bool]:
        """
        The batches, the last frame that was looked at, and whether there are more; all that was recorded before is looked at.
        """
        await self._engine.record.shard.committed()
        head = self._engine.record.shard.frame
        until = min(head, after + _FRAMES)
        found, tasks, size = list[TaskBatch](), 0, 0
        async for number, batches in self._batches(queue, after, until):
            after = number
            found += batches
            tasks += sum(counted(each.results.tasks) for each in batches)
            size += sum(len(output) for each in batches for output in each.results.outputs)
            if tasks >= _PAGE_TASKS or size >= _PAGE_BYTES:
                break
        else:
            after = until
        return found, after, after < head

    async def _batches(
        self, queue: str, after: int, until: int
    ) -> AsyncIterator[tuple[int, list[TaskBatch]]]:
        """The number of each frame in which something of the queue is, and the results in it."""
        stream = f"{QUEUE}{queue}"
        async for frame in self._log.read(self._engine.record.shard.name, after=after, until=until):
            own = [entry for entry in frame.entries if entry.stream == stream]
            if own:
                batches = (_batch(decode(entry.data), frame.at / 1e6) for entry in own)
                yield frame.number, [each for each in batches if each is not None]

    async def explain(self, request: ExplainTask, caller: Identity) -> TaskView:
        """How one task is; of one that has a result it is found in the log."""
        queue, task = self._access.shown(request.queue, caller), request.task
        if task > queue.tasks:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"there is no task {task} in task queue {queue.name}, which has {queue.tasks:,}",
            )
        if (waits := _alive(queue, task, self._engine)) is not None:
            return waits
        await self._engine.record.shard.committed()
        head = self._engine.record.shard.frame
        async for _, batches in self._batches(queue.id, queue.followed, head):
            for batch in batches:
                if (one := _only(batch, task)) is not None:
                    return _ended(queue, task, one)
        return TaskView(
            queue=queue.id,
            task=task,
            state="cancelled",
            why=f"it has no result: the queue was {queue.cancelled}",
        )


def _batch(event: object, at: float) -> TaskBatch | None:
    """The results that an event has; what is run again is none."""
    match event:
        case QueueTasksEnded(job=job, results=results, again=again):
            if again:
                results = some(results, set(range(counted(results.tasks))) - set(again))
            return TaskBatch(at=at, job=job, results=results) if results.tasks else None
        case QueueTasksReturned(job=job, failed=failed) if failed:
            return TaskBatch(at=at, job=job, results=TaskColumns(tasks=failed), reason=LOST)
        case _:
            return None


def _only(batch: TaskBatch, task: int) -> TaskBatch | None:
    """One task's result of a batch, if it is in that."""
    for place, number in enumerate(numbers(batch.results.tasks)):
        if number == task:
            return TaskBatch(
                at=batch.at, job=batch.job, results=some(batch.results, [place]), reason=batch.reason
            )
    return None


def _alive(queue: TaskQueue, task: int, engine: QueueEngine) -> TaskView | None:
    """A task that waits or runs."""
    before = 0
    for piece in queue.pending:
        if piece.first <= task <= piece.last:
            why = (
                f"it waits: {before + task - piece.first:,} tasks of its queue are given to workers before it"
            )
            if piece.losses:
                why += f"; a worker that had it was lost {piece.losses} times"
            return TaskView(
                queue=queue.id,
                task=task,
                state="waiting",
                why=why,
                tries=piece.tries,
                text=_text(queue, task, engine),
            )
        before += piece.count
    for lease in queue.leases.values():
        for piece in lease.pieces:
            if piece.first <= task <= piece.last:
                return TaskView(
                    queue=queue.id,
                    task=task,
                    state="running",
                    why=f"job {lease.job} has it, in its run {lease.attempt}",
                    job=lease.job,
                    tries=piece.tries,
                    text=_text(queue, task, engine),
                )
    return None


def _text(queue: TaskQueue, task: int, engine: QueueEngine) -> bytes:
    part = next(each for each in queue.parts if each.first <= task <= each.last)
    return engine.texts(queue.id, part.number)[task - part.first]


def _ended(queue: TaskQueue, task: int, batch: TaskBatch) -> TaskView:
    bad = batch.results.exits
    if batch.reason:
        why = batch.reason
    elif bad:
        how = f"signal {-bad[0].exit}" if bad[0].exit < 0 else f"exit code {bad[0].exit}"
        why = f"it ended with {how}" + (f": {bad[0].reason}" if bad[0].reason else "")
    else:
        why = "it ended well"
    state: TaskState = "failed" if bad or batch.reason else "done"
    return TaskView(queue=queue.id, task=task, state=state, why=why, job=batch.job, result=batch)
