"""
What people, and the jobs that work for them, ask of task queues; the service of interactive sessions has them.
"""

from typing import Annotated, Final

import msgspec

from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.jobs import JobId, Name, Number
from kettle_wire.task_queues import (
    LARGEST_FUNCTION,
    LARGEST_PART,
    MOST_AT_ONCE,
    QueueId,
    QueueName,
    QueueOutcome,
    QueueState,
    TaskBytes,
    TaskColumns,
    TaskNumber,
    TaskPlan,
    TaskRange,
    TaskState,
)

LONGEST_WAIT_S: Final = 20.0
"""Of somebody who waits for the end of a queue."""
LONGEST_WORKER_WAIT_S: Final = 10.0
"""Of a worker that waits for tasks."""
LARGEST_REPORT: Final = 2 * 1024 * 1024
_MOST_LEASES: Final = 1_000
_OVERHEAD: Final = 256 * 1024
_Which = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
"""The id of a queue, or the name of an own one."""
_Reason = Annotated[str, msgspec.Meta(max_length=1024)]


class CreateTaskQueue(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Begin a task queue. `id` makes a repeat harmless."""

    id: CommandId
    name: QueueName | None = None
    """None: it is made of the queue's id."""
    plan: TaskPlan = TaskPlan()
    function: Annotated[bytes, msgspec.Meta(max_length=LARGEST_FUNCTION)] = b""
    """Of the kind `functions`: the pickled function."""


class AddTasks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Give a queue more tasks; `close`: these are the last ones. `id` makes a repeat harmless."""

    id: CommandId
    queue: _Which
    tasks: Annotated[list[TaskBytes], msgspec.Meta(max_length=MOST_AT_ONCE)] = []
    close: bool = False


class CancelTasks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """End a queue and what runs of it. `id` makes a repeat harmless."""

    id: CommandId
    queue: _Which
    reason: _Reason = ""


class TaskWorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has tasks."""

    job: str
    attempt: int
    tasks: int
    since: float
    """When it got the oldest ones of those."""


class TaskQueueView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task queue as people see it."""

    id: QueueId
    name: str
    owner: str
    plan: TaskPlan
    state: QueueState
    outcome: QueueOutcome = ""
    reason: str = ""
    """Of one that was cancelled: by whom, and why."""
    created: float
    ended: float = 0.0
    """When all was over; 0: it is not."""
    tasks: int
    waiting: int
    running: int
    done: int
    """Those that have ended well."""
    failed: int
    cancelled: int
    again: int
    """How often a task was run again because it had failed."""
    lost: int
    """How often a worker was lost that had tasks."""
    wall: float
    """Seconds that all tasks ran, those that failed and were run again included."""
    cpu: float
    """Seconds of processors that they used."""
    workers: list[TaskWorkerView] = []
    """Those that have tasks now."""
    why: str = ""
    """Why nothing of it goes on, in a sentence; empty: it goes on, or is over."""


class TaskQueueTold(msgspec.Struct, frozen=True, kw_only=True):
    """That is recorded; how the queue is then."""

    position: Position
    queue: TaskQueueView


class TasksAdded(msgspec.Struct, frozen=True, kw_only=True):
    """These tasks cannot be lost."""

    position: Position
    first: int
    """The number of the first of them; 0: there were none."""
    queue: TaskQueueView


class ListTaskQueues(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One's own; of all people, for administrators."""

    everybody: bool = False
    ended: bool = False
    """Also those that are over."""


class TaskQueues(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest first."""

    queues: list[TaskQueueView]


class ShowTaskQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of them; with `wait` not before it is over, or so many seconds have passed."""

    queue: _Which
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0.0


class ReadTaskResults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Results behind a place that an earlier answer named; with `wait` not before there are some, or it is over.
    """

    queue: _Which
    after: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0.0


class TaskBatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one report of a worker says, or tasks that were given up because their worker was lost."""

    at: float
    job: str
    results: TaskColumns
    reason: str = ""
    """Of tasks that were given up: why. They have no usage."""


class TaskResultsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Each task's result is in one batch of all pages, and in no other."""

    batches: list[TaskBatch]
    after: int
    """Where the next page begins."""
    more: bool
    """There is a next page already."""
    queue: TaskQueueView


class ExplainTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one task is, and why."""

    queue: _Which
    task: TaskNumber


class TaskView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task."""

    queue: QueueId
    task: int
    state: TaskState
    why: str
    """In a sentence."""
    job: str = ""
    """Of one that runs or has run: where."""
    tries: int = 0
    """How often it has failed, and is run again."""
    text: bytes = b""
    """The task as it was given, as long as it may be run."""
    result: TaskBatch | None = None


class TaskWorkerAsks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A running job works for a queue, or says that it does; its shadow says which job that is, and whose."""

    queue: Annotated[str, msgspec.Meta(max_length=64)]
    owner: Name
    job: JobId
    attempt: Number
    body: Annotated[bytes, msgspec.Meta(max_length=LARGEST_REPORT)]
    """`WorkerReport` as JSON, which a worker writes with what each Python has."""


class TaskWorkerAnswer(msgspec.Struct, frozen=True):
    """`WorkerOrders` as JSON."""

    body: bytes


class LeaseReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of tasks of one lease."""

    lease: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    results: TaskColumns


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worker has done since its last report, and what it wants."""

    number: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """Counts the reports of one run of the job: one that comes late is known by it."""
    holds: Annotated[list[Annotated[int, msgspec.Meta(ge=1)]], msgspec.Meta(max_length=_MOST_LEASES)] = []
    """The leases of which something is left to do after what is reported; others of this worker are given back."""
    results: Annotated[list[LeaseReport], msgspec.Meta(max_length=_MOST_LEASES)] = []
    want: Annotated[int, msgspec.Meta(ge=0, le=MOST_AT_ONCE)] = 0
    """How many more tasks it has room for."""
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WORKER_WAIT_S)] = 0.0
    """For so many seconds it waits for tasks, if there are none."""
    function: bool = False
    """It needs the queue's function."""


class WorkerLease(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks to be run."""

    lease: int
    tasks: list[TaskRange]
    texts: list[bytes]
    """Of each."""


class WorkerOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is to do."""

    plan: TaskPlan
    lease_s: float
    """A worker that is not heard for so long has lost what it has."""
    over: bool = False
    """Nothing is left to do, and nothing will come: what runs still is to be ended."""
    leases: list[WorkerLease] = []
    function: bytes = b""


CREATE_TASKS = Endpoint(
    "sessions",
    "create_tasks",
    CreateTaskQueue,
    TaskQueueTold,
    callers=(Caller.USER,),
    repeat=Repeat.FIRST_ANSWER,
    largest=LARGEST_FUNCTION + _OVERHEAD,
)
ADD_TASKS = Endpoint(
    "sessions",
    "add_tasks",
    AddTasks,
    TasksAdded,
    callers=(Caller.USER,),
    repeat=Repeat.FIRST_ANSWER,
    largest=LARGEST_PART + _OVERHEAD,
)
CANCEL_TASKS = Endpoint(
    "sessions",
    "cancel_tasks",
    CancelTasks,
    TaskQueueTold,
    callers=(Caller.USER,),
    repeat=Repeat.FIRST_ANSWER,
)
LIST_TASKS = Endpoint(
    "sessions", "list_tasks", ListTaskQueues, TaskQueues, callers=(Caller.USER,), repeat=Repeat.QUERY
)
SHOW_TASKS = Endpoint(
    "sessions",
    "show_tasks",
    ShowTaskQueue,
    TaskQueueView,
    callers=(Caller.USER,),
    repeat=Repeat.QUERY,
    limited=True,
)
READ_TASK_RESULTS = Endpoint(
    "sessions",
    "task_results",
    ReadTaskResults,
    TaskResultsPage,
    callers=(Caller.USER,),
    repeat=Repeat.QUERY,
    limited=True,
)
EXPLAIN_TASK = Endpoint(
    "sessions",
    "explain_task",
    ExplainTask,
    TaskView,
    callers=(Caller.USER,),
    repeat=Repeat.QUERY,
    limited=True,
)
TASK_WORKER = Endpoint(
    "sessions",
    "task_worker",
    TaskWorkerAsks,
    TaskWorkerAnswer,
    callers=(Caller.SHADOW,),
    repeat=Repeat.HARMLESS,
    largest=LARGEST_REPORT + _OVERHEAD,
)
