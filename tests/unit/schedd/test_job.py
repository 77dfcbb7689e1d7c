"""What may happen to one job, given what has happened to it."""

import pytest

from kettle_services.schedd.domain.jobs.commands import (
    Assign,
    Begin,
    Checkpoint,
    Command,
    Continue,
    Disconnect,
    End,
    Hold,
    Pass,
    Reconnect,
    Release,
    Remove,
    Suspend,
)
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.job import Job, evolve
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.events import (
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDisconnected,
    JobEdited,
    JobEvent,
    JobHeld,
    JobReconnected,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobVacated,
    Usage,
)
from kettle_wire.tasks import MOST_STEPS, Step


def given(*commands: Command) -> Job:
    job = Job()
    for command in commands:
        for event in decide(job, command):
            job = evolve(job, event)
    return job


def finish(attempt: int = 1, claim: str = "c") -> End:
    return End(
        attempt=attempt, claim=claim, result=AttemptResult(exit=ExitRecord(code=0, at=9.0), usage=Usage())
    )


assign = Assign("c", "slot1_1@m", "m")
begin = Begin(1, "c", 42, 1.0)
end = End(
    attempt=1, claim="c", result=AttemptResult(ending=Ending(code=1013, reason="the machine is draining"))
)
hold = Hold("not now", "alice")
release = Release("go on", "alice")
remove = Remove("never mind", "alice")


def test_a_job_runs_to_its_end() -> None:
    """Assigned, begun and finished, a job is completed and over."""
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
    """What an attempt that is over still has to say changes nothing."""
    job = given(assign, end, Assign("d", "slot1_2@m", "m"))
    assert [] == decide(job, finish())
    assert [] == decide(job, begin)
    assert [] == decide(job, end)


@pytest.mark.parametrize("command", [hold, remove])
def test_said_twice_is_said_once(command: Command) -> None:
    """A hold or removal that is repeated records nothing."""
    assert [] == decide(given(command), command)


def test_an_attempt_that_asks_for_a_hold_holds_its_job() -> None:
    """The attempt's end and its use are recorded, and then the hold with the worker's codes."""
    failed = End(
        attempt=1,
        claim="c",
        result=AttemptResult(ending=Ending(code=6, reason="no such file", subcode=2), usage=Usage(wall=1.0)),
    )
    events = decide(given(assign), failed)
    assert [JobVacated, JobHeld] == [type(event) for event in events]
    assert (6, 2) == (events[1].code, events[1].subcode) if isinstance(events[1], JobHeld) else False


def test_a_removed_job_that_finishes_stays_removed() -> None:
    """A result that comes after the removal frees the claim and does not complete the job."""
    job = given(assign, remove)
    assert not job.over
    assert [JobVacated] == [type(event) for event in decide(job, finish())]
    assert given(assign, remove, finish()).over


def test_a_removed_job_asks_for_nothing_more() -> None:
    """
    It leaves the queue with the end of its attempt, however this ended: nothing can be recorded of it after that.
    """
    ending = Ending(code=34, reason="it ran out of memory")
    ran_out = End(attempt=1, claim="c", result=AttemptResult(ending=ending), more={"RequestMemory": 64})
    assert [JobVacated] == [type(event) for event in decide(given(assign, remove), ran_out)]
    assert [JobVacated, JobEdited] == [type(event) for event in decide(given(assign, hold), ran_out)]


def test_a_held_job_that_finishes_is_completed() -> None:
    """The work was done before the hold reached the machine: it is not done again."""
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
    """A refusal records nothing and says what the job is."""
    with pytest.raises(Refused, match=job.status):
        decide(job, command)


def test_attempts_count_from_one() -> None:
    """Each assignment is a new attempt, and an attempt begins once."""
    events: list[JobEvent] = []
    job = Job()
    for command in (assign, begin, begin, end, assign, Begin(2, "c", 7, 2.0)):
        for event in decide(job, command):
            events.append(event)
            job = evolve(job, event)
    assert [1, 2] == [event.attempt for event in events if isinstance(event, JobAssigned)]
    assert [1, 2] == [event.attempt for event in events if isinstance(event, JobStarted)]
    assert not any(isinstance(event, JobCompleted) for event in events)


def failed(*codes: int, began: bool = False) -> Job:
    """A job whose attempts ended with these codes, before or after their program had begun."""
    job = Job()
    for number, code in enumerate(codes, start=1):
        claim = f"c{number}"
        commands: list[Command] = [
            Assign(claim, "s", "m"),
            End(
                attempt=number,
                claim=claim,
                result=AttemptResult(ending=Ending(code=code, reason="r")),
                cool_down=20.0,
            ),
        ]
        for command in commands if not began else [commands[0], Begin(number, claim, 1, 1.0), commands[1]]:
            for event in decide(job, command):
                job = evolve(job, event)
    return job


def test_a_job_whose_start_fails_waits_and_each_time_longer() -> None:
    """Machines that drain, and people, do not count as failures."""
    assert [20.0, 40.0, 80.0, 160.0, 300.0] == [failed(*[1034] * n).cooling for n in (1, 2, 3, 4, 5)]
    assert 300.0 == failed(*[1007] * 2000).cooling
    assert 0.0 == failed(1007, 1007, 1013).cooling
    job = failed(1007, 1007, 1007)
    for command in (hold, release):
        for event in decide(job, command):
            job = evolve(job, event)
    assert 0.0 == job.cooling


def test_a_suspended_job_runs_and_says_so() -> None:
    """Each word counts once, only of the attempt that lives, and only in turn."""
    still, on = Suspend(1, "c", 3, 2.0), Continue(1, "c", 4.0)
    running = given(assign, begin)

    assert [] == decide(running, on)
    assert [JobSuspended(attempt=1, processes=3, at=2.0)] == decide(running, still)
    suspended = given(assign, begin, still)
    assert ("running", True, []) == (suspended.status, suspended.attempt.suspended, decide(suspended, still))
    assert [JobContinued(attempt=1, at=4.0)] == decide(suspended, on)
    assert not given(assign, begin, still, on).attempt.suspended
    assert [] == decide(suspended, Suspend(2, "c", 1, 9.0))


@pytest.mark.parametrize("command", [hold, remove, end, finish()])
def test_no_suspension_outlasts_its_attempt(command: Command) -> None:
    """Held, removed, vacated or finished: what the worker still says of it is stale."""
    job = given(assign, begin, Suspend(1, "c", 3, 2.0), command)

    assert not job.attempt.suspended
    assert [] == decide(job, Continue(1, "c", 4.0))
    assert [] == decide(job, Suspend(1, "c", 3, 5.0))


def test_a_job_that_ran_waits_only_when_it_fails_again() -> None:
    """One mishap of a running job costs no time; the second in a row is taken for a failure."""
    assert [0.0, 40.0] == [failed(*[1007] * n, began=True).cooling for n in (1, 2)]


silent, back = Disconnect(1, "c", "it does not answer"), Reconnect(1, "c")


def test_a_silent_machine_is_told_of_once_and_its_answer_too() -> None:
    """Only of a job whose program runs; and the job runs all the time."""
    assert [] == decide(given(assign), silent)
    running = given(assign, begin)
    assert [] == decide(running, back)
    assert [JobDisconnected(attempt=1, reason="it does not answer")] == decide(running, silent)

    disconnected = given(assign, begin, silent)
    assert ("running", True, []) == (
        disconnected.status,
        disconnected.attempt.disconnected,
        decide(disconnected, silent),
    )
    assert [JobReconnected(attempt=1)] == decide(disconnected, back)
    assert not given(assign, begin, silent, back).attempt.disconnected
    assert [JobReconnected(attempt=1)] == decide(given(assign, begin, silent, hold), back)


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        (finish(), [JobReconnected, JobCompleted]),
        (end, [JobReconnected, JobVacated]),
        (
            End(attempt=1, claim="c", result=AttemptResult(ending=Ending(code=1008, reason="no contact"))),
            [JobVacated],
        ),
        (Checkpoint(1, "c", 1, 3.0, Usage()), [JobReconnected, JobCheckpointed]),
    ],
)
def test_a_report_ends_a_silence(said: Command, kinds: list[type]) -> None:
    """What the machine tells of itself shows that it is there; the end of its lease shows the opposite."""
    disconnected = given(assign, begin, silent)
    assert kinds == [type(event) for event in decide(disconnected, said)]
    assert not given(assign, begin, silent, said).attempt.disconnected


def test_a_checkpoint_is_recorded_once() -> None:
    """It is recorded by its number, which starts over with each attempt; the job runs on."""
    first, second = Checkpoint(1, "c", 1, 3.0, Usage()), Checkpoint(1, "c", 2, 4.0, Usage())
    running = given(assign, begin, first)
    assert ("running", []) == (running.status, decide(running, first))
    assert [JobCheckpointed(attempt=1, number=2, at=4.0)] == decide(running, second)
    again = given(assign, begin, first, end, Assign("d", "s", "m"), Begin(2, "d", 1, 1.0))
    assert [JobCheckpointed(attempt=2, number=1, at=5.0)] == decide(
        again, Checkpoint(2, "d", 1, 5.0, Usage())
    )


def test_steps_are_recorded_once_and_in_their_order() -> None:
    """
    A shadow repeats what it does not know to be recorded: only what is new is recorded, nothing with a gap before it,
    and the next attempt counts from 1.
    """
    one, two = (Step(kind="task", outcome="done", task=task) for task in (0, 1))
    running = given(assign, begin, Pass(1, "c", 1, [one]))

    assert [] == decide(running, Pass(1, "c", 1, [one]))
    assert [] == decide(running, Pass(1, "c", 3, [two]))
    assert [JobStepped(attempt=1, first=2, steps=[two])] == decide(running, Pass(1, "c", 1, [one, two]))
    assert [JobStepped(attempt=1, first=2, steps=[two])] == decide(running, Pass(1, "c", 2, [two]))
    again = given(assign, begin, Pass(1, "c", 1, [one]), end, Assign("d", "s", "m"))
    assert [JobStepped(attempt=2, first=1, steps=[one])] == decide(again, Pass(2, "d", 1, [one]))


def test_no_attempt_has_more_steps_than_an_ad_holds() -> None:
    """A machine may say what it likes: what is beyond is not recorded."""
    step = Step(kind="task", outcome="done")
    full = given(assign, begin, Pass(1, "c", 1, [step] * MOST_STEPS))

    assert [] == decide(full, Pass(1, "c", MOST_STEPS, [step] * 2))
    assert MOST_STEPS == full.attempt.checkpoint
