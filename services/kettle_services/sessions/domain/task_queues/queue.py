"""A task queue as its events make it."""

from bisect import bisect_right
from typing import Final

import msgspec
from msgspec.structs import replace

from kettle_services.sessions.domain.task_queues.pieces import (
    Piece,
    counted,
    joined,
    numbers,
    parts_of,
    ranges_of,
    without,
)
from kettle_wire.events.task_queue import (
    QueueCancelled,
    QueueClosed,
    QueueCreated,
    QueueEnded,
    QueueForgotten,
    QueueTasksAdded,
    QueueTasksEnded,
    QueueTasksLeased,
    QueueTasksReturned,
    TaskQueueEvent,
    TaskTextsDropped,
    TaskTextsKept,
)
from kettle_wire.task_queues import QueueOutcome, QueueState, TaskPlan

FUNCTION: Final = 0
"""The part that is the function of a queue, and no task."""


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Tasks that came together, whose texts are on a stream of their own."""

    number: int
    first: int
    last: int
    size: int
    """Bytes."""


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """Tasks that a run of a job has."""

    job: str
    attempt: int
    at: float
    pieces: tuple[Piece, ...]
    """Those that it has not reported."""


class Totals(msgspec.Struct, frozen=True):
    """What all tasks of a queue come to."""

    done: int = 0
    failed: int = 0
    cancelled: int = 0
    again: int = 0
    lost: int = 0
    wall_us: int = 0
    cpu_us: int = 0


class TaskQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about it that matters to the next decision; results are in the log alone."""

    id: str
    owner: str
    name: str
    plan: TaskPlan
    created: float
    followed: int
    tasks: int = 0
    added: int = 0
    """Parts that there have been."""
    parts: tuple[Part, ...] = ()
    """Of which some task may be run."""
    pending: tuple[Piece, ...] = ()
    """What waits, in the order in which it is given to workers."""
    leases: dict[int, Lease] = {}
    granted: int = 0
    """Leases that there have been."""
    totals: Totals = Totals()
    closed: bool = False
    cancelled: str = ""
    """By whom and why, in a sentence."""
    ended: float = 0.0
    outcome: QueueOutcome = ""

    @property
    def state(self) -> QueueState:
        """In one word."""
        if self.ended:
            return "ended"
        return "closed" if self.closed or self.cancelled else "open"

    @property
    def waiting(self) -> int:
        """Tasks that no worker has."""
        return counted(self.pending)

    @property
    def running(self) -> int:
        """Tasks that workers have."""
        return sum(counted(each.pieces) for each in self.leases.values())


class TaskTexts(msgspec.Struct, frozen=True):
    """Tasks as their owner gave them."""

    first: int
    texts: list[bytes]


def evolve_texts(texts: TaskTexts | None, event: TaskQueueEvent, at: float) -> TaskTexts | None:
    """What an event makes of the texts of one part."""
    del at
    match event:
        case TaskTextsKept(first=first, texts=kept):
            return TaskTexts(first, kept)
        case TaskTextsDropped():
            return None
        case _:
            return texts


def evolve(queue: TaskQueue | None, event: TaskQueueEvent, at: float) -> TaskQueue | None:
    """What an event makes of a queue; `at`: seconds since the epoch."""
    if isinstance(event, QueueCreated):
        return TaskQueue(
            id=event.queue,
            owner=event.owner,
            name=event.name,
            plan=event.plan,
            created=at,
            followed=event.followed,
        )
    if isinstance(event, QueueForgotten):
        return None
    assert queue is not None, "a queue begins with its creation"
    match event:
        case QueueTasksAdded():
            return _added(queue, event)
        case QueueTasksLeased():
            return _leased(queue, event, at)
        case QueueTasksEnded():
            return _tasks_ended(queue, event)
        case QueueTasksReturned():
            return _returned(queue, event)
        case QueueClosed():
            return replace(queue, closed=True)
        case QueueCancelled(by=by, reason=reason):
            totals = replace(queue.totals, cancelled=queue.waiting + queue.running)
            said = f"cancelled by {by}" + (f": {reason}" if reason else "")
            return replace(queue, cancelled=said, pending=(), leases={}, totals=totals)
        case QueueEnded(outcome=outcome):
            return replace(queue, ended=at, outcome=outcome, parts=())
        case _:
            return queue


def _added(queue: TaskQueue, event: QueueTasksAdded) -> TaskQueue:
    first, last = event.tasks.first, event.tasks.last
    return replace(
        queue,
        tasks=last,
        added=event.part,
        parts=(*queue.parts, Part(event.part, first, last, event.size)),
        pending=_with_last(queue.pending, Piece(first, last)),
    )


def _with_last(pending: tuple[Piece, ...], new: Piece) -> tuple[Piece, ...]:
    """Tasks come in the order of their numbers, so that they often go on where others end."""
    before = pending[-1] if pending else None
    if before and (before.last + 1, before.tries, before.losses) == (new.first, 0, 0):
        return (*pending[:-1], replace(before, last=new.last))
    return (*pending, new)


def _leased(queue: TaskQueue, event: QueueTasksLeased, at: float) -> TaskQueue:
    pieces = tuple(parts_of(queue.pending, event.tasks))
    lease = Lease(event.job, event.attempt, at, pieces)
    return replace(
        queue,
        pending=without(queue.pending, event.tasks),
        leases={**queue.leases, event.lease: lease},
        granted=event.lease,
    )


def _tasks_ended(queue: TaskQueue, event: QueueTasksEnded) -> TaskQueue:
    lease, results = queue.leases[event.lease], event.results
    left, again = without(lease.pieces, results.tasks), set(event.again)
    leases = dict(queue.leases)
    if left:
        leases[event.lease] = replace(lease, pieces=left)
    else:
        del leases[event.lease]
    failed = sum(each.place not in again for each in results.exits)
    totals = queue.totals
    totals = replace(
        totals,
        done=totals.done + counted(results.tasks) - len(results.exits),
        failed=totals.failed + failed,
        again=totals.again + len(again),
        wall_us=totals.wall_us + sum(results.wall_us),
        cpu_us=totals.cpu_us + sum(results.cpu_us),
    )
    pending = queue.pending
    if again:
        tasks = ranges_of(number for place, number in enumerate(numbers(results.tasks)) if place in again)
        repeated = (replace(each, tries=each.tries + 1) for each in parts_of(lease.pieces, tasks))
        pending = (*joined(repeated), *pending)
    return _without_parts(replace(queue, pending=pending, leases=leases, totals=totals))


def _returned(queue: TaskQueue, event: QueueTasksReturned) -> TaskQueue:
    leases = dict(queue.leases)
    gone = leases.pop(event.lease)
    back = without(gone.pieces, event.failed)
    more = 1 if event.lost else 0
    worker = more and not any(
        (each.job, each.attempt) == (gone.job, gone.attempt) for each in leases.values()
    )
    totals = queue.totals
    totals = replace(totals, failed=totals.failed + counted(event.failed), lost=totals.lost + worker)
    again = joined(replace(each, losses=each.losses + more) for each in back)
    return _without_parts(replace(queue, pending=(*again, *queue.pending), leases=leases, totals=totals))


def _without_parts(queue: TaskQueue) -> TaskQueue:
    """Those parts are left out of which no task will be run again."""
    alive = [*queue.pending]
    for lease in queue.leases.values():
        alive += lease.pieces
    begins, needed = [each.first for each in queue.parts], set[int]()
    for piece in alive:
        first, last = bisect_right(begins, piece.first) - 1, bisect_right(begins, piece.last)
        needed.update(range(first, last))
    if len(needed) == len(queue.parts):
        return queue
    return replace(queue, parts=tuple(queue.parts[each] for each in sorted(needed)))
