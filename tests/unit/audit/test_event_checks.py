"""What the walk over a log finds of events of many jobs."""

import msgspec
import pytest

from kettle.audit.event_checks import Recorded, Walk
from kettle.audit.report import AuditReport
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    JobHeld,
    JobRemoved,
    JobsChanged,
    Procs,
    encode,
    tag_of,
)
from kettle_wire.frames import Entry

HELD, REMOVED = JobHeld(code=1, reason="r"), JobRemoved()


def many(event: Event, *jobs: Procs, tag: str = "") -> JobsChanged:
    return JobsChanged(cluster=1, type=tag or tag_of(event), data=msgspec.Raw(encode(event)), jobs=list(jobs))


def found(*recorded: tuple[str, int, Event | bytes], one_frame: bool = False) -> dict[str, tuple[int, str]]:
    """The first problem of each check that has one, after the submission of four jobs."""
    report = AuditReport.empty()
    walk = Walk("schedd.ap", report)
    submitted = ClusterSubmitted(cluster=1, owner="ann", ad={}, columns=[], rows=[[], [], [], []])
    for position, (stream, version, event) in enumerate([("cluster/1", 1, submitted), *recorded], start=1):
        data, tag = (event, "jobs.changed/1") if isinstance(event, bytes) else (encode(event), tag_of(event))
        frame = 1 if one_frame else position
        walk.feed(Recorded(position, frame, 1, 10**6, Entry(stream, version, tag, data)))
    walk.finish()
    return {
        check.name: (check.first.position, check.first.sentence)
        for check in report.checks
        if check.first is not None
    }


@pytest.mark.parametrize("one_frame", [False, True])
def test_streams_go_on_through_events_of_many_jobs(*, one_frame: bool) -> None:
    """
    Held with others, released and held alone, removed with all: numbered without a gap, in one frame or in many.
    """
    assert {} == found(
        ("jobs/1", 1, many(HELD, Procs(0, 4, 1))),
        ("job/1.2", 2, HELD),
        ("jobs/1", 2, many(REMOVED, Procs(0, 2, 2), Procs(2, 1, 3), Procs(3, 1, 2))),
        one_frame=one_frame,
    )


@pytest.mark.parametrize("twice", [False, True])
def test_clusters_that_were_submitted_together_each_have_their_stream(*, twice: bool) -> None:
    """Their jobs go on from there, and a number that is given again is found."""
    together = ClustersSubmitted(first=2, owner="ann", ad={}, columns=[], rows=[[], []])
    again = ClustersSubmitted(first=3 if twice else 4, owner="ann", ad={}, columns=[], rows=[[]])
    problems = found(("clusters/0", 1, together), ("job/3.0", 1, HELD), ("clusters/0", 2, again))
    assert ({"versions": (4, "version 1 of cluster/3 follows version 1")} if twice else {}) == problems


@pytest.mark.parametrize(
    ("event", "check", "sentence"),
    [
        (many(HELD, Procs(0, 4, 1)), "versions", "version 1 of job/1.2 follows version 1"),
        (many(HELD, Procs(0, 2, 1), Procs(2, 1, 4)), "versions", "version 4 of job/1.2 follows version 1"),
        (
            many(HELD, Procs(0, 1, 1), tag="job.removed/1"),
            "events",
            "its type is job.removed/1, its event job.held/1",
        ),
        (encode(HELD), "events", "the type is jobs.changed/1, the event job.held/1"),
        (encode(many(HELD, Procs(0, 1, 1)))[:-3], "events", "jobs/1: cannot read a recorded event"),
    ],
    ids=["a number twice", "a gap", "another type", "no such event", "garbled"],
)
def test_damage_is_found_where_it_is(event: Event | bytes, check: str, sentence: str) -> None:
    """At the position of the event, and with the stream of the job if that is what is wrong."""
    [(name, (position, said))] = found(("job/1.2", 1, HELD), ("jobs/1", 1, event)).items()
    assert (check, 3) == (name, position)
    assert sentence in said


def test_what_comes_after_the_end_is_found() -> None:
    """Job 1.3 completed alone; then it is held with the others."""
    problems = found(("jobs/1", 1, many(REMOVED, Procs(0, 4, 1))), ("jobs/1", 2, many(HELD, Procs(2, 2, 2))))
    assert {"attempts": (3, "JobHeld of job/1.2 comes after the job was over")} == problems
