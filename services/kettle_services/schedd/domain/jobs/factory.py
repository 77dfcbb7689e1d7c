"""
Late materialisation: a cluster's jobs come into the queue little by little, so that a million cost what a few cost.

    submitted --> making <--> paused (somebody held the cluster)
                    |            |
                    +-> done     +--> closed (somebody removed it): what is not made is never made

Pure.  What was submitted is a table; a job is a row of it until it is made, and then a job like any other.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kettle_wire.ads import Ad
from kettle_wire.events import (
    ClusterSubmitted,
    FactoryChanged,
    FactoryClosed,
    FactoryEvent,
    FactoryMaterialized,
)

LIMIT: Final = "JobMaterializeLimit"
MAX_IDLE: Final = "JobMaterializeMaxIdle"
RUNS, HELD, DONE = 0, 1, 2
"""JobMaterializePaused."""
NO_LIMIT: Final = -1
_ASKING: Final = frozenset({LIMIT.lower(), MAX_IDLE.lower()})


class Factory(msgspec.Struct, frozen=True):
    """How far the making of a cluster's jobs is, and how fast it may go."""

    size: int
    """How many jobs there will have been."""
    limit: int = NO_LIMIT
    max_idle: int = NO_LIMIT
    made: int = 0
    """The jobs before this number exist, or have existed."""
    paused: int = RUNS

    @property
    def unmade(self) -> int:
        """How many jobs are still to be made."""
        return self.size - self.made

    @property
    def attributes(self) -> Ad:
        """The attributes of HTCondor's job ads for it."""
        ad: Ad = {
            "JobMaterializeNextProcId": self.made,
            "JobMaterializeNextRow": self.made,
            "JobMaterializePaused": self.paused if self.unmade else DONE,
        }
        ad |= {LIMIT: self.limit} if self.limit != NO_LIMIT else {}
        return ad | ({MAX_IDLE: self.max_idle} if self.max_idle != NO_LIMIT else {})

    def room(self, *, present: int, waiting: int) -> int:
        """
        How many jobs it may make now, where `present` are in the queue and `waiting` of these idle or held.
        """
        if self.paused:
            return 0
        rooms = [self.unmade]
        rooms += [self.limit - present] if self.limit != NO_LIMIT else []
        rooms += [self.max_idle - waiting] if self.max_idle != NO_LIMIT else []
        return max(min(rooms), 0)


def asked(names: Iterable[str]) -> bool:
    """Whether a submission with these attributes has its jobs made little by little."""
    return not _ASKING.isdisjoint(map(str.lower, names))


def begun(event: ClusterSubmitted) -> Factory:
    """The factory of a cluster that has just been submitted."""
    said = {name.lower(): value for name, value in event.ad.items()}
    limit, max_idle = said.get(LIMIT.lower()), said.get(MAX_IDLE.lower())
    return Factory(
        size=len(event.rows),
        limit=limit if isinstance(limit, int) else NO_LIMIT,
        max_idle=max_idle if isinstance(max_idle, int) else NO_LIMIT,
    )


def evolve(factory: Factory, event: FactoryEvent) -> Factory:
    """The factory after an event of its own; total."""
    match event:
        case FactoryMaterialized(first=first, count=count):
            return msgspec.structs.replace(factory, made=first + count)
        case FactoryChanged(limit=limit, max_idle=max_idle, paused=paused):
            return msgspec.structs.replace(factory, limit=limit, max_idle=max_idle, paused=paused)
        case FactoryClosed(first=first):
            return msgspec.structs.replace(factory, size=first)


def paused(cluster: int, factory: Factory, *, reason: str, by: str) -> list[FactoryChanged]:
    """What is recorded when somebody holds the cluster; nothing if it is held."""
    return _set_pause(cluster, factory, HELD, reason, by)


def resumed(cluster: int, factory: Factory, *, reason: str, by: str) -> list[FactoryChanged]:
    """What is recorded when somebody releases it; nothing if it is not held."""
    return _set_pause(cluster, factory, RUNS, reason, by)


def _set_pause(cluster: int, factory: Factory, pause: int, reason: str, by: str) -> list[FactoryChanged]:
    if factory.paused == pause:
        return []
    return [
        FactoryChanged(
            cluster=cluster,
            first=factory.made,
            limit=factory.limit,
            max_idle=factory.max_idle,
            paused=pause,
            reason=reason,
            by=by,
        )
    ]


def closed(cluster: int, owner: str, factory: Factory, *, reason: str, by: str) -> list[FactoryClosed]:
    """What is recorded when somebody removes it; nothing if all its jobs are made."""
    if not factory.unmade:
        return []
    return [
        FactoryClosed(
            cluster=cluster, owner=owner, first=factory.made, count=factory.unmade, reason=reason, by=by
        )
    ]
