"""
What follows for a task queue from what its workers and its owner say: pure, as all that decides is.

A result is recorded if the lease under which it is reported has its task still, and at no other time: so each task has one.
"""

from collections.abc import Sequence
from typing import Final

from kettle_services.sessions.domain.task_queues.columns import some
from kettle_services.sessions.domain.task_queues.pieces import counted, numbers, parts_of, taken
from kettle_services.sessions.domain.task_queues.queue import Lease, TaskQueue
from kettle_wire.events.task_queue import (
    QueueEnded,
    QueueTasksEnded,
    QueueTasksLeased,
    QueueTasksReturned,
    TaskQueueEvent,
)
from kettle_wire.task_queues import MOST_AT_ONCE, TaskColumns, TaskRange

LOSSES: Final = 3
"""A task that a worker had alone when it was lost, so often, is not run again."""
_AHEAD: Final = 2
"""A worker gets no more than its share of what waits, divided by this: so that all end at the same time."""


class ReportError(Exception):
    """A report does not say what it has to; the message says what is wrong."""


def leased(queue: TaskQueue, job: str, attempt: int, want: int, workers: int) -> QueueTasksLeased | None:
    """
    The tasks that a worker gets which has room for so many; None: there are none. `workers`: how many work for the queue.
    """
    waiting = queue.waiting
    if not waiting or want <= 0:
        return None
    share = max(1, waiting // (_AHEAD * max(1, workers)))
    pieces = taken(queue.pending, min(want, share, MOST_AT_ONCE))
    return QueueTasksLeased(
        lease=queue.granted + 1, job=job, attempt=attempt, tasks=[each.tasks for each in pieces]
    )


def require_whole(results: TaskColumns, longest: int) -> None:
    """
    Raise ReportError: the columns of a report are not of one length, or say something of tasks that are not in it.

    `longest`: bytes of an output that the queue keeps.
    """
    count, before = counted(results.tasks), 0
    for each in results.tasks:
        if each.first <= before or each.last < each.first:
            raise ReportError("tasks of a report come in ascending order, each once")
        before = each.last
    if count > MOST_AT_ONCE:
        raise ReportError(f"a report of {count} tasks: {MOST_AT_ONCE} are the most")
    if not len(results.wall_us) == len(results.cpu_us) == count:
        raise ReportError(f"a report of {count} tasks says what each used, and for how long each ran")
    if len(results.outputs) not in {0, count}:
        raise ReportError(f"a report of {count} tasks has the output of each, or of none")
    if any(len(each) > longest for each in results.outputs):
        raise ReportError(f"an output has {longest} bytes at most")
    places = [each.place for each in results.exits]
    if places != sorted(set(places)) or (places and places[-1] >= count):
        raise ReportError("exits of a report are of tasks in it, in ascending order, each once")


def ended(
    queue: TaskQueue, lease: int, worker: tuple[str, int], results: TaskColumns
) -> QueueTasksEnded | None:
    """
    What of a report is recorded; None: nothing, since the lease is not this worker's any more or nothing new is in it.

    `worker`: its job, and which attempt of that; `results` are whole (`require_whole`).
    """
    known = queue.leases.get(lease)
    if known is None or (known.job, known.attempt) != worker:
        return None
    own = _of_lease(known, results)
    if not own.tasks:
        return None
    retries, place, again = queue.plan.retries, 0, list[int]()
    failed = {each.place for each in own.exits}
    pieces = parts_of(known.pieces, own.tasks) if failed and retries else []
    for piece in sorted(pieces, key=lambda each: each.first):
        if piece.tries < retries:
            again += [each for each in range(place, place + piece.count) if each in failed]
        place += piece.count
    return QueueTasksEnded(lease=lease, job=known.job, results=own, again=again)


def _of_lease(lease: Lease, results: TaskColumns) -> TaskColumns:
    """That part of results which is of tasks that the lease has still."""
    inside = parts_of(lease.pieces, results.tasks)
    if counted(inside) == counted(results.tasks):
        return results
    own = {number for each in inside for number in range(each.first, each.last + 1)}
    return some(results, [place for place, number in enumerate(numbers(results.tasks)) if number in own])


def returned(queue: TaskQueue, lease: int, reason: str, *, lost: bool) -> QueueTasksReturned:
    """The tasks of a lease wait again. `lost`: their worker was, of which one of them may be the cause."""
    known = queue.leases[lease]
    failed: list[TaskRange] = []
    if lost and counted(known.pieces) == 1 and known.pieces[0].losses + 1 > LOSSES:
        failed = [known.pieces[0].tasks]
    return QueueTasksReturned(lease=lease, job=known.job, reason=reason, lost=lost, failed=failed)


def of_earlier_runs(queue: TaskQueue, job: str, attempt: int) -> list[int]:
    """The leases of earlier attempts of a job that has begun again."""
    return [number for number, each in queue.leases.items() if each.job == job and each.attempt < attempt]


def is_earlier_run(queue: TaskQueue, job: str, attempt: int) -> bool:
    """Whether a later attempt of the job has tasks."""
    return any(each.job == job and each.attempt > attempt for each in queue.leases.values())


def not_held(queue: TaskQueue, job: str, attempt: int, holds: Sequence[int]) -> list[int]:
    """The leases that a worker does not know of, or has given up."""
    known = set(holds)
    return [
        number
        for number, each in queue.leases.items()
        if (each.job, each.attempt) == (job, attempt) and number not in known
    ]


def at_the_end(queue: TaskQueue) -> list[TaskQueueEvent]:
    """That it is over, if it is."""
    if queue.ended or queue.pending or queue.leases or not (queue.closed or queue.cancelled):
        return []
    return [QueueEnded(outcome="cancelled" if queue.cancelled else "done")]
