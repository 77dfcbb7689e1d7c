"""How far jobs are, as a fold."""

import pytest

from kettle.client import JobId, JobState, Progress
from kettle.client.events.progress import state_after, state_after_all, state_of
from kettle_wire.ads.types import Ad
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import (
    Event,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobVacated,
)

ASSIGNED = JobAssigned(attempt=1, claim="c", slot="s", startd="m")
STARTED = JobStarted(attempt=1)
VACATED = JobVacated(attempt=1, ending=Ending(code=1, reason="x"))
HELD = JobHeld(code=1, reason="x")
A, B, C = JobId(1, 0), JobId(1, 1), JobId(1, 2)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([], "idle"),
        ([ASSIGNED], "running"),
        ([ASSIGNED, STARTED], "running"),
        ([ASSIGNED, VACATED], "idle"),
        ([ASSIGNED, HELD], "held"),
        ([ASSIGNED, HELD, VACATED], "held"),
        ([ASSIGNED, HELD, VACATED, JobReleased()], "idle"),
        ([ASSIGNED, JobCompleted(attempt=1, exit=ExitRecord(code=0))], "completed"),
        ([ASSIGNED, JobRemoved(), VACATED], "removed"),
        ([ASSIGNED, JobRemoved(), JobCompleted(attempt=1, exit=ExitRecord(code=0))], "removed"),
    ],
)
def test_status_after_events(events: list[Event], status: str) -> None:
    """The last thing that changed the status counts; an end is an end."""
    assert status == state_after_all(events).status


def test_well() -> None:
    """Only exit code 0 is well; a signal, another code and a removal are not."""
    assert state_after(JobState(), JobCompleted(attempt=1, exit=ExitRecord(code=0))).well
    assert not state_after(JobState(), JobCompleted(attempt=1, exit=ExitRecord(code=1))).well
    assert not state_after(JobState(), JobCompleted(attempt=1, exit=ExitRecord(signal=9))).well
    assert not state_after(JobState(), JobRemoved()).well


def test_ads_and_events_agree() -> None:
    """The ad of a job gives the same state as its events."""
    ad: Ad = {"JobStatus": 4, "ExitCode": 3}
    assert state_after(JobState("running"), JobCompleted(attempt=1, exit=ExitRecord(code=3))) == state_of(ad)


def test_counts_follow() -> None:
    """
    Counts are those of the jobs at any moment; a job that is added twice is new once; unknown jobs are not added.
    """
    progress = Progress(dict.fromkeys((A, B, C), JobState()))
    assert progress.put(A, JobState("completed", 0))
    assert not progress.put(A, JobState("completed", 0))
    assert not progress.put(JobId(9, 9), JobState("held"))
    assert progress.put(B, JobState("held"))
    assert (3, 1, False, False) == (progress.total, progress.done, progress.ended, progress.stuck)
    assert progress.put(C, JobState("removed"))
    assert (2, True) == (progress.done, progress.stuck)
    assert [C] == [job for job, _ in progress.bad()]
    assert progress.put(B, JobState("completed", 0))
    assert (True, False) == (progress.ended, progress.stuck)
