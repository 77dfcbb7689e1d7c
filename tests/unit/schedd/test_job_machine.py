"""The state machine of a job: every phase and word, every way through it, and what is saved of it."""

import itertools
import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Literal, get_args

import msgspec
import pytest

from kettle_services.schedd.domain.jobs.attempt import LIVING, PHASE_AFTER, AttemptPhase, AttemptState
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
    RemoveX,
    Suspend,
    Tell,
)
from kettle_services.schedd.domain.jobs.decide import Refused, case_of, decide
from kettle_services.schedd.domain.jobs.gang import Gang, NodeBegin, NodeEnd
from kettle_services.schedd.domain.jobs.job import Job, JobPhase, Status, evolve, phase_after
from kettle_services.schedd.domain.jobs.orders import Defer, Order
from kettle_services.schedd.domain.jobs.table import TABLE, JobCase
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.saved_jobs import entry_of, row_of
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord, Usage
from kettle_wire.events import (
    JobAssigned,
    JobCompleted,
    JobEdited,
    JobEvent,
    JobHeld,
    JobKept,
    JobLeft,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobRouted,
    JobServed,
    JobStarted,
    JobUnrouted,
    JobVacated,
    NodeSlot,
)
from kettle_wire.tasks import Step

STATUS_LIVING: Final[tuple[Status, ...]] = ("idle", "running", "held", "removed")
STATUS_WITHOUT_ATTEMPT: Final[tuple[Status, ...]] = ("idle", "held", "removed", "completed")
STAYS: Final[tuple[Literal["", "kept", "left"], ...]] = ("", "kept", "left")
NODES: Final = (NodeSlot(claim="d", slot="s", startd="m"),)
STEP: Final = Step(kind="task", outcome="done")
EXIT: Final = ExitRecord(code=0)
RESULTS: Final = (
    AttemptResult(exit=EXIT),
    AttemptResult(),
    *(AttemptResult(ending=Ending(code=code, reason="r"), exit=EXIT) for code in (6, 1008, 1034)),
)
OF_JOB: Final[tuple[Command, ...]] = (
    Assign("c", "s", "m"),
    Assign("c", "s", "m", nodes=NODES),
    Defer(7),
    *(Order(kind, "r", "ann") for kind in ("vacate", "vacate_fast", "suspend", "continue")),
    *(Hold("r", "ann", code) for code in (1, 3, 16)),
    Release("r", "ann"),
    Remove("r", "ann"),
    RemoveX("r", "ann"),
)
BY_THE_SCHEDD: Final[tuple[JobEvent, ...]] = (
    JobEdited(attributes={"JobPrio": 1}),
    JobRouted(route="r", number=1),
    JobUnrouted(number=2, reason="r"),
    JobServed(attempt=1),
)
"""What is recorded without a word to a job, in any phase of one that is in the queue."""


def news(number: int = 1, claim: str = "c") -> tuple[Command, ...]:
    """What may be said of an attempt."""
    return (
        Begin(number, claim, 1, 1.0),
        Suspend(number, claim, 1, 1.0),
        Continue(number, claim, 1.0),
        Disconnect(number, claim, "r"),
        Reconnect(number, claim),
        *(Checkpoint(number, claim, made, 1.0, Usage()) for made in (0, 1)),
        Pass(number, claim, 1, [STEP]),
        Pass(number, claim, 3, [STEP]),
        Tell(number, claim, "i", {"Mine": 1}, []),
        Tell(number, claim, "j", {}, []),
        *(End(number, claim, result, cool_down=20.0) for result in RESULTS),
        End(number, claim, RESULTS[2], more={"RequestMemory": 64}),
        NodeBegin(number, claim, 1, "d", "s", 1.0),
        NodeEnd(number, claim, 1, AttemptResult(exit=EXIT)),
    )


def said(job: Job, *commands: Command | JobEvent) -> Job:
    """The job after this; what is refused changes nothing."""
    for command in commands:
        for event in [command] if isinstance(command, JobEvent) else outcome(job, command) or []:
            job = evolve(job, event)
    return job


def outcome(job: Job, command: Command) -> list[JobEvent] | None:
    """What is recorded; None: it is refused."""
    try:
        return decide(job, command)
    except Refused:
        return None


# -- each way ----------------------------------------------------------------------------------------------------------


def bounded(job: Job) -> Job:
    """A job as far as anything is decided by it: what only counts up does not make it another one."""
    attempt = job.attempt
    orders = msgspec.structs.replace(attempt.orders, count=min(attempt.orders.count, 1))
    attempt = msgspec.structs.replace(attempt, number=min(attempt.number, 1), orders=orders)
    return msgspec.structs.replace(
        job, attempt=attempt, failures=min(job.failures, 1), cooling=min(job.cooling, 1.0)
    )


PARTS: Final[tuple[tuple[type[Command], ...], ...]] = (
    (Order,),
    (Checkpoint, Pass, Tell),
    (NodeBegin, NodeEnd),
)
"""Words of which each only changes what the others do not look at: they are tried with all the rest, but not with each other."""
LEFT_OUT: Final[Sequence[tuple[type[Command], ...]]] = (
    [()]
    if "KETTLE_TEST_LONG" in os.environ
    else [(*one, *other) for one, other in itertools.combinations(PARTS, 2)]
)


def happens(job: Job, left_out: tuple[type[Command], ...]) -> Iterator[Command | JobEvent]:
    """Whatever may come in this state, and some things that come too late."""
    for command in (*OF_JOB, *news(), *news(claim="another")):
        gang = isinstance(command, Assign) and command.nodes and NodeBegin in left_out
        if not (gang or isinstance(command, left_out)):
            yield command
    yield from BY_THE_SCHEDD
    if job.ended and job.stay == "kept":
        yield JobLeft()
    if job.runnable:
        yield JobCompleted(attempt=0, exit=EXIT)  # of no job for any machine


def kept(events: list[JobEvent], job: Job) -> list[JobEvent]:
    """What is recorded of a job that wants to stay in the queue."""
    after = job
    for event in events:
        after = evolve(after, event)
    return [JobKept(), *events] if after.ended and not job.stay else events


@cache
def reachable() -> tuple[set[Job], set[int], set[type[JobEvent]]]:
    """All states that there can be, the cases that lead there, and what is recorded."""
    found, cases, recorded = set[Job](), set[int](), set[type[JobEvent]]()
    for left_out in LEFT_OUT:
        met = {Job()}
        left = [Job()]
        while left:
            job = left.pop()
            for each in happens(job, left_out):
                if isinstance(each, JobEvent):
                    events: list[JobEvent] = [each]
                else:
                    cases.add(id(case_of(job, each)))
                    events = outcome(job, each) or []
                for recording in (events, kept(events, job)):
                    recorded |= {type(event) for event in recording}
                    after = bounded(checked(job, recording))
                    if after not in met and not job.over:
                        met.add(after)
                        left.append(after)
        found |= met
    return found, cases, recorded


def checked(job: Job, events: list[JobEvent]) -> Job:
    """The job after these events; an AssertionError if they must not be."""
    for event in events:
        before, job = job, evolve(job, event)
        assert job.phase is phase_after(before.phase, type(event))
        phases = PHASE_AFTER.get(type(event), {})
        assert job.attempt.phase is phases.get(before.attempt.phase, before.attempt.phase)
        match event:
            case JobAssigned():
                assert before.runnable, "an attempt begins only when none lives"
                assert event.attempt == before.attempt.number + 1
            case JobVacated() | JobCompleted(attempt=1):
                assert before.claim, "an attempt ends once"
            case JobStarted():
                assert before.claim, "nothing is reported of an attempt that is over"
                assert not before.attempt.began, "a start is reported once"
            case JobHeld() | JobReleased():
                assert before.status not in {"removed", "completed"}, "the end of a job is its end"
            case JobRemoved():
                assert before.status != "completed" or before.kept
            case _:
                pass
    attempt = job.attempt
    assert bool(attempt.claim) == (attempt.phase in LIVING)
    assert attempt.claim or job.status != "running"
    assert job.status == "running" or not attempt.suspended, "no suspension outlasts a hold or a removal"
    assert bool(job.hold_code) == (job.status == "held") or job.ended or attempt.claim or not job.cooling
    assert (job.attempt.gang is None) or attempt.claim
    assert entry_of(row_of(QueuedJob(job))) == QueuedJob(job)
    return job


def test_nothing_that_must_not_be_is_reached_on_any_way() -> None:
    """
    All ways through the machine are walked, from a job that was just submitted to each state that there can be, and no case of
    the table is left over.
    """
    found, cases, recorded = reachable()
    assert set(JobPhase) == {job.phase for job in found}
    assert set(AttemptPhase) == {job.attempt.phase for job in found}
    assert [] == [case for case in TABLE if id(case) not in cases]
    assert set(get_args(JobEvent)) == recorded


def test_said_twice_is_said_once() -> None:
    """A command or a report that is delivered twice is recorded once, in every state that there can be."""
    again = (Assign, Order, Release, Defer)
    for job in reachable()[0]:
        for command in (*OF_JOB, *news()):
            if not isinstance(command, again) and (events := outcome(job, command)):
                assert not outcome(said(job, *events), command)


def test_every_job_can_be_ended() -> None:
    """
    Whatever has happened, a removal and the end of the attempt lead out of the queue, if nothing keeps it.
    """
    for job in reachable()[0]:
        after = said(job, Remove("r", "ann"), RemoveX("r", "ann"), *news()[11:12])
        assert after.over, job


# -- each phase, each word ---------------------------------------------------------------------------------------------


def test_every_case_ends_with_one_without_a_condition() -> None:
    """So that none is left out; and after such a case there is no other, which nobody would ever reach."""
    cases: dict[tuple[type, str], list[JobCase]] = {}
    for case in TABLE:
        cases.setdefault((type(case.phase), f"{case.phase} {case.word.__name__}"), []).append(case)
    for each in cases.values():
        assert [True] * (len(each) - 1) + [False] == [case.when is not None for case in each]


STATES: Final = [
    Job(status, AttemptState(1, phase, "c" if lives else "", gang=gang), hold_code=code, stay=stay)
    for phase in AttemptPhase
    for lives in (phase in LIVING,)
    for status in (STATUS_LIVING if lives else STATUS_WITHOUT_ATTEMPT)
    for gang in ((None, Gang(("c", "d"))) if lives else (None,))
    for code in (0, 3, 16)
    for stay in STAYS
]


def test_every_phase_and_word_has_an_outcome() -> None:
    """
    Also in states that nothing leads to: a word is refused with a sentence that says where the job stands, or what is recorded of
    it leads to where the tables say; and whatever is recorded can be folded.
    """
    made: dict[type[JobEvent], JobEvent] = {}
    for job in STATES:
        for command in (*OF_JOB, *news()):
            case = case_of(job, command)
            assert case is not None or not job.claim
            if case is not None and case.refusal is not None:
                with pytest.raises(Refused, match=f"the job is {job.status}|nobody has suspended"):
                    decide(job, command)
                continue
            phase, of_attempt = job.phase, job.attempt.phase
            for event in decide(job, command):
                made[type(event)] = event
                phase = phase_after(phase, type(event))
                of_attempt = PHASE_AFTER.get(type(event), {}).get(of_attempt, of_attempt)
            after = said(job, command)
            assert (phase, of_attempt) == (after.phase, after.attempt.phase)
    for event in (*BY_THE_SCHEDD, JobKept(), JobLeft()):
        made[type(event)] = event
    assert set(get_args(JobEvent)) == made.keys()
    assert all(isinstance(evolve(job, event), Job) for job in STATES for event in made.values())


# -- the ways of the documentation -------------------------------------------------------------------------------------


def walked(*commands: Command) -> list[tuple[str, str, list[str] | None]]:
    """The phases after each word, and what was recorded; None: it was refused."""
    job, steps = Job(), list[tuple[str, str, list[str] | None]]()
    for command in commands:
        events = outcome(job, command)
        for event in events or []:
            job = evolve(job, event)
        names = None if events is None else [type(event).__name__ for event in events]
        steps.append((job.phase.value, job.attempt.phase.value, names))
    return steps


START: Final = (Assign("c", "s", "m"), Begin(1, "c", 1, 1.0))
BEGUN: Final = [("running", "starting", ["JobAssigned"]), ("running", "running", ["JobStarted"])]
DONE: Final = End(1, "c", RESULTS[0])
LOST: Final = End(1, "c", AttemptResult(ending=Ending(code=1008, reason="its lease is over")))


def test_a_result_and_a_removal_that_cross() -> None:
    """Whichever is first counts; a result that comes again changes nothing."""
    remove, hold = Remove("r", "ann"), Hold("r", "ann")
    assert [
        *BEGUN,
        ("completed", "finished", ["JobCompleted"]),
        ("completed", "finished", None),
    ] == walked(*START, DONE, remove)
    assert [
        *BEGUN,
        ("removed, ending", "running", ["JobRemoved"]),
        ("removed", "none", ["JobVacated"]),
        ("removed", "none", []),
    ] == walked(*START, remove, DONE, DONE)
    assert [
        *BEGUN,
        ("held, ending", "running", ["JobHeld"]),
        ("completed", "finished", ["JobCompleted"]),
    ] == walked(*START, hold, DONE)


@pytest.mark.parametrize(("end", "recorded"), [(LOST, []), (DONE, ["JobReconnected"])])
def test_a_job_that_is_held_and_released_while_its_machine_is_silent(end: End, recorded: list[str]) -> None:
    """It is idle to people and offered to nobody, until its attempt has ended."""
    last = (
        ("idle", "none", ["JobVacated"])
        if end is LOST
        else ("completed", "finished", [JobReconnected.__name__, "JobCompleted"])
    )
    assert recorded == last[2][:-1]
    assert [
        *BEGUN,
        ("running", "suspended", ["JobSuspended"]),
        ("running", "disconnected, suspended", ["JobDisconnected"]),
        ("held, ending", "disconnected", ["JobHeld"]),
        ("idle, ending", "disconnected", ["JobReleased"]),
        ("idle, ending", "disconnected", None),
        last,
    ] == walked(
        *START,
        Suspend(1, "c", 1, 1.0),
        Disconnect(1, "c", "r"),
        Hold("r", "ann"),
        Release("r", "ann"),
        START[0],
        end,
    )  # fmt: skip
