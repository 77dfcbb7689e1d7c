"""The page of all task queues of somebody."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from aiohttp import web

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.periodic_watch import same_or_new
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.workflows.drawing import Part, parts_of
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.route import Moment
from kettle_wire.rest.task_queues import LIST_QUEUES, ListQueues, Queue, Queues


class AskedQueues(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task queues."""

    everybody: bool = False
    """The queues of all people, for administrators."""
    ended: bool = False
    """Also those that are over."""
    as_of: Moment | None = None


TASK_QUEUES: Final = Page(
    "/task-queues",
    "Task queues",
    template="task_queues/list.html",
    parameters=AskedQueues,
    link=Link("Jobs", 5),
    live="task_queues/list_live.html",
    only_now=True,
)


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task queue, with the parts of its states."""

    queue: Queue
    parts: Sequence[Part]


class QueuesView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    asked: AskedQueues
    rows: Sequence[QueueRow]
    trouble: str
    """Why nobody knows; empty: it is known."""


_SHOWN_BEFORE: Final = web.RequestKey("kettle-task-queues-page", Shown)


class TaskQueuesPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def show(self, asked: Asked) -> Shown:
        """All that somebody may see, the oldest first."""
        wanted: AskedQueues = asked.parameters
        question = ListQueues(everybody=wanted.everybody, ended=wanted.ended)
        found, trouble = await self._questions.ask_or_say(asked, LIST_QUEUES, question, Queues)
        queues = found.queues if found is not None else ()
        rows = [QueueRow(queue=each, parts=parts_of(counts_of(each))) for each in queues]
        view = QueuesView(asked=wanted, rows=rows, trouble=trouble)
        return same_or_new(asked, Shown(view), _SHOWN_BEFORE)


def counts_of(queue: Queue) -> Mapping[str, int]:
    """How many tasks are in which state, those that are over first."""
    return {
        "done": queue.done,
        "failed": queue.failed,
        "cancelled": queue.cancelled,
        "running": queue.running,
        "waiting": queue.waiting,
    }
