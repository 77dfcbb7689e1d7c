"""Task queues over HTTP: many small commands, which a few jobs work through."""

from typing import Annotated

import msgspec

from kettle_wire.rest.route import Moment, Route
from kettle_wire.task_queues import (
    MOST_AT_ONCE,
    QueueName,
    QueueOutcome,
    QueueState,
    TaskColumns,
    TaskNumber,
    TaskPlan,
    TaskState,
)

QueuePlace = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
"""The id of a task queue, or the name of an own one."""
_Command = Annotated[str, msgspec.Meta(min_length=1, max_length=65_536)]
_Commands = Annotated[list[_Command], msgspec.Meta(max_length=MOST_AT_ONCE)]


class ListQueues(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List one's own task queues, the oldest first."""

    everybody: bool = False
    """The queues of all people: for administrators."""
    ended: bool = False
    """Also those that are over; they are listed for a week."""


class BeginQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Begin a task queue. Nothing of it runs before jobs work for it: `kettle tasks workers`, or any job whose `KettleTaskQueue` is its id.
    """


class NewQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What it is, and its first tasks."""

    name: QueueName | None = None
    plan: TaskPlan = TaskPlan()
    """Of the kinds `commands` and `lines`: functions come from Python (`kettle.task_queues.executor`)."""
    tasks: _Commands = []
    close: bool = False
    """No more come."""


class GetQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a task queue, with the workers that have tasks of it."""

    id: QueuePlace


class AddQueueTasks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give a task queue that is open more tasks; they are recorded when this is answered."""

    id: QueuePlace


class MoreTasks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The tasks."""

    tasks: _Commands = []
    close: bool = False
    """No more come."""


class CancelQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End a task queue: what waits is not run, and what runs is ended."""

    id: QueuePlace
    reason: Annotated[str, msgspec.Meta(max_length=1024)] = ""


class GetTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get one task of a queue: how it is, and why."""

    id: QueuePlace
    task: TaskNumber


class GetTaskResults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get results of a task queue, page by page: each task's result is on one page, in one batch."""

    id: QueuePlace
    after: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    """`after` of the page before."""


class QueueWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has tasks."""

    job: str
    attempt: int
    tasks: int
    since: Moment


class Queue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task queue."""

    id: str
    name: str
    owner: str
    plan: TaskPlan
    state: QueueState
    outcome: QueueOutcome = ""
    reason: str = ""
    why: str = ""
    """Why nothing of it goes on, in a sentence."""
    created: Moment
    ended: Moment | None = None
    tasks: int
    waiting: int
    running: int
    """With workers."""
    done: int
    failed: int
    cancelled: int
    again: int
    """Runs of tasks that had failed before."""
    lost: int
    """Workers that were lost with tasks."""
    wall: float
    """Seconds that all tasks ran."""
    cpu: float
    """Seconds of processors that they used."""
    workers: list[QueueWorker] = []


class Queues(msgspec.Struct, frozen=True, kw_only=True):
    """A list of task queues."""

    queues: list[Queue]


class QueueBatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one report of a worker says."""

    at: Moment
    job: str
    results: TaskColumns
    """Outputs are base64."""
    reason: str = ""
    """Of tasks that were given up because their worker was lost each time."""


class QueueResults(msgspec.Struct, frozen=True, kw_only=True):
    """A page of results."""

    batches: list[QueueBatch]
    after: int
    more: bool
    """There is a next page already."""


class QueueTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task."""

    queue: str
    task: int
    state: TaskState
    why: str
    job: str = ""
    tries: int = 0
    """How often it has failed before."""
    text: str = ""
    """As it was given, as long as it may be run."""
    result: QueueBatch | None = None


_CHANGES = (404, 409, 413, 415, 422)

LIST_QUEUES = Route("GET", "/task-queues", "list_task_queues", parameters=ListQueues, reply=Queues)
BEGIN_QUEUE = Route(
    "POST",
    "/task-queues",
    "create_task_queue",
    parameters=BeginQueue,
    body=NewQueue,
    reply=Queue,
    level="WRITE",
    errors=(409, 413, 415, 422),
    headers=("Idempotency-Key",),
    creates=True,
)
GET_QUEUE = Route(
    "GET", "/task-queues/{id}", "get_task_queue", parameters=GetQueue, reply=Queue, errors=(404,)
)
ADD_QUEUE_TASKS = Route(
    "POST",
    "/task-queues/{id}/tasks",
    "add_tasks",
    parameters=AddQueueTasks,
    body=MoreTasks,
    reply=Queue,
    level="WRITE",
    errors=_CHANGES,
    headers=("Idempotency-Key",),
)
CANCEL_QUEUE = Route(
    "DELETE",
    "/task-queues/{id}",
    "cancel_task_queue",
    parameters=CancelQueue,
    reply=Queue,
    level="WRITE",
    errors=(404, 409, 422),
    headers=("Idempotency-Key",),
)
GET_TASK = Route(
    "GET",
    "/task-queues/{id}/tasks/{task}",
    "get_task",
    parameters=GetTask,
    reply=QueueTask,
    errors=(404,),
)
GET_TASK_RESULTS = Route(
    "GET",
    "/task-queues/{id}/results",
    "get_task_results",
    parameters=GetTaskResults,
    reply=QueueResults,
    errors=(404,),
)
