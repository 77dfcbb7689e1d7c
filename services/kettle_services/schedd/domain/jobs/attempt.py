"""
The newest attempt of a job: how far it is, and what has been said of it.

Its phase is one word. What leads from one to the next is what was recorded: `PHASE_AFTER`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from kettle_services.schedd.domain.jobs.gang import Gang
from kettle_services.schedd.domain.jobs.orders import NONE, Orders
from kettle_wire.events import (
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDisconnected,
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
    JobServed,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobVacated,
)


class AttemptPhase(StrEnum):
    """How far an attempt is, as its submit side knows."""

    NONE = "none"
    """No attempt lives: there was none, or the last one has ended without completing the job."""
    STARTING = "starting"
    """It has a claim, and its program was not seen running yet."""
    STARTING_SUSPENDED = "starting, suspended"
    """Its worker reports that its processes are stopped; the report that its program runs was lost, or is late."""
    RUNNING = "running"
    """Its program runs."""
    SUSPENDED = "suspended"
    """Its program was started, and its processes are stopped."""
    DISCONNECTED = "disconnected"
    """Its program runs, and its machine does not answer."""
    DISCONNECTED_SUSPENDED = "disconnected, suspended"
    """It was suspended when its machine answered last."""
    FINISHED = "finished"
    """No attempt lives: the last one, whose program was seen running, has completed the job."""


_P: Final = AttemptPhase
LIVING: Final = (
    _P.STARTING, _P.STARTING_SUSPENDED, _P.RUNNING, _P.SUSPENDED, _P.DISCONNECTED, _P.DISCONNECTED_SUSPENDED,
)  # fmt: skip
"""The phases of an attempt that may live."""
DURING_ATTEMPT: Final[frozenset[type[JobEvent]]] = frozenset({
    JobCheckpointed, JobContinued, JobDisconnected, JobNodeEnded, JobNodeStarted, JobOrdered, JobReconnected, JobServed,
    JobStarted, JobStepped, JobSuspended, JobTold,
})  # fmt: skip
"""What happens in the life of an attempt: afterwards the job counts as what it was before."""
SUSPENDED: Final = frozenset({_P.STARTING_SUSPENDED, _P.SUSPENDED, _P.DISCONNECTED_SUSPENDED})
DISCONNECTED: Final = frozenset({_P.DISCONNECTED, _P.DISCONNECTED_SUSPENDED})
BEGAN: Final = frozenset(_P) - {_P.NONE, _P.STARTING, _P.STARTING_SUSPENDED}
"""The program of the attempt was seen running."""

_SUSPENDS: Final = {
    _P.STARTING: _P.STARTING_SUSPENDED,
    _P.RUNNING: _P.SUSPENDED,
    _P.DISCONNECTED: _P.DISCONNECTED_SUSPENDED,
}
_CONTINUES: Final = {after: before for before, after in _SUSPENDS.items()}
_DISCONNECTS: Final = {_P.RUNNING: _P.DISCONNECTED, _P.SUSPENDED: _P.DISCONNECTED_SUSPENDED}
PHASE_AFTER: Final[Mapping[type[JobEvent], Mapping[AttemptPhase, AttemptPhase]]] = {
    JobAssigned: dict.fromkeys(_P, _P.STARTING),
    JobStarted: {_P.STARTING: _P.RUNNING, _P.STARTING_SUSPENDED: _P.SUSPENDED},
    JobSuspended: _SUSPENDS,
    JobContinued: _CONTINUES,
    JobDisconnected: _DISCONNECTS,
    JobReconnected: {after: before for before, after in _DISCONNECTS.items()},
    JobVacated: dict.fromkeys(_P, _P.NONE),
    JobCompleted: dict.fromkeys(BEGAN, _P.FINISHED) | dict.fromkeys(frozenset(_P) - BEGAN, _P.NONE),
    # No suspension outlasts what happens to the job itself: what its worker still says of it is stale.
    **dict.fromkeys((JobHeld, JobReleased, JobRemoved, JobKept, JobLeft), _CONTINUES),
}
"""The phase after an event, by the one before it; where nothing is said it stays."""


class AttemptState(msgspec.Struct, frozen=True, gc=False):
    """The newest attempt of a job; the default is that there was none."""

    number: int = 0
    """From 1 on."""
    phase: AttemptPhase = AttemptPhase.NONE
    claim: str = ""
    """The claim on which it may still live; empty if it does not."""
    checkpoint: int = 0
    """
    Number of its newest checkpoint, 0 before the first; of a job of several tasks, which makes none, of the newest step.
    """
    told: str = ""
    """Id of its last update."""
    orders: Orders = NONE
    """What its owner has ordered of it."""
    gang: Gang | None = None
    """Its nodes, if it has several."""

    @property
    def claims(self) -> tuple[str, ...]:
        """All claims on which it may still live."""
        if self.gang is not None:
            return self.gang.claims
        return (self.claim,) if self.claim else ()

    @property
    def began(self) -> bool:
        """Whether its program was seen running."""
        return self.phase in BEGAN

    @property
    def suspended(self) -> bool:
        """Whether its processes are stopped."""
        return self.phase in SUSPENDED

    @property
    def disconnected(self) -> bool:
        """Whether its machine does not answer."""
        return self.phase in DISCONNECTED


def attempt_after(attempt: AttemptState, event: JobEvent) -> AttemptState:
    """The attempt in the phase after an event, otherwise as it was."""
    phase = PHASE_AFTER[type(event)].get(attempt.phase, attempt.phase)
    return attempt if phase is attempt.phase else msgspec.structs.replace(attempt, phase=phase)
