"""What is recorded when something is said of a job: the table, applied."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast, get_args

from kettle_services.schedd.domain.jobs.commands import (
    Assign,
    AttemptNews,
    Checkpoint,
    Command,
    End,
    Hold,
    Pass,
    Tell,
)
from kettle_services.schedd.domain.jobs.cool_down import cool_down
from kettle_services.schedd.domain.jobs.gang import NodeBegin, NodeEnd, heard
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.orders import Order
from kettle_services.schedd.domain.jobs.table import TABLE, UNKNOWN, JobCase, new_steps
from kettle_wire.attempts import Ending
from kettle_wire.codes import VacateCode
from kettle_wire.events import (
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDeferred,
    JobDisconnected,
    JobEdited,
    JobEvent,
    JobHeld,
    JobLeft,
    JobNodeEnded,
    JobNodeStarted,
    JobOrdered,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobVacated,
)

_OF_ATTEMPT: Final = frozenset(get_args(AttemptNews))
_BY_JOB: Final = (frozenset(get_args(Command)) - _OF_ATTEMPT) | {End}
"""What is decided by the phase of the job."""
_REMOVED: Final = Ending(code=VacateCode.JobRemoved, reason="the job had been removed")


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """A command that the state of the job does not allow; nothing is recorded."""


def _indexed() -> Mapping[type, Mapping[Any, tuple[JobCase, ...]]]:
    found: dict[type, dict[Any, tuple[JobCase, ...]]] = {}
    for case in TABLE:
        cases = found.setdefault(case.word, {})
        cases[case.phase] = (*cases.get(case.phase, ()), case)
    return found


_CASES: Final = _indexed()


def decide(job: Job, command: Command) -> list[JobEvent]:
    """What is to be recorded; raises `Refused` for what the state does not allow. Repeats record nothing."""
    case = case_of(job, command)
    if case is None:
        return []
    if case.refusal is not None:
        raise Refused(case.refusal(job, command))
    events = [_MADE[event](job, command) for event in case.events]
    if case.ends_silence and job.attempt.disconnected:
        events.insert(0, JobReconnected(attempt=job.attempt.number))
    return events


def case_of(job: Job, command: Command) -> JobCase | None:
    """The case that counts; None: it is said of an attempt that is over, and changes nothing."""
    word, attempt = type(command), job.attempt
    if word in _OF_ATTEMPT:
        news = cast("AttemptNews", command)
        if not attempt.claim or (news.attempt, news.claim) != (attempt.number, attempt.claim):
            return None
    phase = job.phase if word in _BY_JOB else attempt.phase
    for case in _CASES[word][phase]:
        if case.when is None or case.when.holds(job, command):
            return case
    raise AssertionError(f"a case of {word.__name__} without a condition is missing: {phase}")


# -- events ------------------------------------------------------------------------------------------------------------


def _assigned(job: Job, said: Assign) -> JobAssigned:
    return JobAssigned(
        attempt=job.attempt.number + 1,
        claim=said.claim,
        slot=said.slot,
        startd=said.startd,
        notes=said.notes,
        nodes=list(said.nodes),
    )


def _held(_: Job, said: Hold | End) -> JobHeld:
    if isinstance(said, Hold):
        return JobHeld(code=said.code, subcode=said.subcode, reason=said.reason, by=said.by)
    ending = said.result.ending or UNKNOWN
    return JobHeld(code=ending.code, subcode=ending.subcode, reason=ending.reason)


def _vacated(job: Job, said: End) -> JobVacated:
    result, attempt = said.result, job.attempt
    if result.done:
        return JobVacated(attempt=attempt.number, ending=_REMOVED, usage=result.usage)
    ending, wait = result.ending or UNKNOWN, 0.0
    if job.status in {"running", "idle"}:
        wait = cool_down(ending.code, job.failures, began=attempt.began, first=said.cool_down)
    return JobVacated(
        attempt=attempt.number, ending=ending, exit=result.exit, usage=result.usage, cool_down=wait
    )


def _completed(job: Job, said: End) -> JobCompleted:
    assert said.result.exit is not None, "the case says so"
    return JobCompleted(attempt=job.attempt.number, exit=said.result.exit, usage=said.result.usage)


def _checkpointed(_: Job, said: Checkpoint) -> JobCheckpointed:
    return JobCheckpointed(attempt=said.attempt, number=said.number, at=said.at, usage=said.usage)


def _stepped(job: Job, said: Pass) -> JobStepped:
    return JobStepped(attempt=said.attempt, first=job.attempt.checkpoint + 1, steps=new_steps(job, said))


def _told(_: Job, said: Tell) -> JobTold:
    return JobTold(attempt=said.attempt, id=said.id, attributes=said.attributes, notes=said.notes)


def _ordered(job: Job, said: Order) -> JobOrdered:
    return JobOrdered(attempt=job.attempt.number, order=said.kind, reason=said.reason, by=said.by)


def _of_node(job: Job, said: NodeBegin | NodeEnd) -> JobEvent:
    return heard(job.attempt.gang, said)[0]


_MADE: Final[Mapping[type[JobEvent], Callable[[Job, Any], JobEvent]]] = {
    JobAssigned: _assigned,
    JobDeferred: lambda _, said: JobDeferred(until=said.until),
    JobOrdered: _ordered,
    JobHeld: _held,
    JobReleased: lambda _, said: JobReleased(reason=said.reason, by=said.by),
    JobRemoved: lambda _, said: JobRemoved(reason=said.reason, by=said.by),
    JobLeft: lambda _, said: JobLeft(reason=said.reason, by=said.by),
    JobStarted: lambda _, said: JobStarted(attempt=said.attempt, pid=said.pid, at=said.at, input=said.input),
    JobSuspended: lambda _, said: JobSuspended(attempt=said.attempt, processes=said.processes, at=said.at),
    JobContinued: lambda _, said: JobContinued(attempt=said.attempt, at=said.at),
    JobDisconnected: lambda _, said: JobDisconnected(attempt=said.attempt, reason=said.reason),
    JobReconnected: lambda _, said: JobReconnected(attempt=said.attempt),
    JobCheckpointed: _checkpointed,
    JobStepped: _stepped,
    JobTold: _told,
    JobVacated: _vacated,
    JobCompleted: _completed,
    JobEdited: lambda _, said: JobEdited(attributes=said.more),
    JobNodeStarted: _of_node,
    JobNodeEnded: _of_node,
}
"""How an event is made of what was said."""
