"""What is done next in a job of several tasks."""

from collections.abc import Iterable

import pytest

from kettle.tasks.reading import read_tasks
from kettle.tasks.sequence import (
    Deed,
    Exit,
    Fetch,
    Happened,
    Progress,
    RunTask,
    Send,
    StartSidecar,
    TimeLimit,
    after,
    next_deed,
)
from kettle_wire.tasks import TaskList


def listed(more: str = "") -> TaskList:
    """A task, a sidecar, and a task that is tried twice."""
    tasks = '{"cmd":["a"]},{"cmd":["s"],"type":"sidecar"},{"cmd":["b"],"retries":1}'
    return read_tasks(f'{{"tasks":[{tasks}]{more}}}')


def played(tasks: TaskList, happened: Iterable[Happened]) -> list[Deed]:
    """What was done while that happened, to the exit."""
    progress, deeds = Progress(), list[Deed]()
    for each in happened:
        deeds.append(next_deed(tasks, progress))
        progress = after(tasks, progress, each)
    return [*deeds, next_deed(tasks, progress)]


WHOLE = [Fetch(), RunTask(0, 0), StartSidecar(1), RunTask(2, 0), Send()]


def test_all_tasks_in_their_order() -> None:
    """A sidecar is begun where it stands, and the results are sent last."""
    assert [*WHOLE, Exit(0)] == played(listed(), ["done", "done", "done", "done", "done"])


def test_a_sidecar_that_cannot_be_started_counts_for_nothing() -> None:
    """The tasks behind it run, and the job ends with 0."""
    assert [*WHOLE, Exit(0)] == played(listed(), ["done", "done", "failed", "done", "done"])


def test_a_task_is_tried_again_in_its_place() -> None:
    """As often as it says; after that the job has failed, and its results are sent all the same."""
    again = [*WHOLE[:4], RunTask(2, 1), Send()]

    assert [*again, Exit(0)] == played(listed(), ["done", "done", "done", "failed", "done", "done"])
    assert [*again, Exit(1)] == played(listed(), ["done", "done", "done", "failed", "failed", "done"])
    assert [Fetch(), RunTask(0, 0), Send(), Exit(1)] == played(listed(), ["done", "failed", "done"])


@pytest.mark.parametrize(("more", "code"), [("", 1), (',"success_on_failure":true', 0)])
def test_failures_that_are_ignored_still_decide_the_exit_code(more: str, code: int) -> None:
    """The next task runs, and the job ends with 1 unless it says otherwise."""
    tasks = listed(f',"ignore_failures":true{more}')
    assert [*WHOLE, Exit(code)] == played(tasks, ["done", "failed", "done", "done", "done"])


def test_files_and_time_are_no_failures_of_a_task() -> None:
    """What cannot be fetched or sent, and the end of the time, fail the job whatever it says of its tasks."""
    tasks = listed(',"ignore_failures":true,"success_on_failure":true')

    assert [Fetch(), Exit(1)] == played(tasks, ["failed"])
    assert [*WHOLE, Exit(1)] == played(tasks, ["done", "done", "done", "done", "failed"])
    assert [Fetch(), RunTask(0, 0), Send(), Exit(1)] == played(tasks, ["done", "late", "done"])


def test_images_take_no_time_of_the_limit() -> None:
    """The limit moves by what it took to get one; without a limit there is no end."""
    limit = TimeLimit(60.0, 100.0)
    limit.pulled(25.0)

    assert 185.0 == limit.until
    assert "60 s" in limit.reason
    assert float("inf") == TimeLimit(0.0, 100.0).until
