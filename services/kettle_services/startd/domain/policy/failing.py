"""
Jobs that fail soon, one after the other: a machine on which nothing works would otherwise take job after job, faster than any other.

One bad submission fails everywhere, so jobs of a single cluster count for less than those of several.
"""

from typing import Final

from kettle_wire.attempts import AttemptResult
from kettle_wire.jobs import JobId

OF_ONE_CLUSTER: Final = 4
"""So many times as many have to fail if all are of one cluster."""

Row = tuple[JobId, ...]
"""Different jobs that failed soon, with none in between that did not."""


def failed(result: AttemptResult, *, within: float) -> bool:
    """Whether an attempt failed, and within so many seconds."""
    if result.usage.wall > within:
        return False
    return not result.done or result.exit is None or result.exit.code != 0


def after(row: Row, job: JobId, *, failed: bool, most: int) -> Row:
    """The row after one more attempt; `most`: no longer one is of interest."""
    if not failed:
        return ()
    return row if job in row or len(row) >= most * OF_ONE_CLUSTER else (*row, job)


def condemns(row: Row, most: int) -> bool:
    """Whether so many failures say that it is the machine."""
    several = len({job.cluster for job in row}) > 1
    return bool(most) and len(row) >= (most if several else most * OF_ONE_CLUSTER)
