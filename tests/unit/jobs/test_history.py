import pytest

from kettle.jobs.history import (
    Departed,
    Happened,
    JobHistory,
    OwnerTotals,
    Submission,
    UnknownJobError,
    touched,
)
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobVacated,
    Usage,
    encode,
    tag_of,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

SUBMITTED = ClusterSubmitted(cluster=1, owner="alice", ad={"RequestCpus": 2}, columns=[], rows=[[], []])
ASSIGNED = JobAssigned(attempt=1, claim="c", slot="s", startd="d")
STARTED = JobStarted(attempt=1, pid=1)
USAGE = Usage(wall=1.5, user_cpu=0.25, system_cpu=0.5)
DONE = JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=USAGE)
VACATED = JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=USAGE)
AT = 1_000_000


def frame(number: int, *changes: tuple[str, Event]) -> tuple[Frame, list[Event]]:
    entries = [Entry(stream, 1, tag_of(event), encode(event)) for stream, event in changes]
    return Frame("schedd.ap", 1, number, number, number * AT, entries), [event for _, event in changes]


def test_a_completed_job_departs() -> None:
    """A job that has run to its end is in the history with its ad, and its owner has used what it used."""
    past = JobHistory("ap")
    past.feed(*frame(1, ("cluster/1", SUBMITTED)))
    past.feed(*frame(2, ("job/1.0", ASSIGNED), ("job/1.0", STARTED)))
    past.feed(*frame(3, ("job/1.0", DONE)))
    changes = past.apply_event()
    (departed,) = changes.departed
    assert (JobId(1, 0), "alice", 4, AT, 3 * AT, 3) == (
        departed.job, departed.owner, departed.status, departed.submitted_at, departed.left_at, departed.frame,
    )  # fmt: skip
    assert (0, "ap#1.0#1") == (departed.ad["ExitCode"], departed.ad["GlobalJobId"])
    assert {} == changes.happened
    expected = OwnerTotals(jobs_completed=1, attempts=1, wall=1_500_000, slot_time=3_000_000, cpu=750_000)
    assert {"alice": expected} == changes.spent


def test_attempts_that_failed_were_used_too() -> None:
    """A vacated attempt counts as an attempt and as used, not as a completed job."""
    past = JobHistory("ap")
    past.feed(*frame(1, ("cluster/1", SUBMITTED), ("job/1.0", ASSIGNED), ("job/1.0", VACATED)))
    changes = past.apply_event()
    assert [] == changes.departed
    assert (0, 1, 1_500_000) == (
        changes.spent["alice"].jobs_completed, changes.spent["alice"].attempts, changes.spent["alice"].wall,
    )  # fmt: skip
    assert 2 == len(changes.happened[JobId(1, 0)])


def test_removed_jobs_depart() -> None:
    """An idle job departs when it is removed, a running one when its attempt has ended."""
    past = JobHistory("ap")
    past.feed(*frame(1, ("cluster/1", SUBMITTED), ("job/1.0", JobRemoved(reason="r")), ("job/1.1", ASSIGNED)))
    past.feed(*frame(2, ("job/1.1", JobRemoved(reason="r"))))
    assert [JobId(1, 0)] == [departed.job for departed in past.apply_event().departed]
    past.feed(*frame(3, ("job/1.1", VACATED)))
    assert [(JobId(1, 1), 3)] == [(departed.job, departed.status) for departed in past.apply_event().departed]


def test_going_on_from_what_was_stored() -> None:
    """A fold in pieces, each from what the last one stored, departs with the same ad as a fold in one go."""
    frames = [
        frame(1, ("cluster/1", SUBMITTED)),
        frame(2, ("job/1.0", ASSIGNED)),
        frame(3, ("job/1.0", VACATED), ("job/1.0", JobHeld(code=1, reason="h"))),
        frame(4, ("job/1.0", JobReleased()), ("job/1.0", ASSIGNED)),
        frame(5, ("job/1.0", DONE)),
    ]
    whole = JobHistory("ap")
    clusters: dict[int, Submission] = {}
    jobs: dict[JobId, list[Happened]] = {}
    departed: list[Departed] = []
    for one in frames:
        whole.feed(*one)
        piece = JobHistory("ap", clusters, jobs)
        piece.feed(*one)
        changes = piece.apply_event()
        departed += changes.departed
        clusters |= changes.submitted
        for cluster, submission in changes.submitted.items():
            jobs |= {JobId(cluster, proc): [] for proc in range(len(submission.event.rows))}
        for job, happened in changes.happened.items():
            jobs.setdefault(job, []).extend(happened)
    assert whole.apply_event().departed == departed
    assert 5 == len(jobs[JobId(1, 0)])


def test_a_job_that_nobody_submitted() -> None:
    """An event of an unknown job stops the fold: it is never skipped."""
    with pytest.raises(UnknownJobError, match=r"job 1\.0"):
        JobHistory("ap").feed(*frame(1, ("job/1.0", ASSIGNED)))
    past = JobHistory("ap")
    past.feed(*frame(1, ("cluster/1", SUBMITTED)))
    with pytest.raises(UnknownJobError, match=r"job 1\.2"):
        past.feed(*frame(2, ("job/1.2", ASSIGNED)))


def test_nothing_is_kept_of_what_is_over() -> None:
    """When all jobs of a cluster have departed, the cluster is unknown."""
    past = JobHistory("ap")
    removed = JobRemoved()
    past.feed(*frame(1, ("cluster/1", SUBMITTED), ("job/1.0", removed), ("job/1.1", removed)))
    with pytest.raises(UnknownJobError):
        past.feed(*frame(2, ("job/1.0", ASSIGNED)))


def test_touched() -> None:
    """Only jobs are touched, each once."""
    one, _ = frame(1, ("cluster/1", SUBMITTED), ("job/1.0", ASSIGNED), ("job/1.0", STARTED))
    assert {"job/1.0": JobId(1, 0)} == touched([one])
