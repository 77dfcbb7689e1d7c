"""
One job: where it stands, and what is true of it after each thing that is recorded.

An attempt outlives a hold, a release or a removal until its worker says that it ended: it has a claim as long as it may live, and
a job with a claim is never assigned again. That is what keeps two attempts from overlapping.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from kettle_services.schedd.domain.jobs.attempt import AttemptPhase, AttemptState, attempt_after
from kettle_services.schedd.domain.jobs.cool_down import MAY_REPEAT
from kettle_services.schedd.domain.jobs.gang import evolved, gang_of
from kettle_services.schedd.domain.jobs.orders import NONE, ordered
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
    JobKept,
    JobLeft,
    JobNodeEnded,
    JobNodeStarted,
    JobOrdered,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobRouted,
    JobServed,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobUnrouted,
    JobVacated,
)

Status = Literal["idle", "running", "held", "removed", "completed"]


class JobPhase(StrEnum):
    """
    The status of a job, and whether an attempt of it may live: by both is decided what may be done with it.
    """

    IDLE = "idle"
    """It may be given a claim."""
    RUNNING = "running"
    """It was given a claim, and the attempt on it may live."""
    HELD = "held"
    """It waits for somebody to release it."""
    REMOVED = "removed"
    """It is never run again; it leaves the queue unless something keeps it."""
    COMPLETED = "completed"
    """It has run to its end; it leaves the queue unless something keeps it."""
    IDLE_ENDING = "idle, ending"
    """It was held while it ran, and released: it may be given a claim when the attempt has ended."""
    HELD_ENDING = "held, ending"
    """It was held while it ran, and the attempt has still to end."""
    REMOVED_ENDING = "removed, ending"
    """It was removed while it ran, and the attempt has still to end."""


_J: Final = JobPhase
LIVING: Final[Mapping[Status, JobPhase]] = {
    "idle": _J.IDLE_ENDING, "running": _J.RUNNING, "held": _J.HELD_ENDING, "removed": _J.REMOVED_ENDING,
}  # fmt: skip
"""While an attempt may live."""
WITHOUT_ATTEMPT: Final[Mapping[Status, JobPhase]] = {
    "idle": _J.IDLE, "held": _J.HELD, "removed": _J.REMOVED, "completed": _J.COMPLETED,
}  # fmt: skip
_STATUS_AFTER: Final[Mapping[type[JobEvent], Status]] = {
    JobAssigned: "running",
    JobCompleted: "completed",
    JobHeld: "held",
    JobReleased: "idle",
    JobRemoved: "removed",
}
_ENDS: Final = frozenset({JobVacated, JobCompleted})
_PARTS: Final[Mapping[JobPhase, tuple[Status, bool]]] = {
    **{phase: (status, True) for status, phase in LIVING.items()},
    **{phase: (status, False) for status, phase in WITHOUT_ATTEMPT.items()},
}


def status_after(status: Status, event: type[JobEvent]) -> Status:
    """The status after an event."""
    if event is JobVacated:
        return "idle" if status == "running" else status
    return _STATUS_AFTER.get(event, status)


def phase_after(phase: JobPhase, event: type[JobEvent]) -> JobPhase:
    """The phase of the job after an event."""
    status, lives = _PARTS[phase]
    lives = event is JobAssigned or (lives and event not in _ENDS)
    return (LIVING if lives else WITHOUT_ATTEMPT)[status_after(status, event)]


class Job(msgspec.Struct, frozen=True, gc=False):
    """The state of one job; the default is a job to which nothing has happened yet."""

    status: Status = "idle"
    attempt: AttemptState = AttemptState()
    failures: int = 0
    """How many attempts in a row failed for reasons that may repeat at once."""
    hold_code: int = 0
    """HoldReasonCode while it is held."""
    cooling: float = 0.0
    """Seconds that the job waits before its next attempt, because the last one failed around its start."""
    stay: Literal["", "kept", "left"] = ""
    """
    Kept: it is in the queue although it has ended, or will be; left: nothing keeps it there any more, whatever it says.
    """

    @property
    def phase(self) -> JobPhase:
        """By what is decided what may be done with it."""
        return (LIVING if self.attempt.claim else WITHOUT_ATTEMPT)[self.status]

    @property
    def claim(self) -> str:
        """The claim on which an attempt may still live; empty if none does."""
        return self.attempt.claim

    @property
    def runnable(self) -> bool:
        """Whether it may be given a claim now."""
        return self.status == "idle" and not self.attempt.claim

    @property
    def shown(self) -> str:
        """Its status as a word for people."""
        if self.status != "running":
            return self.status
        attempt = self.attempt
        return "vacating" if attempt.orders.vacating else "suspended" if attempt.suspended else "running"

    @property
    def kept(self) -> bool:
        """Whether something keeps it in the queue after its end."""
        return self.stay == "kept"

    @property
    def over(self) -> bool:
        """Whether it leaves the queue: nothing can happen to it any more."""
        return self.ended and self.stay != "kept"

    @property
    def ended(self) -> bool:
        """Whether it has ended and no attempt of it lives: it leaves the queue unless something keeps it."""
        return self.status in {"completed", "removed"} and not self.attempt.claim


# -- what was recorded -------------------------------------------------------------------------------------------------


def evolve(job: Job, event: JobEvent) -> Job:
    """The state after an event; total, and never refuses: what is recorded has happened."""
    return _EVOLVE[type(event)](job, event)


def _assigned(job: Job, event: JobAssigned) -> Job:
    attempt = AttemptState(
        number=event.attempt, phase=AttemptPhase.STARTING, claim=event.claim, gang=gang_of(event)
    )
    return Job("running", attempt, failures=job.failures, stay=job.stay)


def _in_attempt(job: Job, event: JobEvent) -> Job:
    return _with(job, attempt_after(job.attempt, event))


def _vacated(job: Job, event: JobVacated) -> Job:
    attempt = msgspec.structs.replace(job.attempt, phase=AttemptPhase.NONE, claim="", orders=NONE, gang=None)
    failures = job.failures + 1 if event.ending.code in MAY_REPEAT else 0
    return Job(
        status_after(job.status, JobVacated), attempt, failures, job.hold_code, event.cool_down, job.stay
    )


def _completed(job: Job, event: JobCompleted) -> Job:
    attempt = msgspec.structs.replace(attempt_after(job.attempt, event), claim="", gang=None)
    return msgspec.structs.replace(job, status="completed", attempt=attempt)


def _held(job: Job, event: JobHeld) -> Job:
    attempt = attempt_after(job.attempt, event)
    return msgspec.structs.replace(job, status="held", attempt=attempt, hold_code=event.code)


def _released(job: Job, event: JobReleased) -> Job:
    return Job("idle", attempt_after(job.attempt, event), stay=job.stay)


def _removed(job: Job, event: JobRemoved) -> Job:
    attempt = attempt_after(job.attempt, event)
    return msgspec.structs.replace(job, status="removed", attempt=attempt, hold_code=0)


def _stays(job: Job, event: JobKept | JobLeft) -> Job:
    stay: Literal["kept", "left"] = "kept" if isinstance(event, JobKept) else "left"
    return msgspec.structs.replace(job, attempt=attempt_after(job.attempt, event), stay=stay)


def _changed(job: Job, _event: JobDeferred | JobEdited | JobRouted | JobUnrouted) -> Job:
    # It waits for its next time from now on, or may fare better; and nobody would end another wait.
    return msgspec.structs.replace(job, cooling=0.0)


def _checkpointed(job: Job, event: JobCheckpointed) -> Job:
    return _with(job, msgspec.structs.replace(job.attempt, checkpoint=event.number))


def _stepped(job: Job, event: JobStepped) -> Job:
    newest = event.first - 1 + len(event.steps)
    return _with(job, msgspec.structs.replace(job.attempt, checkpoint=newest))


def _told(job: Job, event: JobTold) -> Job:
    return _with(job, msgspec.structs.replace(job.attempt, told=event.id))


def _ordered(job: Job, event: JobOrdered) -> Job:
    return _with(job, msgspec.structs.replace(job.attempt, orders=ordered(job.attempt.orders, event)))


def _of_node(job: Job, event: JobNodeStarted | JobNodeEnded) -> Job:
    return _with(job, msgspec.structs.replace(job.attempt, gang=evolved(job.attempt.gang, event)))


def _served(job: Job, _event: JobServed) -> Job:
    return job  # what people do with its services is told, and changes nothing


def _with(job: Job, attempt: AttemptState) -> Job:
    return job if attempt is job.attempt else msgspec.structs.replace(job, attempt=attempt)


_EVOLVE: Final[Mapping[type[JobEvent], Callable[[Job, Any], Job]]] = {
    JobAssigned: _assigned,
    JobVacated: _vacated,
    JobCompleted: _completed,
    JobHeld: _held,
    JobReleased: _released,
    JobRemoved: _removed,
    JobCheckpointed: _checkpointed,
    JobStepped: _stepped,
    JobTold: _told,
    JobOrdered: _ordered,
    JobServed: _served,
    **dict.fromkeys((JobKept, JobLeft), _stays),
    **dict.fromkeys((JobStarted, JobSuspended, JobContinued, JobDisconnected, JobReconnected), _in_attempt),
    **dict.fromkeys((JobDeferred, JobEdited, JobRouted, JobUnrouted), _changed),
    **dict.fromkeys((JobNodeStarted, JobNodeEnded), _of_node),
}
