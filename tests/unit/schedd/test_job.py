"""What may happen to one job, given what has happened to it."""

import pytest

from kettle.schedd.domain.job import (
    Assign,
    Begin,
    Command,
    Continue,
    End,
    Finish,
    Hold,
    Job,
    Refused,
    Release,
    Remove,
    Suspend,
    decide,
    evolve,
)
from kettle.wire.events import (
    JobAssigned,
    JobCompleted,
    JobContinued,
    JobEvent,
    JobHeld,
    JobStarted,
    JobSuspended,
    JobVacated,
    Usage,
)


def given(*commands: Command) -> Job:
    job = Job()
    for command in commands:
        for event in decide(job, command):
            job = evolve(job, event)
    return job


def finish(attempt: int = 1, claim: str = "c") -> Finish:
    return Finish(attempt, claim, 0, None, 9.0, Usage())


assign = Assign("c", "slot1_1@m", "m")
begin = Begin(1, "c", 42, 1.0)
end = End(1, "c", 1013, "the machine is draining")
hold = Hold("not now", "alice")
release = Release("go on", "alice")
remove = Remove("never mind", "alice")


def test_a_job_runs_to_its_end() -> None:
    """
    Assigned, begun and finished, a job is completed and over.
    """
    job = given(assign, begin, finish())
    assert ("completed", True) == (job.status, job.over)


def test_a_job_with_a_live_attempt_is_never_assigned() -> None:
    """
    A job that was held and released while it ran is idle, but does not run again before its attempt has ended.
    """
    job = given(assign, hold, release)
    assert ("idle", False) == (job.status, job.runnable)
    with pytest.raises(Refused, match="idle"):
        decide(job, assign)
    assert given(assign, hold, release, end).runnable


def test_reports_of_another_attempt_record_nothing() -> None:
    """
    What an attempt that is over still has to say changes nothing.
    """
    job = given(assign, end, Assign("d", "slot1_2@m", "m"))
    assert [] == decide(job, finish())
    assert [] == decide(job, begin)
    assert [] == decide(job, end)


@pytest.mark.parametrize("command", [hold, remove])
def test_said_twice_is_said_once(command: Command) -> None:
    """
    A hold or removal that is repeated records nothing.
    """
    assert [] == decide(given(command), command)


def test_an_attempt_that_asks_for_a_hold_holds_its_job() -> None:
    """
    The attempt's end and its use are recorded, and then the hold with the worker's codes.
    """
    failed = End(1, "c", 6, "no such file", hold=True, subcode=2, usage=Usage(wall=1.0))
    events = decide(given(assign), failed)
    assert [JobVacated, JobHeld] == [type(event) for event in events]
    assert (6, 2) == (events[1].code, events[1].subcode) if isinstance(events[1], JobHeld) else False


def test_a_removed_job_that_finishes_stays_removed() -> None:
    """
    A result that comes after the removal frees the claim and does not complete the job.
    """
    job = given(assign, remove)
    assert not job.over
    assert [JobVacated] == [type(event) for event in decide(job, finish())]
    assert given(assign, remove, finish()).over


def test_a_held_job_that_finishes_is_completed() -> None:
    """
    The work was done before the hold reached the machine: it is not done again.
    """
    assert "completed" == given(assign, hold, finish()).status


@pytest.mark.parametrize(
    ("job", "command"),
    [
        (given(), release),
        (given(assign), release),
        (given(remove), hold),
        (given(assign, finish()), remove),
        (given(hold), assign),
    ],
)
def test_what_the_state_does_not_allow_is_refused(job: Job, command: Command) -> None:
    """
    A refusal records nothing and says what the job is.
    """
    with pytest.raises(Refused, match=job.status):
        decide(job, command)


def test_attempts_count_from_one() -> None:
    """
    Each assignment is a new attempt, and an attempt begins once.
    """
    events: list[JobEvent] = []
    job = Job()
    for command in (assign, begin, begin, end, assign, Begin(2, "c", 7, 2.0)):
        for event in decide(job, command):
            events.append(event)
            job = evolve(job, event)
    assert [1, 2] == [event.attempt for event in events if isinstance(event, JobAssigned)]
    assert [1, 2] == [event.attempt for event in events if isinstance(event, JobStarted)]
    assert not any(isinstance(event, JobCompleted) for event in events)


def failed(*codes: int) -> Job:
    """
    A job whose attempts ended with these codes.
    """
    job = Job()
    for number, code in enumerate(codes, start=1):
        claim = f"c{number}"
        for command in (Assign(claim, "s", "m"), End(number, claim, code, "r")):
            for event in decide(job, command):
                job = evolve(job, event)
    return job


def test_a_job_that_fails_again_and_again_waits_longer_and_longer() -> None:
    """
    The first failure costs no time; machines that drain, and people, do not count as failures.
    """
    assert [0.0, 0.5, 1.0, 2.0] == [failed(*[1007] * n).cooling for n in (1, 2, 3, 4)]
    assert 300.0 == failed(*[1007] * 40).cooling
    assert 0.0 == failed(1007, 1007, 1013).cooling
    job = failed(1007, 1007, 1007)
    for command in (hold, release):
        for event in decide(job, command):
            job = evolve(job, event)
    assert 0.0 == job.cooling


def test_a_suspended_job_runs_and_says_so() -> None:
    """
    Each word counts once, only of the attempt that lives, and only in turn.
    """
    still, on = Suspend(1, "c", 3, 2.0), Continue(1, "c", 4.0)
    running = given(assign, begin)

    assert [] == decide(running, on)
    assert [JobSuspended(attempt=1, processes=3, at=2.0)] == decide(running, still)
    suspended = given(assign, begin, still)
    assert ("running", True, []) == (suspended.status, suspended.suspended, decide(suspended, still))
    assert [JobContinued(attempt=1, at=4.0)] == decide(suspended, on)
    assert not given(assign, begin, still, on).suspended
    assert [] == decide(suspended, Suspend(2, "c", 1, 9.0))


@pytest.mark.parametrize("command", [hold, remove, end, finish()])
def test_no_suspension_outlasts_its_attempt(command: Command) -> None:
    """
    Held, removed, vacated or finished: what the worker still says of it is stale.
    """
    job = given(assign, begin, Suspend(1, "c", 3, 2.0), command)

    assert not job.suspended
    assert [] == decide(job, Continue(1, "c", 4.0))
    assert [] == decide(job, Suspend(1, "c", 3, 5.0))
