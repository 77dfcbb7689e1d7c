"""
What is recorded when something is said of a job: a case for each phase and word.

Of several cases for one phase and word the first whose condition holds counts.  What people and the schedd say is decided by the
phase of the job, and so is the end of an attempt; what is reported of an attempt that lives, by the phase of the attempt.
`docs/generate.py` draws the pictures and the list from these cases.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from kettle_services.schedd.domain.jobs.attempt import DISCONNECTED, LIVING, SUSPENDED, AttemptPhase
from kettle_services.schedd.domain.jobs.commands import (
    Assign,
    Begin,
    Checkpoint,
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
from kettle_services.schedd.domain.jobs.gang import NodeBegin, NodeEnd, heard
from kettle_services.schedd.domain.jobs.job import Job, JobPhase
from kettle_services.schedd.domain.jobs.orders import Defer, Order
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode, VacateCode
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
from kettle_wire.tasks import MOST_STEPS, Step

_J, _A = JobPhase, AttemptPhase
_GONE: Final = (_J.REMOVED, _J.REMOVED_ENDING)
_HELD: Final = (_J.HELD, _J.HELD_ENDING)
_WAITS_OR_RUNS: Final = (_J.IDLE, _J.IDLE_ENDING, _J.RUNNING)
_STAYS_HELD: Final = frozenset({HoldCode.Unspecified, HoldCode.UserRequest, HoldCode.SpoolingInput})
"""HoldReasonCodes that a hold by the owner does not replace: unknown, his own, spooled input."""
UNKNOWN: Final = Ending(code=HoldCode.JobPolicyUndefined, reason="The job ended, and nobody knows how")


class JobCondition(msgspec.Struct, frozen=True):
    """When a case counts."""

    text: str
    holds: Callable[[Job, Any], bool]


class JobCase(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    phase: JobPhase | AttemptPhase
    word: type
    """Of command or report."""
    events: tuple[type[JobEvent], ...] = ()
    """What is recorded; nothing of what changes nothing."""
    when: JobCondition | None = None
    refusal: Callable[[Job, Any], str] | None = None
    """Why the word is refused; None: it is not."""
    ends_silence: bool = False
    """With this its machine shows that it is there: of an attempt that counts as disconnected that is recorded first."""


# -- conditions --------------------------------------------------------------------------------------------------------


def new_steps(job: Job, said: Pass) -> list[Step]:
    """Each step once, and none before the one that comes before it."""
    newest = job.attempt.checkpoint
    known = newest - (said.first - 1)
    return said.steps[known : known + MOST_STEPS - newest] if known >= 0 else []


def _orders(job: Job, order: Order) -> str:
    return job.attempt.orders.refuse(order.kind)


def _asks_for_more(_: Job, end: End) -> bool:
    return bool(end.more)


def _lease_over(_: Job, end: End) -> bool:
    ending = end.result.ending
    return ending is not None and ending.code == VacateCode.ReconnectFailed


def _by_owner(job: Job, hold: Hold) -> bool:
    # Its owner wants it held, whatever else did: now no policy releases it.
    return hold.code == HoldCode.UserRequest and job.hold_code not in _STAYS_HELD


CANNOT: Final = JobCondition("its orders do not allow it", lambda job, order: bool(_orders(job, order)))
SAID_BEFORE: Final = JobCondition(
    "the same was ordered before", lambda job, order: job.attempt.orders.meets(order.kind)
)
BY_OWNER: Final = JobCondition("by its owner, and something else holds it", _by_owner)
SPOOLING: Final = JobCondition(
    "its input is still being sent", lambda job, _: job.hold_code == HoldCode.SpoolingInput
)
KEPT: Final = JobCondition("it is kept in the queue", lambda job, _: job.kept)
LEFT: Final = JobCondition("nothing keeps it", lambda job, _: job.stay == "left")
LEASE_OVER: Final = JobCondition("its lease is over", _lease_over)
DONE: Final = JobCondition("its program ran to its end", lambda _, end: end.result.done)
MORE: Final = JobCondition("its next run asks for more", _asks_for_more)
HOLDS: Final = JobCondition("its end holds the job", lambda _, end: (end.result.ending or UNKNOWN).holds)
RUNS: Final = JobCondition("the job is running", lambda job, _: job.status == "running")
NEW_NUMBER: Final = JobCondition("its number is new", lambda job, said: said.number > job.attempt.checkpoint)
NEW_STEPS: Final = JobCondition("some steps are new", lambda job, said: bool(new_steps(job, said)))
NEWS: Final = JobCondition(
    "it is new, and says something",
    lambda job, said: said.id != job.attempt.told and bool(said.attributes or said.notes),
)
NEW_OF_NODE: Final = JobCondition("it is new", lambda job, said: bool(heard(job.attempt.gang, said)))


# -- cases -------------------------------------------------------------------------------------------------------------


def _case(
    phase: JobPhase | AttemptPhase, word: type, *events: type[JobEvent], when: JobCondition | None = None
) -> JobCase:
    return JobCase(phase=phase, word=word, events=events, when=when)


def _not_now(job: Job, _: object) -> str:
    return f"the job is {job.status}"


def _not_idle(job: Job, _: object) -> str:
    return f"the job is {job.status}, not idle"


def _refused(phase: JobPhase, word: type, why: Callable[[Job, Any], str] = _not_now) -> JobCase:
    return JobCase(phase=phase, word=word, refusal=why)


def _starts() -> Iterator[JobCase]:
    """What the schedd says, and orders to an attempt."""
    for phase in _J:
        idle, running = phase is _J.IDLE, phase is _J.RUNNING
        yield _case(phase, Assign, JobAssigned) if idle else _refused(phase, Assign, _not_idle)
        yield _case(phase, Defer, JobDeferred) if idle else _case(phase, Defer)
        if running:
            yield JobCase(phase=phase, word=Order, when=CANNOT, refusal=_orders)
            yield _case(phase, Order, when=SAID_BEFORE)
        yield _case(phase, Order, JobOrdered) if running else _refused(phase, Order)


def _actions() -> Iterator[JobCase]:
    """What people do with jobs, and policies in their name; said twice is said once."""
    for phase in _WAITS_OR_RUNS:
        yield _case(phase, Hold, JobHeld)
        yield _refused(phase, Release)
        yield _case(phase, Remove, JobRemoved)
        yield _refused(phase, RemoveX)
    for phase in _HELD:
        yield _case(phase, Hold, JobHeld, when=BY_OWNER)
        yield _case(phase, Hold)
        yield JobCase(phase=phase, word=Release, when=SPOOLING, refusal=_not_now)
        yield _case(phase, Release, JobReleased)
        yield _case(phase, Remove, JobRemoved)
        yield _refused(phase, RemoveX)
    for phase in _GONE:
        yield _refused(phase, Hold)
        yield _refused(phase, Release)
        yield _case(phase, Remove)
        yield _case(phase, RemoveX, when=LEFT)
        yield _case(phase, RemoveX, JobLeft)
    for word in (Hold, Release, RemoveX):
        yield _refused(_J.COMPLETED, word)
    yield _case(_J.COMPLETED, Remove, JobRemoved, when=KEPT)
    yield _refused(_J.COMPLETED, Remove)


def _ends() -> Iterator[JobCase]:
    """The end of an attempt: by the worker's word, or because its lease ran out on both sides."""
    for phase in (_J.RUNNING, _J.IDLE_ENDING, _J.HELD_ENDING, _J.REMOVED_ENDING):
        yield _case(phase, End, JobVacated, when=LEASE_OVER)
        if phase is _J.REMOVED_ENDING:
            # It leaves the queue: a result frees the claim and does not complete the job, and there is no next run.
            yield _told(phase, End, JobVacated)
            continue
        yield _told(phase, End, JobCompleted, when=DONE)
        yield _told(phase, End, JobVacated, JobEdited, when=MORE)
        if phase in _WAITS_OR_RUNS:
            yield _told(phase, End, JobVacated, JobHeld, when=HOLDS)
        yield _told(phase, End, JobVacated)


def _told(
    phase: JobPhase | AttemptPhase, word: type, *events: type[JobEvent], when: JobCondition | None = None
) -> JobCase:
    return JobCase(phase=phase, word=word, events=events, when=when, ends_silence=True)


def _reports() -> Iterator[JobCase]:
    """What is heard of an attempt that lives: each thing once."""
    for phase in LIVING:
        begins = phase in {_A.STARTING, _A.STARTING_SUSPENDED}
        yield _case(phase, Begin, JobStarted) if begins else _case(phase, Begin)
        if phase not in SUSPENDED:
            yield _case(phase, Suspend, JobSuspended, when=RUNS)
        yield _case(phase, Suspend)
        yield _case(phase, Continue, JobContinued) if phase in SUSPENDED else _case(phase, Continue)
        if phase is _A.RUNNING:
            yield _case(phase, Disconnect, JobDisconnected, when=RUNS)
        yield _case(phase, Disconnect, JobDisconnected) if phase is _A.SUSPENDED else _case(phase, Disconnect)
        back = phase in DISCONNECTED
        yield _case(phase, Reconnect, JobReconnected) if back else _case(phase, Reconnect)
        yield _told(phase, Checkpoint, JobCheckpointed, when=NEW_NUMBER)
        yield _told(phase, Pass, JobStepped, when=NEW_STEPS)
        yield _told(phase, Tell, JobTold, when=NEWS)
        yield _case(phase, NodeBegin, JobNodeStarted, when=NEW_OF_NODE)
        yield _case(phase, NodeEnd, JobNodeEnded, when=NEW_OF_NODE)
        for word in (Checkpoint, Pass, Tell, NodeBegin, NodeEnd):
            yield _case(phase, word)


TABLE: Final = (*_starts(), *_actions(), *_ends(), *_reports())
