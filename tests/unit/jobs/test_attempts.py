"""What becomes of an attempt in the accounts."""

from kettle.jobs.attempts import EndedAttempt
from kettle.jobs.history import JobHistory, Submission
from kettle_wire.ads.types import Ad
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobRemoved,
    JobVacated,
    Usage,
    encode,
    tag_of,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

S = 1_000_000
AD: Ad = {"RequestCpus": 2, "AcctGroup": "phys.cms", "ProjectName": "tau"}
SUBMITTED = ClusterSubmitted(cluster=1, owner="ada", ad=AD, columns=[], rows=[[]])


def frame(number: int, at: float, *events: Event) -> tuple[Frame, list[Event]]:
    entries = [
        Entry(
            f"cluster/{event.cluster}" if isinstance(event, ClusterSubmitted) else "job/1.0",
            1,
            tag_of(event),
            encode(event),
        )
        for event in events
    ]
    return Frame("schedd.ap", 1, number, number * 10, round(at * S), entries), list(events)


def assigned(attempt: int = 1) -> JobAssigned:
    return JobAssigned(attempt=attempt, claim="c", slot="slot1@ep", startd="ep")


def attempts(*frames: tuple[Frame, list[Event]]) -> list[EndedAttempt]:
    past = JobHistory("ap")
    past.feed(*frame(1, 0, SUBMITTED))
    for each in frames:
        past.feed(*each)
    return past.apply_event().attempts


def test_a_program_that_ran_to_its_end() -> None:
    """
    Assigned at 100 s, measured for 30 s on 2 cores, its end recorded at 132 s: 60 core seconds, all of them good, and
    (132 - 100 - 30) * 2 = 4 of which no machine told.
    """
    usage = Usage(wall=30.0, user_cpu=40.0, system_cpu=2.5)
    (one,) = attempts(
        frame(2, 100, assigned()),
        frame(3, 132, JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=usage)),
    )
    assert ("ada", "phys.cms", "tau", "ep", "slot1@ep") == (
        one.owner, one.group, one.project, one.machine, one.slot,
    )  # fmt: skip
    assert (100 * S, 132 * S, 132 * S) == (one.begun, one.ended, one.until)
    assert (30 * S, 60 * S, 42_500_000, 30 * S, 4 * S) == (
        one.wall, one.slot_time, one.cpu, one.good, one.uncharged,
    )  # fmt: skip
    assert (True, 0, 3, JobId(1, 0), 1) == (one.completed, one.code, one.frame, one.job, one.number)


def test_what_an_eviction_loses() -> None:
    """
    Evicted after 30 s without a checkpoint: nothing is good.  The next attempt saved its first 20 of 30 s: these are.
    """
    lost = JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=Usage(wall=30.0))
    saved = JobCheckpointed(attempt=2, number=1, usage=Usage(wall=20.0))
    first, second = attempts(
        frame(2, 0, assigned()),
        frame(3, 30, lost),
        frame(4, 40, assigned(2)),
        frame(5, 61, saved),
        frame(6, 70, JobVacated(attempt=2, ending=Ending(code=1004, reason="v"), usage=Usage(wall=30.0))),
    )
    assert [(0, 1004, False), (20 * S, 1004, False)] == [
        (one.good, one.code, one.completed) for one in (first, second)
    ]


def test_a_program_that_ended_and_stays_in_the_queue() -> None:
    """A policy has it run again: its work is not lost, and the job is not complete. Nor is a removed one."""
    again = JobVacated(
        attempt=1, ending=Ending(code=1005, reason="again"), exit=ExitRecord(code=1), usage=Usage(wall=5.0)
    )
    killed = JobVacated(attempt=2, ending=Ending(code=1023, reason="removed"), usage=Usage(wall=5.0))
    first, second = attempts(
        frame(2, 0, assigned()),
        frame(3, 5, again),
        frame(4, 10, assigned(2)),
        frame(5, 15, JobRemoved(), killed),
    )
    assert [(5 * S, False), (0, False)] == [(one.good, one.completed) for one in (first, second)]


def test_a_machine_that_never_told() -> None:
    """Its lease was over after 900 s: nothing was measured, and 1800 core seconds are uncharged."""
    (one,) = attempts(
        frame(2, 0, assigned()), frame(3, 900, JobVacated(attempt=1, ending=Ending(code=1008, reason="away")))
    )
    assert (0, 0, 0, 1800 * S) == (one.wall, one.slot_time, one.good, one.uncharged)


def test_a_clock_that_was_put_back() -> None:
    """The end is recorded 5 s after the beginning and the machine measured 30 s: what was measured counts."""
    gone = JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=Usage(wall=30.0))
    (one,) = attempts(frame(2, 100, assigned()), frame(3, 105, gone))
    assert (30 * S, 0, 130 * S) == (one.wall, one.uncharged, one.until)


def test_going_on_from_what_was_stored() -> None:
    """A fold that knows only what was stored of the job tells the same of its attempt."""
    parts = [
        frame(2, 0.25, assigned()),
        frame(3, 21, JobCheckpointed(attempt=1, number=1, usage=Usage(wall=20.0))),
        frame(4, 30, JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=Usage(wall=29.5))),
    ]
    whole = attempts(*parts)
    first = JobHistory("ap")
    first.feed(*frame(1, 0, SUBMITTED))
    for part in parts[:2]:
        first.feed(*part)
    stored = first.apply_event().happened
    second = JobHistory("ap", {1: Submission(0, SUBMITTED)}, stored)
    second.feed(*parts[2])
    assert whole == second.apply_event().attempts
    assert 20 * S == whole[0].good
