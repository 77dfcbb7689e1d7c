"""One machine of a static pool, as its events made it."""

from typing import Final, assert_never

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.events.host import (
    HostAsleep,
    HostAwake,
    HostBroken,
    HostEvent,
    HostFenced,
    HostForgotten,
    HostHibernating,
    HostMended,
    HostNotWoken,
    HostWaking,
)
from kettle_wire.events.lease import Demand
from kettle_wire.worker_pools import Hibernation, HostState

KIND: Final = "host"
"""The first word of the streams."""


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    A machine.  One about which nothing is recorded is taken for awake, until it is not heard of.  Times are seconds since the epoch.
    """

    machine: str
    pool: str
    offer: str
    state: HostState = HostState.AWAKE
    since: float = 0.0
    until: float = 0.0
    """The deadline of its state; 0: it has none."""
    attempt: int = 0
    fenced: bool = False
    """It takes no more jobs, and its provider was asked to put it to sleep."""
    level: Hibernation = Hibernation.NONE
    """What it was put into."""
    again: float = 0.0
    """It is not tried before."""
    failures: int = 0
    words: str = ""
    demand: list[Demand] = []
    """For whom it is being woken."""
    slots: list[Ad] = []
    """The ads of its slots, as they were when it took jobs."""


def fold(before: Host | None, event: HostEvent, at: float) -> Host | None:
    """The machine after an event that was recorded at `at`; None: nothing is known of it any more."""
    if isinstance(event, HostForgotten):
        return None
    if before is None:
        assert isinstance(event, HostHibernating | HostAsleep), (
            f"{type(event).__name__} of an unknown machine"
        )
        before = Host(machine=event.machine, pool=event.pool, offer=event.offer)
    return msgspec.structs.replace(before, **_changed(before, event, at))


def _changed(before: Host, event: HostEvent, at: float) -> dict[str, object]:
    match event:
        case HostHibernating():
            return _into(HostState.HIBERNATING, at, event.why, event.until) | {
                "pool": event.pool,
                "offer": event.offer,
                "attempt": event.attempt,
                "level": event.level,
                "slots": event.slots,
                "fenced": False,
            }
        case HostFenced():
            return {"fenced": True}
        case HostAsleep():
            return _into(HostState.ASLEEP, at, event.words) | {"pool": event.pool, "offer": event.offer}
        case HostWaking():
            waking = _into(HostState.WAKING, at, event.why, event.until)
            return waking | {"attempt": event.attempt, "demand": event.demand}
        case HostNotWoken():
            failed = _into(HostState.ASLEEP, before.since, event.words)
            return failed | {"failures": event.failures, "again": event.again}
        case HostBroken():
            return _into(HostState.BROKEN, at, event.words) | {"failures": event.failures}
        case HostAwake():
            return _into(HostState.AWAKE, at, event.words) | {"failures": 0, "again": event.again}
        case HostMended():
            return _into(HostState.ASLEEP, at, f"{event.by} says that it can be woken") | {"failures": 0}
        case HostForgotten():
            return {}
        case _:
            assert_never(event)


def _into(state: HostState, since: float, words: str, until: float = 0.0) -> dict[str, object]:
    return {"state": state, "since": since, "words": words, "until": until, "again": 0.0, "demand": []}
