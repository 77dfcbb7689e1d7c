"""Whose an event is."""

from collections.abc import Sequence

from kettle_services.cli.log.databases import ShardLocation
from kettle_services.cli.log.event_pages import EventRow
from kettle_wire.events import ClaimGranted, ClusterSubmitted, Event, UnknownEventError, decode
from kettle_wire.frames import Entry


class Owners:
    """
    Selects the events of some owners: those of their clusters, jobs and claims.

    The owner of a cluster or a claim is in the first event of its stream, which is looked up if it was not read yet.
    """

    def __init__(self, place: ShardLocation, names: Sequence[str]) -> None:
        self._place = place
        self._names = frozenset(names)
        self._wanted: dict[str, bool] = {}

    async def takes(self, row: EventRow) -> bool:
        """Whether an event is of one of them; what cannot be read is everybody's."""
        kind, _, name = row.entry.stream.partition("/")
        match kind:
            case "job" | "factory":
                return await self._of(f"cluster/{name.partition('.')[0]}", row.entry)
            case "cluster" | "claim":
                return await self._of(row.entry.stream, row.entry)
            case _:
                return False

    async def _of(self, stream: str, entry: Entry) -> bool:
        if stream not in self._wanted:
            first = entry if entry.stream == stream and entry.version == 1 else await self._first(stream)
            self._wanted[stream] = first is None or self._is_theirs(first)
        return self._wanted[stream]

    async def _first(self, stream: str) -> Entry | None:
        found = await self._place.log.stream(self._place.shard, stream)
        return found[0][0].entries[0] if found else None

    def _is_theirs(self, entry: Entry) -> bool:
        try:
            event: Event = decode(entry.data)
        except UnknownEventError:
            return True
        match event:
            case ClusterSubmitted(owner=owner) | ClaimGranted(submitter=owner):
                return owner in self._names
            case _:
                return False
