"""The laws find what they are there to find: a harness that sees nothing would call every pool sound."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kettle.testing.chaos import invariants
from kettle.testing.chaos.bus_server import BusHoldings, nothing_leaked
from kettle.testing.chaos.evidence import FACTOR, Evidence
from kettle.testing.chaos.history import RecordedHistory, flaws
from kettle.testing.chaos.workload import Command, PromiseRecord, Submission
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.commands.accounting import OwnerUsage
from kettle_wire.commands.schedd import JobOutcome
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobNodeStarted,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobVacated,
    Usage,
)
from kettle_wire.events.job import NodeSlot
from kettle_wire.jobs import JobId

JOB = JobId(1, 0)
RUN = (
    JobAssigned(attempt=1, claim="c", slot="s", startd="m"),
    JobStarted(attempt=1),
    JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=Usage(wall=2.0)),
)


def past(*events: Event, batch: str = "b1") -> RecordedHistory:
    found = RecordedHistory()
    found.put(
        "cluster/1", ClusterSubmitted(cluster=1, owner="me", ad={"ChaosBatch": batch}, columns=[], rows=[[]])
    )
    for event in events:
        found.put(f"job/{JOB}", event)
    return found


def again(attempt: int) -> JobAssigned:
    return JobAssigned(attempt=attempt, claim="c", slot="s", startd="m")


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    found = Evidence.prepare(tmp_path / "evidence", tmp_path / "work")
    for name in ("runs", "done"):
        (found.directory / name).write_text("b1.0\n")
    (found.work / "result.b1.0").write_text(f"b1.0 {FACTOR}\n")
    (found.work / "out.b1.0").write_text("this is b1.0\n")
    return found


@pytest.mark.parametrize(
    "life",
    [
        RUN,
        (
            RUN[0],
            JobVacated(attempt=1, ending=Ending(code=1, reason="")),
            again(2),
            JobStarted(attempt=2),
            JobRemoved(),
        ),
        (
            RUN[0],
            JobHeld(code=1, reason=""),
            JobReleased(),
            JobVacated(attempt=1, ending=Ending(code=1, reason="")),
        ),
        (RUN[0], JobRemoved(), JobVacated(attempt=1, ending=Ending(code=1, reason=""))),
        (RUN[0], JobRemoved(), RUN[1], JobVacated(attempt=1, ending=Ending(code=1023, reason=""))),
    ],
)
def test_sound_lives(life: Sequence[Event]) -> None:
    """What happens in a sound pool is no flaw."""
    assert [] == flaws(life)


@pytest.mark.parametrize(
    ("life", "found"),
    [
        ((RUN[0], again(2)), "attempt 2 after 1"),
        ((again(2),), "attempt 2 after 0"),
        ((*RUN, JobRemoved()), "JobRemoved after JobCompleted"),
        (
            (RUN[0], JobRemoved(), JobVacated(attempt=1, ending=Ending(code=1, reason="")), RUN[1]),
            "JobStarted after JobRemoved",
        ),
        ((*RUN, RUN[2]), "JobCompleted after JobCompleted"),
        ((RUN[0], RUN[1], RUN[1]), "attempt 1 started while"),
        ((RUN[2],), "attempt 1 ended while none"),
        ((JobReleased(),), "released, but not held"),
        ((JobHeld(code=1, reason=""), RUN[0]), "held: True"),
    ],
)
def test_flawed_lives(life: Sequence[Event], found: str) -> None:
    """Attempts that overlap, ends of what did not run, life after the end."""
    assert found in "; ".join(flaws(life))


def test_lost_cluster() -> None:
    """A cluster that was acknowledged and is not recorded, or with too few jobs, is found."""
    told = PromiseRecord([Submission(batch="b1", count=1, cluster=1)])
    assert invariants.nothing_lost(told, past()).kept
    assert not invariants.nothing_lost(told, RecordedHistory()).kept
    assert not invariants.nothing_lost(
        PromiseRecord([Submission(batch="b1", count=2, cluster=1)]), past()
    ).kept
    assert not invariants.nothing_lost(told, past(batch="b2")).kept


def test_cluster_twice() -> None:
    """A submission that was repeated and recorded each time is found."""
    asked = PromiseRecord([Submission(batch="b1", count=1)])
    twice = past()
    assert invariants.nothing_submitted_twice(asked, twice).kept
    twice.put(
        "cluster/2", ClusterSubmitted(cluster=2, owner="me", ad={"ChaosBatch": "b1"}, columns=[], rows=[[]])
    )
    assert not invariants.nothing_submitted_twice(asked, twice).kept


def test_answer_without_event() -> None:
    """
    A command that was answered and left nothing, or was carried out more often than asked for, is found.
    """
    told = Command(action="remove", jobs=[JOB], outcomes=[JobOutcome(JOB, "done")], answered=True)
    recorder = PromiseRecord([Submission(batch="b1", count=1, cluster=1)], [told])
    assert invariants.answers_hold(recorder, past(JobRemoved())).kept
    assert not invariants.answers_hold(recorder, past()).kept
    assert not invariants.answers_hold(PromiseRecord(recorder.submissions), past(JobRemoved())).kept


def test_job_without_end() -> None:
    """A job that has neither completed nor was removed is found."""
    assert invariants.everything_ended(past(*RUN)).kept
    assert not invariants.everything_ended(past(RUN[0])).kept


def test_second_run(evidence: Evidence) -> None:
    """A job that ran more often than the record says, or met itself, or never ran, is found."""
    assert invariants.nothing_run_twice(past(*RUN), evidence).kept
    (evidence.directory / "runs").write_text("b1.0\nb1.0\n")
    assert not invariants.nothing_run_twice(past(*RUN), evidence).kept
    (evidence.directory / "runs").write_text("")
    assert not invariants.nothing_run_twice(past(*RUN), evidence).kept
    (evidence.directory / "runs").write_text("b1.0\n")
    (evidence.directory / "overlaps").write_text("b1.0\n")
    assert not invariants.nothing_run_twice(past(*RUN), evidence).kept


def test_nodes_that_are_not_together(evidence: Evidence) -> None:
    """A job of two nodes that begins with one of them, and a node that runs without a slot."""
    assigned = JobAssigned(
        attempt=1, claim="c", slot="s", startd="m", nodes=[NodeSlot(claim="d", slot="t", startd="m")]
    )
    first, second = (
        JobNodeStarted(attempt=1, node=node, claim=claim, slot=slot, at=0.0)
        for node, claim, slot in ((0, "c", "s"), (1, "d", "t"))
    )
    (evidence.directory / "others").write_text("b1.0\n")
    assert invariants.nodes_together(past(assigned, first, second, *RUN[1:]), evidence).kept
    assert not invariants.nodes_together(past(assigned, first, *RUN[1:]), evidence).kept
    (evidence.directory / "others").write_text("b1.0\nb1.0\n")
    assert not invariants.nodes_together(past(assigned, first, second, *RUN[1:]), evidence).kept


def test_wrong_output(evidence: Evidence) -> None:
    """A completed job with a missing or another output, or another exit code, is found."""
    assert invariants.outputs(past(*RUN), evidence).kept
    assert not invariants.outputs(
        past(RUN[0], JobCompleted(attempt=1, exit=ExitRecord(code=3))), evidence
    ).kept
    (evidence.work / "out.b1.0").write_text("")
    assert not invariants.outputs(past(*RUN), evidence).kept
    (evidence.work / "result.b1.0").unlink()
    assert not invariants.outputs(past(*RUN), evidence).kept


@pytest.mark.parametrize(
    ("completed", "attempts", "wall", "kept"),
    [(1, 1, 2.0, True), (0, 1, 2.0, False), (1, 2, 2.0, False), (1, 1, 2.1, False)],
)
def test_usage(completed: int, attempts: int, wall: float, kept: bool) -> None:
    """Accounting that counts another number of jobs, attempts or seconds is found."""
    said = OwnerUsage(
        owner="me", jobs_completed=completed, attempts=attempts, wall=wall, slot_time=wall, cpu=0.0
    )
    assert kept == invariants.usage_is_attempts(past(*RUN), [said]).kept


@pytest.mark.parametrize(
    "after",
    [
        BusHoldings({"schedd": 30}, {"schedd": 1}, {"KV": 1}, set()),
        BusHoldings({"schedd": 10}, {"schedd": 2}, {"KV": 1}, set()),
        BusHoldings({"schedd": 10}, {"schedd": 1}, {"KV": 2}, set()),
        BusHoldings({"schedd": 10}, {"schedd": 1}, {"KV": 1}, {"KV/left"}),
    ],
)
def test_leaks_on_the_bus(after: BusHoldings) -> None:
    """
    A connection, many subscriptions, a reader more than before, and a consumer that stays unread, are each found.
    """
    before = BusHoldings({"schedd": 10}, {"schedd": 1}, {"KV": 1}, set())
    assert nothing_leaked(before, before).kept
    assert not nothing_leaked(before, after).kept
