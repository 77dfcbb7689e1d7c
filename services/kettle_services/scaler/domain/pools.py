"""What people decided about each pool of workers, and how their next order is decided."""

from typing import Final, assert_never

import msgspec

from kettle_wire.events.pool import PoolChanged, PoolEvent, PoolPaused, PoolResumed, PoolRetired
from kettle_wire.worker_pools import WorkerPool

KIND: Final = "pool"
"""The first word of the streams."""


class PoolRefused(Exception):  # noqa: N818 - a refusal is no error of ours
    """An order cannot be carried out; the message is the sentence for who gave it."""


class Paused(msgspec.Struct, frozen=True):
    """Why a pool makes no machines."""

    by: str
    at: float
    reason: str
    drain: bool
    """Those that it has are removed, too."""


class PoolState(msgspec.Struct, frozen=True, kw_only=True):
    """A pool of workers as people want it."""

    pool: WorkerPool
    digest: str
    version: int
    """Counts from 1 with each file that says something new."""
    by: str
    at: float
    """When it became as it is; seconds since the epoch."""
    paused: Paused | None = None
    retired: bool = False

    @property
    def may_grow(self) -> bool:
        """Whether machines may be made for it."""
        return self.paused is None and not self.retired

    @property
    def drains(self) -> bool:
        """Whether the machines that it has are to be removed."""
        return self.retired or (self.paused is not None and self.paused.drain)


def stream(name: str) -> str:
    """Where what is decided about a pool is recorded."""
    return f"{KIND}/{name}"


def fold_pool(state: PoolState | None, event: PoolEvent, at: float) -> PoolState:
    """The pool after an event."""
    del at  # events say when somebody decided
    match event:
        case PoolChanged():
            return PoolState(
                pool=event.pool,
                digest=event.digest,
                version=1 if state is None else state.version + 1,
                by=event.by,
                at=event.at,
                paused=None if state is None or state.retired else state.paused,
            )
        case PoolPaused():
            return msgspec.structs.replace(
                _begun(state), paused=Paused(event.by, event.at, event.reason, event.drain)
            )
        case PoolResumed():
            return msgspec.structs.replace(_begun(state), paused=None)
        case PoolRetired():
            return msgspec.structs.replace(_begun(state), retired=True, paused=None)
        case _:
            assert_never(event)


def _begun(state: PoolState | None) -> PoolState:
    if state is None:
        raise ValueError("the first event of a pool says what it is")
    return state


def decide_apply(
    state: PoolState | None, pool: WorkerPool, digest: str, *, by: str, now: float
) -> list[PoolEvent]:
    """What applying a file comes to; nothing, if it says what is recorded.  Raises PoolRefused."""
    names = [offer.name for offer in pool.offers]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise PoolRefused(
            f"two offers of the pool {pool.name} are called {twice}: give each a name of its own"
        )
    if state is not None and state.digest == digest and not state.retired:
        return []
    return [PoolChanged(pool=pool, digest=digest, by=by, at=now)]


def decide_pause(
    state: PoolState, *, by: str, now: float, reason: str = "", drain: bool = False
) -> list[PoolEvent]:
    """
    Make no more machines; with `drain` remove those that there are, which only resuming takes back.  Another reason is recorded, none
    leaves the one that is there.  Raises PoolRefused.
    """
    _require_kept(state)
    if (paused := state.paused) is not None:
        if (paused.drain or not drain) and reason in {"", paused.reason}:
            return []
        reason, drain = reason or paused.reason, drain or paused.drain
    return [PoolPaused(reason=reason, drain=drain, by=by, at=now)]


def decide_resume(state: PoolState, *, by: str, now: float) -> list[PoolEvent]:
    """Make machines again.  Raises PoolRefused."""
    _require_kept(state)
    return [] if state.paused is None else [PoolResumed(by=by, at=now)]


def decide_retire(state: PoolState, *, by: str, now: float) -> list[PoolEvent]:
    """Give a pool up."""
    return [] if state.retired else [PoolRetired(by=by, at=now)]


def require_growing(state: PoolState) -> None:
    """Raises PoolRefused: no machine may be made for it, and what would change that."""
    _require_kept(state)
    if not state.may_grow:
        name = state.pool.name
        raise PoolRefused(f"the pool {name} makes no machines now: go on with kettle pool resume {name}")


def _require_kept(state: PoolState) -> None:
    if state.retired:
        raise PoolRefused(
            f"the pool {state.pool.name} is retired: apply its file again (kettle pool apply) to have it back"
        )
