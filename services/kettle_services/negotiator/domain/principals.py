"""
What the accountant knows about a principal, and how recorded events change it.

A principal is a submitter, or an accounting group with all groups below it, as `<group>`.  Its real priority follows
its use of the pool with a half-life: a submitter who has used ten cores for long enough has 10, and one who has used
nothing for long enough has the minimum, 0.5.  Smaller is better.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from kettle_wire.events import (
    PrincipalCharged,
    PrincipalDeleted,
    PrincipalEvent,
    PrincipalReset,
    PrincipalSet,
)

STREAM: Final = "principal/"
"""How the streams of principals begin in the log."""
LEAST: Final = 0.5
"""The best real priority, and the first."""
NICE: Final = "nice-user."
"""The beginning of the names of submitters whose jobs use only what others do not want."""

GROUP: Final = "<"
"""How the names of groups' principals begin; no submitter's does."""


class Principal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Usage in seconds of slots, and weighted by SLOT_WEIGHT; times in seconds since the epoch, 0: never."""

    priority: float = LEAST
    factor: float | None = None
    """As an administrator set it."""
    slots: float = 0.0
    weight: float = 0.0
    accumulated: float = 0.0
    weighted_accumulated: float = 0.0
    begun: float = 0.0
    last: float = 0.0
    charged: float = 0.0
    """Until when `priority` and usage are worked out."""
    floor: float = 0.0
    ceiling: float = -1.0
    """The most that may be in use at a time, in slot weights; below zero: there is none."""


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final[Callable[[bytes], Principal | None]] = msgspec.msgpack.Decoder(Principal | None).decode


def group_principal(group: str) -> str:
    """The name under which the accountant knows an accounting group."""
    return f"<{group}>"


def row_of(principal: Principal | None) -> bytes:
    """
    The row of the working set of a principal; that of one who is forgotten stays, because its stream may go on.
    """
    return _encode(principal)


def principal_of(row: bytes) -> Principal | None:
    """Inverse of `row_of`."""
    return _decode(row)


class Factors(msgspec.Struct, frozen=True, kw_only=True):
    """Which priority factor those have for whom none was set."""

    default: float = 1000.0
    """DEFAULT_PRIO_FACTOR."""
    nice: float = 1e10
    """NICE_USER_PRIO_FACTOR, of those whose names begin with `nice-user.`"""
    remote: float = 1e7
    """REMOTE_PRIO_FACTOR, of those of another domain than `local_domain`."""
    local_domain: str = ""
    """ACCOUNTANT_LOCAL_DOMAIN; empty: nobody is remote. A name without a domain is local."""

    def of(self, name: str, principal: Principal, *, group: float | None = None) -> float:
        """The factor of a principal; `group` is the one of its accounting group, if that has one."""
        if principal.factor is not None:
            return principal.factor
        if group is not None:
            return group
        if name.lower().startswith(NICE):
            return self.nice
        domain = name.rpartition("@")[2] if "@" in name else ""
        if self.local_domain and domain and domain.lower() != self.local_domain.lower():
            return self.remote
        return self.default


def decayed(priority: float, recent: float, seconds: float, half_life: float) -> float:
    """A real priority after some seconds in which so much was used on average."""
    beta: float = 0.5 ** (seconds / half_life)
    return max(LEAST, priority * beta + recent * (1.0 - beta))


def at_time(principal: Principal, now: float, half_life: float) -> Principal:
    """The principal at a later time, if it has used nothing since it was charged."""
    seconds = now - principal.charged
    if not principal.charged or seconds <= 0:
        return principal
    return msgspec.structs.replace(
        principal, priority=decayed(principal.priority, 0.0, seconds, half_life), charged=now
    )


def fold(principal: Principal | None, event: PrincipalEvent) -> Principal | None:
    """The principal after an event; None: it is removed."""
    match event:
        case PrincipalCharged():
            return _charged(principal or Principal(), event)
        case PrincipalSet():
            return _set(principal or Principal(), event)
        case PrincipalReset():
            return msgspec.structs.replace(
                principal or Principal(), accumulated=0.0, weighted_accumulated=0.0, begun=event.at
            )
        case PrincipalDeleted():
            return None


def fold_into(principals: dict[str, Principal], event: PrincipalEvent) -> Principal | None:
    """Apply an event to the principals; returns its own principal."""
    after = fold(principals.pop(event.principal, None), event)
    if after is not None:
        principals[event.principal] = after
    return after


def _charged(principal: Principal, event: PrincipalCharged) -> Principal:
    seconds = event.at - event.since
    if seconds <= 0 or event.at < principal.charged:
        return msgspec.structs.replace(principal, slots=event.slots, weight=event.weight, charged=event.at)
    before = at_time(principal, event.since, event.half_life)
    recent = event.weight + event.weighted_uncharged / seconds
    used = event.slots * seconds + event.uncharged
    return msgspec.structs.replace(
        before,
        priority=decayed(before.priority, recent, seconds, event.half_life),
        slots=event.slots,
        weight=event.weight,
        accumulated=before.accumulated + used,
        weighted_accumulated=before.weighted_accumulated + recent * seconds,
        begun=before.begun or (event.since if used else 0.0),
        last=event.at if used else before.last,
        charged=event.at,
    )


def _set(principal: Principal, event: PrincipalSet) -> Principal:
    match event.setting:
        case "priority":
            return msgspec.structs.replace(principal, priority=event.value, charged=event.at)
        case "factor":
            return msgspec.structs.replace(principal, factor=event.value)
        case "accumulated":
            return msgspec.structs.replace(principal, weighted_accumulated=event.value)
        case "begin":
            return msgspec.structs.replace(principal, begun=event.value)
        case "last":
            return msgspec.structs.replace(principal, last=event.value)
        case "floor":
            return msgspec.structs.replace(principal, floor=event.value)
        case "ceiling":
            return msgspec.structs.replace(principal, ceiling=event.value)
