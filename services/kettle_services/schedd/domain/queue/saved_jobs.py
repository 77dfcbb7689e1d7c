"""
The rows of jobs in the working set: flat, and the same bytes whatever a release keeps in memory.

So a release reads what the one before it saved, and an audit finds what today's fold makes of an old log.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from kettle_services.schedd.domain.jobs.attempt import (
    BEGAN,
    DISCONNECTED,
    LIVING,
    SUSPENDED,
    AttemptPhase,
    AttemptState,
)
from kettle_services.schedd.domain.jobs.gang import Gang
from kettle_services.schedd.domain.jobs.job import Job, Status
from kettle_services.schedd.domain.jobs.orders import NONE, Orders
from kettle_services.schedd.domain.queue.entry import QueuedJob, RoutedChanges
from kettle_wire.ads import Ad


class SavedJob(msgspec.Struct, frozen=True, gc=False):
    """The state of one job as it is saved."""

    status: Status = "idle"
    attempt: int = 0
    claim: str = ""
    began: bool = False
    failures: int = 0
    hold_code: int = 0
    suspended: bool = False
    disconnected: bool = False
    checkpoint: int = 0
    cooling: float = 0.0
    told: str = ""
    orders: Orders = NONE
    kept: bool = False
    left: bool = False
    gang: Gang | None = None


class SavedEntry(msgspec.Struct, frozen=True, gc=False):
    """What the queue keeps of a job, as it is saved."""

    job: SavedJob = SavedJob()
    changed: Ad = {}
    by_hand: tuple[str, ...] = ()
    routed: RoutedChanges | None = None


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(SavedEntry).decode
_BITS: Final[Mapping[AttemptPhase, tuple[bool, bool, bool]]] = {
    phase: (phase in BEGAN, phase in SUSPENDED, phase in DISCONNECTED) for phase in AttemptPhase
}
_LIVING: Final = {_BITS[phase]: phase for phase in LIVING}


def saved(job: Job) -> SavedJob:
    """A job as it is saved."""
    attempt = job.attempt
    began, suspended, disconnected = _BITS[attempt.phase]
    return SavedJob(
        job.status,
        attempt.number,
        attempt.claim,
        began,
        job.failures,
        job.hold_code,
        suspended,
        disconnected,
        attempt.checkpoint,
        job.cooling,
        attempt.told,
        attempt.orders,
        job.stay == "kept",
        job.stay == "left",
        attempt.gang,
    )


def row_of(entry: QueuedJob) -> bytes:
    """The row of a job."""
    return _encode(SavedEntry(saved(entry.job), entry.changed, entry.by_hand, entry.routed))


def entry_of(row: bytes) -> QueuedJob:
    """Inverse of `row_of`."""
    found = _decode(row)
    job = found.job
    attempt = AttemptState(
        job.attempt, _phase(job), job.claim, job.checkpoint, job.told, job.orders, job.gang
    )
    stay: Literal["", "kept", "left"] = "kept" if job.kept else "left" if job.left else ""
    state = Job(job.status, attempt, job.failures, job.hold_code, job.cooling, stay)
    return QueuedJob(state, found.changed, found.by_hand, found.routed)


def _phase(job: SavedJob) -> AttemptPhase:
    if not job.claim:
        return AttemptPhase.FINISHED if job.began else AttemptPhase.NONE
    return _LIVING[job.began, job.suspended, job.disconnected]
