r"""
What is done next in a job of several tasks: a function of the tasks, how far it is, and what has happened.  Pure.

    fetch --> task, task, ... --> send --> over
                 \_ each again in its place as often as it may be tried
"""

from typing import Literal, assert_never

import msgspec

from kettle.tasks.reading import retries_of
from kettle_wire.tasks import TaskList

Phase = Literal["fetch", "tasks", "send", "over"]
Happened = Literal["done", "failed", "late"]
"""`late`: the time for all tasks is over."""


class Progress(msgspec.Struct, frozen=True):
    """How far the job is."""

    phase: Phase = "fetch"
    task: int = 0
    """The task that is tried, or comes next."""
    retry: int = 0
    """How often it was tried before."""
    failed: bool = False
    """A task has failed for good."""
    broken: bool = False
    """Files could not be fetched or sent, or the time was over."""


class Fetch(msgspec.Struct, frozen=True):
    """Fetch what the tasks need."""


class RunTask(msgspec.Struct, frozen=True):
    """Run a task to its end."""

    task: int
    retry: int


class StartSidecar(msgspec.Struct, frozen=True):
    """Start one that runs beside those that come."""

    task: int


class Send(msgspec.Struct, frozen=True):
    """End the sidecars, and send the results."""


class Exit(msgspec.Struct, frozen=True):
    """The job ends with this exit code."""

    code: int


Action = Fetch | RunTask | StartSidecar | Send | Exit


def next_action(listed: TaskList, now: Progress) -> Action:
    """What is to be done."""
    match now.phase:
        case "fetch":
            return Fetch()
        case "tasks" if listed.tasks[now.task].type == "sidecar":
            return StartSidecar(now.task)
        case "tasks":
            return RunTask(now.task, now.retry)
        case "send":
            return Send()
        case "over":
            return Exit(int(now.broken or (now.failed and not listed.success_on_failure)))
        case _:
            assert_never(now.phase)


def after(listed: TaskList, now: Progress, happened: Happened) -> Progress:
    """How far the job is when that was done."""
    match now.phase:
        case "fetch" if happened == "done":
            return msgspec.structs.replace(now, phase="tasks")
        case "fetch":
            return msgspec.structs.replace(now, phase="over", broken=True)
        case "tasks":
            return _after_task(listed, now, happened)
        case "send" | "over":
            return msgspec.structs.replace(now, phase="over", broken=now.broken or happened != "done")
        case _:
            assert_never(now.phase)


def _after_task(listed: TaskList, now: Progress, happened: Happened) -> Progress:
    task = listed.tasks[now.task]
    if happened == "late":
        return msgspec.structs.replace(now, phase="send", failed=True, broken=True)
    if happened == "failed" and task.type != "sidecar":
        if now.retry < retries_of(listed, task):
            return msgspec.structs.replace(now, retry=now.retry + 1)
        if not listed.ignore_failures:
            return msgspec.structs.replace(now, phase="send", failed=True)
        now = msgspec.structs.replace(now, failed=True)
    if now.task + 1 == len(listed.tasks):
        return msgspec.structs.replace(now, phase="send")
    return msgspec.structs.replace(now, task=now.task + 1, retry=0)


class TimeLimit:
    """The time that all tasks may take together; what it takes to get images does not count."""

    def __init__(self, seconds: float, began: float) -> None:
        """`seconds` 0: there is none; `began` on the caller's clock."""
        self._seconds = seconds
        self._until = began + seconds if seconds else float("inf")

    def pulled(self, seconds: float) -> None:
        """An image was got in that time."""
        self._until += seconds

    @property
    def until(self) -> float:
        """When it is over, on the caller's clock."""
        return self._until

    @property
    def reason(self) -> str:
        """Why a task is ended then."""
        return f"the tasks may take {self._seconds:g} s together (wall_time), and that is over"
