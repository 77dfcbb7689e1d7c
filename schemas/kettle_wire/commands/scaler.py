"""
What machines that were made for a lease say to the scaler.  Who sends it is the proof of the lease: a machine's credential has
the lease's name.
"""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Repeat

_Words = Annotated[str, msgspec.Meta(max_length=4096)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
_Span = Annotated[float, msgspec.Meta(ge=0, le=10 * 365 * 86_400.0)]


class Phase(StrEnum):
    """How far a machine is."""

    JOINED = "joined"
    """It has a credential; nothing of it is in use."""
    VALIDATING = "validating"
    """It examines itself."""
    FAILED = "failed"
    """It failed its examination, never took a job, and ends."""
    STARTING = "starting"
    """It passed; its startd starts."""
    READY = "ready"
    """It takes jobs."""
    QUARANTINED = "quarantined"
    """So many jobs failed on it at once, one after the other, that it takes no more."""
    DRAINING = "draining"
    """It takes no more jobs, because it was told so or the machine will be taken away."""
    ENDED = "ended"
    """Nothing runs on it any more, and the program ends: the last thing that it says."""


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that was announced to the machine from outside of the pool."""

    kind: Literal["signal", "file", "url"]
    words: _Words = ""
    within: _Span = 0.0
    """Seconds until the machine is taken away."""


class Renew(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a machine is, every few seconds and at once when its phase changes; the answer renews its lease."""

    phase: Phase
    progress: _Words = ""
    """What it does, or why it failed, in one sentence."""
    step: _Count = 0
    steps: _Count = 0
    """It is at `step` of so many; 0: they are not counted."""
    age: _Span
    """Seconds since the program began, on the machine's monotonic clock."""
    claims: _Count = 0
    """Claims on it."""
    running: _Count = 0
    """Jobs that run."""
    ended: _Count = 0
    """Jobs that have ended there."""
    failing: _Count = 0
    """So many different jobs in a row failed within seconds."""
    notices: Annotated[list[Notice], msgspec.Meta(max_length=16)] = []
    skew: float | None = None
    """Seconds that its clock is ahead of the pool's, by the answer before this; None: it is not known yet."""


class Renewed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    The lease goes on, and what the machine is to do. Nothing of it is a time of day, save the pool's own.
    """

    order: Literal["go on", "drain", "stop"] = "go on"
    """`drain`: take no more jobs, and end when the last has ended or `within` is over; `stop`: end now, jobs go elsewhere."""
    within: _Span = 0.0
    """Seconds for `drain`; 0: as long as its life."""
    words: _Words = ""
    """Why."""
    life: _Span
    """Seconds until it ends itself, whatever happens; it never gets more than it began with."""
    again: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 15.0
    """Seconds until the next renewal is expected."""
    now: float
    """The pool's time, seconds since the epoch: the machine learns how wrong its clock is."""


RENEW = Endpoint("scaler", "renew", Renew, Renewed, callers=(Caller.STARTD,), repeat=Repeat.HARMLESS)
"""`not_found`: there is no such lease, or it is over."""
