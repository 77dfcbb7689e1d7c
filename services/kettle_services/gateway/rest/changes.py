"""
Which things have changed, for pages that show some of them.

What is sent is made once for all who want the same, and not more often than a person can see.
"""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from kettle_services.gateway.rest.event_hub import Happening
from kettle_services.gateway.rest.jobs import job_name
from kettle_wire.rest.streams import Changed, FollowChanges

EVERY_S: Final = 0.25
MOST: Final = 200
"""Names in one message; who has more to look at reads the list again."""

_MANY: Final = Changed(many=True)


class _Wanted(msgspec.Struct, frozen=True):
    """What somebody wants to know of."""

    owners: frozenset[str] = frozenset()
    clusters: frozenset[int] = frozenset()
    jobs: frozenset[str] = frozenset()
    """As they were named: with an access point, or of any."""

    @classmethod
    def of(cls, asked: FollowChanges) -> "_Wanted":
        """Raises RequestRefused for a job that cannot be."""
        jobs = [f"{job}@{schedd}" if schedd else str(job) for job, schedd in map(job_name, asked.job)]
        return cls(frozenset(asked.owner), frozenset(asked.cluster), frozenset(jobs))

    @property
    def is_all(self) -> bool:
        return not (self.owners or self.clusters or self.jobs)

    def has(self, happening: Happening) -> bool:
        """Whether this is about something of it."""
        if happening.cluster is None:
            return self.is_all
        number = f"{happening.cluster}.{happening.proc}"
        return (
            (not self.owners or happening.owner in self.owners)
            and (not self.clusters or happening.cluster in self.clusters)
            and (not self.jobs or number in self.jobs or f"{number}@{happening.schedd}" in self.jobs)
        )


class ChangeReader:
    """Somebody who is told."""

    def __init__(self) -> None:
        self._changed: bytes = b""
        self._some = asyncio.Event()

    def tell(self, changed: bytes) -> None:
        """What was told and not read yet is not told again: it was much."""
        self._changed = _event(_MANY) if self._changed else changed
        self._some.set()

    async def next(self) -> bytes:
        """What has changed, as a server-sent event."""
        await self._some.wait()
        self._some.clear()
        changed, self._changed = self._changed, b""
        return changed


class Changes:
    """Tells everybody who follows some."""

    def __init__(self) -> None:
        self._readers: dict[_Wanted, set[ChangeReader]] = {}
        self._come: dict[tuple[str, str], Happening] = {}
        """The last event of each thing since everybody was told."""
        self._some = asyncio.Event()

    def heard(self, happenings: Sequence[Happening]) -> None:
        """These events have come."""
        if not self._readers:
            return
        self._come.update({(each.schedd, each.stream): each for each in happenings})
        self._some.set()

    @contextmanager
    def reader(self, asked: FollowChanges) -> Generator[ChangeReader]:
        """Somebody who is told, as long as that lasts."""
        wanted, reader = _Wanted.of(asked), ChangeReader()
        readers = self._readers.setdefault(wanted, set())
        readers.add(reader)
        try:
            yield reader
        finally:
            readers.discard(reader)
            if not readers:
                self._readers.pop(wanted, None)

    async def run(self) -> None:
        """Tell them, at most so often, without end."""
        while True:
            await self._some.wait()
            self._some.clear()
            self.tell()
            await asyncio.sleep(EVERY_S)

    def tell(self) -> None:
        """Tell everybody what has come since the last time."""
        come, self._come = list(self._come.values()), {}
        for wanted, readers in self._readers.items():
            found = [each for each in come if wanted.has(each)]
            if found:
                event = _event(_changed(found))
                for reader in readers:
                    reader.tell(event)


def _changed(found: Sequence[Happening]) -> Changed:
    if len(found) > MOST:
        return _MANY
    jobs = [each for each in found if each.cluster is not None]
    return Changed(
        jobs=list(dict.fromkeys(map(_name, jobs))),
        others=[each.stream for each in found if each.cluster is None],
    )


def _name(happening: Happening) -> str:
    number = "" if happening.proc is None else f".{happening.proc}"
    return f"{happening.cluster}{number}@{happening.schedd}"


def _event(changed: Changed) -> bytes:
    return b"event: changed\ndata: %b\n\n" % msgspec.json.encode(changed)
