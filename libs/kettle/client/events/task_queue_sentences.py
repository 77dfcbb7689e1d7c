"""What the events of task queues say, in a sentence, and its meaning for colours."""

from collections.abc import Sequence

from kettle.terminal.quantities import counted
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
from kettle_wire.task_queues import TaskRange


def task_queue_sentence(event: TaskQueueEvent) -> tuple[str, str]:  # noqa: C901 - one case for each
    """What it says, and what colour that has."""
    match event:
        case QueueCreated(owner=owner, name=name):
            return f"{owner} has begun the task queue {name}", "strong"
        case QueueTasksAdded(tasks=tasks):
            return f"{_tasks([tasks])} came", ""
        case QueueClosed(by=by):
            return f"{by} has closed it: no more tasks come", ""
        case QueueTasksLeased(job=job, tasks=tasks):
            return f"job {job} has {_tasks(tasks)}", "running"
        case QueueTasksEnded():
            return _ended(event)
        case QueueTasksReturned(reason=reason, lost=lost):
            return f"tasks wait again: {reason}", "bad" if lost else ""
        case QueueCancelled(by=by, reason=reason):
            return f"cancelled by {by}" + (f": {reason}" if reason else ""), "bad"
        case QueueEnded(outcome=outcome):
            return f"ended ({outcome})", "strong"
        case QueueForgotten():
            return "is listed no more", "dim"
        case TaskTextsKept(first=first, texts=texts):
            what = "its function" if not first else _tasks([TaskRange(first, first + len(texts) - 1)])
            return f"{what} as it was given" if not first else f"{what} as they were given", ""
        case TaskTextsDropped():
            return "none of these tasks is run again", "dim"


def _ended(event: QueueTasksEnded) -> tuple[str, str]:
    said = f"job {event.job} has run {_tasks(event.results.tasks)}"
    if event.results.exits:
        said += f", of which {len(event.results.exits)} failed"
    if event.again:
        said += f"; {len(event.again)} are run again"
    return said, "bad" if event.results.exits else ""


def _tasks(tasks: Sequence[TaskRange]) -> str:
    count = sum(each.last - each.first + 1 for each in tasks)
    if count == 1:
        return f"task {tasks[0].first}"
    return f"{counted(count, 'task')} from {tasks[0].first} on"
