"""The page of one task queue: how far it is and why, the jobs that work for it, and one of its tasks."""

from collections.abc import Sequence
from typing import Final

import msgspec
from aiohttp import web

from kettle_services.gateway.pages.page import Page, Shown
from kettle_services.gateway.pages.periodic_watch import same_or_new
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.task_queues.list_page import counts_of
from kettle_services.gateway.pages.workflows.drawing import Part, parts_of
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.route import Moment
from kettle_wire.rest.task_queues import GET_QUEUE, GET_TASK, GetQueue, GetTask, Queue, QueuePlace, QueueTask
from kettle_wire.task_queues import TaskNumber

_MOST_TEXT: Final = 2_000
_MOST_OUTPUT: Final = 8_000
"""Characters of a task and of its output that are shown; a page is not to be larger than 100 kB, each of them written as an entity."""


class AskedQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task queue, and which task of it."""

    queue: QueuePlace
    task: TaskNumber | None = None
    as_of: Moment | None = None


TASK_QUEUE: Final = Page(
    "/task-queues/{queue}",
    "Task queue",
    template="task_queues/queue.html",
    parameters=AskedQueue,
    live="task_queues/queue_live.html",
    only_now=True,
)


class TaskSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A task, in words."""

    task: QueueTask
    wall: float | None = None
    """Seconds that it ran; None: it has no usage."""
    cpu: float = 0.0
    output: str = ""
    left_out: bool = False
    """More of its output is kept than is shown."""
    cut: bool = False
    """It printed more than is kept."""


class TaskQueuePageView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    asked: AskedQueue
    queue: Queue
    parts: Sequence[Part]
    rate: float
    """Of one that is over: tasks a second; 0: nobody knows."""
    task: TaskSeen | None
    no_task: str
    """Why the one that was asked for is not shown."""


_SHOWN_BEFORE: Final = web.RequestKey("kettle-task-queue-page", Shown)


class TaskQueuePage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def show(self, asked: Asked) -> Shown:
        """One of them; raises RequestRefused: there is none of this name that somebody may see."""
        wanted: AskedQueue = asked.parameters
        queue = await self._questions.ask(asked, GET_QUEUE, GetQueue(id=wanted.queue), Queue)
        task, no_task = await self._task(asked, wanted)
        view = TaskQueuePageView(
            asked=wanted,
            queue=queue,
            parts=parts_of(counts_of(queue)),
            rate=rate_of(queue),
            task=task,
            no_task=no_task,
        )
        return same_or_new(asked, Shown(view, title=f"Task queue {queue.name}"), _SHOWN_BEFORE)

    async def _task(self, asked: Asked, wanted: AskedQueue) -> tuple[TaskSeen | None, str]:
        """
        The task that was asked for, or why it is not known.  The result of one that is over is looked for in the log, and never another
        one: who watches the page is shown what was found.
        """
        if wanted.task is None:
            return None, ""
        before: Shown | None = asked.request.get(_SHOWN_BEFORE)
        if before is not None:
            assert isinstance(before.view, TaskQueuePageView)
            if before.view.task is not None and before.view.task.task.state not in {"waiting", "running"}:
                return before.view.task, ""
        question = GetTask(id=wanted.queue, task=wanted.task)
        found, why = await self._questions.ask_or_say(asked, GET_TASK, question, QueueTask)
        return (None if found is None else in_words(found)), why


def rate_of(queue: Queue) -> float:
    """Tasks a second of a queue that is over, from its beginning to its end; 0: it is not over."""
    if queue.ended is None or queue.ended <= queue.created:
        return 0.0
    return (queue.done + queue.failed) / (queue.ended - queue.created).total_seconds()


def in_words(task: QueueTask) -> TaskSeen:
    """A task with its usage and its output, which is there if a worker has reported it."""
    short = msgspec.structs.replace(task, text=task.text[:_MOST_TEXT], result=None)
    if task.result is None:
        return TaskSeen(task=short)
    columns = task.result.results
    output = columns.outputs[0].decode("utf-8", "replace") if columns.outputs else ""
    return TaskSeen(
        task=short,
        wall=columns.wall_us[0] / 1e6 if columns.wall_us else None,
        cpu=columns.cpu_us[0] / 1e6 if columns.cpu_us else 0.0,
        output=output[:_MOST_OUTPUT],
        left_out=len(output) > _MOST_OUTPUT,
        cut=bool(columns.cut),
    )
