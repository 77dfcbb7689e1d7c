"""Results of tasks, one by one."""

from collections.abc import Iterator

import msgspec

from kettle_wire.commands.task_queues import TaskBatch


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a task."""

    task: int
    ok: bool
    exit: int | None = None
    """The exit code, or the number of the signal below zero; None: its worker was lost each time."""
    wall: float = 0.0
    """Seconds that it ran."""
    cpu: float = 0.0
    """Seconds of processors that it used."""
    reason: str = ""
    output: bytes = b""
    """What it printed or returned, as much as its queue keeps."""
    cut: bool = False
    """It printed more."""
    job: str = ""
    """The worker."""
    at: float = 0.0
    """When it was recorded, in seconds since the epoch."""


def results_of(batch: TaskBatch) -> Iterator[TaskResult]:
    """The result of each task of a batch."""
    columns = batch.results
    exits = {each.place: each for each in columns.exits}
    cut = frozenset(columns.cut)
    numbers = (number for each in columns.tasks for number in range(each.first, each.last + 1))
    for place, number in enumerate(numbers):
        if batch.reason:
            yield TaskResult(task=number, ok=False, reason=batch.reason, job=batch.job, at=batch.at)
            continue
        bad = exits.get(place)
        yield TaskResult(
            task=number,
            ok=bad is None,
            exit=bad.exit if bad else 0,
            wall=columns.wall_us[place] / 1e6,
            cpu=columns.cpu_us[place] / 1e6,
            reason=bad.reason if bad else "",
            output=columns.outputs[place] if columns.outputs else b"",
            cut=place in cut,
            job=batch.job,
            at=batch.at,
        )
