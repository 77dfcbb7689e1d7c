"""One lease, and one machine that no lease wants, as their events made them."""

from typing import Final

import msgspec

from kettle_wire.events.lease import (
    LeaseAccepted,
    LeaseBooting,
    LeaseBusy,
    LeaseConsole,
    LeaseDeferred,
    LeaseDraining,
    LeaseDuplicated,
    LeaseDuplicateGone,
    LeaseEvent,
    LeaseExtended,
    LeaseFailed,
    LeaseGone,
    LeaseInDoubt,
    LeaseJoining,
    LeaseLost,
    LeaseQuarantined,
    LeaseReady,
    LeaseRequested,
    LeaseSubmitting,
    LeaseTerminating,
    LeaseUnwanted,
    LeaseValidating,
    OrphanEvent,
    OrphanFound,
    OrphanGone,
    OrphanRemoving,
)
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import Offer

KIND: Final = "lease"
ORPHAN: Final = "orphan"


class Removal(msgspec.Struct, frozen=True):
    """How often a machine was asked to be removed, and when it is again."""

    count: int
    until: float


class Lease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lease that is not over. Times are seconds since the epoch; 0: that has not happened."""

    requested: LeaseRequested
    state: LeaseState
    since: float
    """When it came into its state."""
    until: float
    """The deadline of its state."""
    made: float
    """When it was requested."""
    attempt: int = 0
    asked: float = 0.0
    """When its provider was asked the last time."""
    again: float = 0.0
    """It is not asked for before."""
    handle: str = ""
    accepted: float = 0.0
    ready: float = 0.0
    """When it was ready for the first time."""
    used: float = 0.0
    """When a job was last seen on it, or when it became ready."""
    extensions: int = 0
    progress: str = ""
    unwanted: str = ""
    """Why nobody wants it any more."""
    words: str = ""
    """What was said last about why it is as it is."""
    removal: int = 0
    failed: bool = False
    console: bool = False
    duplicates: dict[str, Removal] = {}
    """Other machines of its name, by their handles."""

    @property
    def id(self) -> str:
        """Its id, which is the name of its machine."""
        return self.requested.lease

    @property
    def offer(self) -> Offer:
        """What it is made from."""
        return self.requested.offer

    @property
    def provider(self) -> str:
        """Who makes it."""
        return self.requested.offer.provider

    @property
    def ends(self) -> float:
        """When its machine ends itself; 0: there is none yet."""
        return self.accepted + self.requested.life if self.accepted else 0.0


def with_handle(lease: Lease, handle: str) -> Lease:
    """The lease as it is when its provider has a name for it."""
    return msgspec.structs.replace(lease, handle=handle, state=LeaseState.ACCEPTED)


COMING: Final = frozenset(
    {
        LeaseState.REQUESTED,
        LeaseState.SUBMITTING,
        LeaseState.IN_DOUBT,
        LeaseState.ACCEPTED,
        LeaseState.BOOTING,
        LeaseState.JOINING,
        LeaseState.VALIDATING,
    }
)
"""It may become ready."""
STARTING: Final = frozenset(
    {LeaseState.ACCEPTED, LeaseState.BOOTING, LeaseState.JOINING, LeaseState.VALIDATING}
)
"""There is a machine that is not ready yet."""
SERVING: Final = frozenset({LeaseState.READY, LeaseState.BUSY})
"""It takes jobs."""
LEAVING: Final = frozenset(
    {LeaseState.DRAINING, LeaseState.QUARANTINED, LeaseState.TERMINATING, LeaseState.LOST}
)
"""It takes no more jobs."""


def fold(before: Lease | None, event: LeaseEvent, at: float) -> Lease | None:
    """The lease after an event that was recorded at `at`; None: it is over."""
    if isinstance(event, LeaseRequested):
        return Lease(requested=event, state=LeaseState.REQUESTED, since=at, until=event.until, made=at)
    assert before is not None, f"{type(event).__name__} of a lease that was not requested"
    if isinstance(event, LeaseFailed | LeaseGone):
        return None
    return msgspec.structs.replace(before, **_changed(before, event, at))


def _changed(before: Lease, event: LeaseEvent, at: float) -> dict[str, object]:  # noqa: C901, PLR0912 - one case for each event
    match event:
        case LeaseSubmitting(attempt=attempt):
            return _into(LeaseState.SUBMITTING, at, event.until) | {"attempt": attempt, "asked": at}
        case LeaseInDoubt():
            since = before.since if before.state is LeaseState.IN_DOUBT else at
            return _into(LeaseState.IN_DOUBT, since, event.until) | {"words": event.words}
        case LeaseDeferred(again=again, words=words):
            return _into(LeaseState.REQUESTED, at, event.until) | {"again": again, "words": words}
        case LeaseAccepted(handle=handle):
            return _into(LeaseState.ACCEPTED, at, event.until) | {
                "handle": handle,
                "accepted": at,
                "words": "",
            }
        case LeaseBooting():
            return _into(LeaseState.BOOTING, at, event.until)
        case LeaseJoining():
            return _into(LeaseState.JOINING, at, event.until) | {"extensions": 0}
        case LeaseValidating():
            return _into(LeaseState.VALIDATING, at, event.until) | {"extensions": 0}
        case LeaseExtended(progress=progress, until=until):
            return {"progress": progress, "until": until, "extensions": before.extensions + 1}
        case LeaseReady():
            first = before.ready or at
            used = at if before.state is LeaseState.BUSY else before.used or at
            return _into(LeaseState.READY, at, event.until) | {"ready": first, "used": used}
        case LeaseBusy():
            return _into(LeaseState.BUSY, at, event.until) | {"ready": before.ready or at, "used": at}
        case LeaseQuarantined(words=words):
            return _into(LeaseState.QUARANTINED, at, event.until) | {"words": words}
        case LeaseDraining(why=why):
            return _into(LeaseState.DRAINING, at, event.until) | {"words": why}
        case LeaseUnwanted(why=why):
            return {"unwanted": why}
        case LeaseTerminating(why=why, removal=removal):
            since = before.since if before.state is LeaseState.TERMINATING else at
            changed = _into(LeaseState.TERMINATING, since, event.until)
            return changed | {"words": why, "removal": removal, "failed": event.failed}
        case LeaseDuplicated(handle=handle, removal=removal, until=until):
            return {"duplicates": before.duplicates | {handle: Removal(removal, until)}}
        case LeaseDuplicateGone(handle=handle):
            return {"duplicates": {key: each for key, each in before.duplicates.items() if key != handle}}
        case LeaseConsole():
            return {"console": True}
        case LeaseLost(words=words):
            return _into(LeaseState.LOST, at, event.until) | {"words": words}
        case _:
            return {}


def _into(state: LeaseState, since: float, until: float) -> dict[str, object]:
    return {"state": state, "since": since, "until": until}


class Orphan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine of ours that no lease wants."""

    found: OrphanFound
    until: float
    """When it is removed, or asked to be removed again."""
    removal: int = 0


def fold_orphan(before: Orphan | None, event: OrphanEvent, at: float) -> Orphan | None:
    """The orphan after an event; None: it is over."""
    del at
    match event:
        case OrphanFound(until=until):
            return Orphan(found=event, until=until)
        case OrphanRemoving(removal=removal, until=until):
            assert before is not None, "an orphan is removed that was not found"
            return msgspec.structs.replace(before, removal=removal, until=until)
        case OrphanGone():
            return None
