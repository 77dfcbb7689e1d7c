"""Task queues whose tasks fail here and there come in thousands of pieces."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from kettle_services.sessions.domain.task_queues.decisions import ended, leased
from kettle_services.sessions.domain.task_queues.pieces import numbers
from kettle_services.sessions.domain.task_queues.queue import TaskQueue, evolve
from kettle_wire.events.task_queue import QueueTasksAdded, TaskQueueEvent
from kettle_wire.task_queues import TaskPlan, TaskRange

from .one_queue import columns

PART = 4


def lines_of(act: Callable[[], object]) -> int:
    """How many lines of Python an act takes."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def after(queue: TaskQueue, event: TaskQueueEvent | None) -> TaskQueue:
    """What an event makes of a queue that stays."""
    assert event is not None
    found = evolve(queue, event, 0.0)
    assert found is not None
    return found


def failing(tasks: int) -> None:
    """Each second task fails each time, and comes back as a piece of its own."""
    plan = TaskPlan(retries=2)
    queue = TaskQueue(id="a", owner="ada", name="x", plan=plan, created=0.0, followed=0)
    for number in range(tasks // PART):
        part = TaskRange(1 + PART * number, PART * (number + 1))
        queue = after(queue, QueueTasksAdded(part=number + 1, tasks=part, size=1))
    while (lease := leased(queue, "7.0", 1, tasks, 1)) is not None:
        queue = after(queue, lease)
        given = list(numbers(lease.tasks))
        failed = [each for each in given if each % 2]
        queue = after(queue, ended(queue, lease.lease, ("7.0", 1), columns(*sorted(given), failed=failed)))
    assert (tasks // 2, tasks // 2) == (queue.totals.done, queue.totals.failed)
    assert () == queue.parts


def test_the_work_of_a_report_grows_with_its_tasks() -> None:
    """Twice as many that fail are twice the work, and not four times."""
    few, many = lines_of(lambda: failing(400)), lines_of(lambda: failing(800))
    assert many < 3 * few
