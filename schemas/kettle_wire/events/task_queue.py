"""
What happens to a task queue, on the stream `queue/<id>` of the shard `sessions.<schedd>`; its tasks are on `tasks/<id>.<part>`.

Results come as columns of many tasks: no event is of one task alone where many end together.
"""

from kettle_wire.events.base import Event
from kettle_wire.task_queues import QueueOutcome, TaskColumns, TaskPlan, TaskRange


class QueueCreated(Event, frozen=True, tag="queue.created/1"):
    """Somebody wants a task queue."""

    queue: str
    owner: str
    """From the credential of who has asked."""
    name: str
    plan: TaskPlan
    followed: int
    """Frames of the shard up to this one have nothing of this queue."""


class QueueTasksAdded(Event, frozen=True, tag="queue.tasks_added/1"):
    """More tasks have come."""

    part: int
    """The number of the stream that has them, which counts from 1 within the queue."""
    tasks: TaskRange
    size: int
    """Bytes of them together."""


class QueueClosed(Event, frozen=True, tag="queue.closed/1"):
    """No more tasks come."""

    by: str


class QueueTasksLeased(Event, frozen=True, tag="queue.tasks_leased/1"):
    """A worker has tasks to run, until it has reported them, gives them back, or is not heard any more."""

    lease: int
    """Counts from 1 within the queue; what is reported under another one does not count."""
    job: str
    attempt: int
    tasks: list[TaskRange]


class QueueTasksEnded(Event, frozen=True, tag="queue.tasks_ended/1"):
    """A worker has run tasks."""

    lease: int
    job: str
    results: TaskColumns
    again: list[int] = []
    """Places of those that failed and are run again, which is no result."""


class QueueTasksReturned(Event, frozen=True, tag="queue.tasks_returned/1"):
    """Tasks that a worker had and did not report wait again."""

    lease: int
    job: str
    reason: str
    lost: bool = False
    """Their worker was lost, which one of them may be the cause of; else it gave them back."""
    failed: list[TaskRange] = []
    """Those that have lost their worker too often, which is their result."""


class QueueCancelled(Event, frozen=True, tag="queue.cancelled/1"):
    """Somebody wants none of its tasks any more; what runs is ended."""

    by: str
    reason: str


class QueueEnded(Event, frozen=True, tag="queue.ended/1"):
    """All of its tasks have a result, or it was cancelled."""

    outcome: QueueOutcome


class QueueForgotten(Event, frozen=True, tag="queue.forgotten/1"):
    """It is not listed any more; the log keeps it."""


class TaskTextsKept(Event, frozen=True, tag="tasks.kept/1"):
    """Tasks as their owner gave them; part 0 of a queue is its function."""

    first: int
    """The number of the first; the others follow."""
    texts: list[bytes]


class TaskTextsDropped(Event, frozen=True, tag="tasks.dropped/1"):
    """None of these tasks will be run again."""


TaskQueueEvent = (
    QueueCreated
    | QueueTasksAdded
    | QueueClosed
    | QueueTasksLeased
    | QueueTasksEnded
    | QueueTasksReturned
    | QueueCancelled
    | QueueEnded
    | QueueForgotten
    | TaskTextsKept
    | TaskTextsDropped
)
