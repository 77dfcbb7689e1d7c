"""Where in the log a row of a projection comes from: the last event that it follows from."""

from collections.abc import Mapping, Sequence
from typing import Final

from kettle.audit.database import Snapshot
from kettle_wire.events import ClusterSubmitted, Event, FactoryMaterialized
from kettle_wire.frames import Frame


class Whereabouts:
    """Fed the frames of one shard, it remembers of each owner the last position, and looks the rest up."""

    names: Sequence[str] = ()
    one_by_one = True

    def __init__(self, db: Snapshot, shard: str) -> None:
        self._db = db
        self._shard = shard
        self._owner_of: dict[int, str] = {}
        self._last: dict[str, int] = {}

    async def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """See `Follower.feed`."""
        for index, (entry, event) in enumerate(zip(frame.entries, events, strict=True)):
            position = frame.position_of(index)
            if isinstance(event, ClusterSubmitted):
                self._owner_of[event.cluster] = event.owner
                self._last[event.owner] = position
            elif isinstance(event, FactoryMaterialized):
                self._last[event.owner] = position
            elif entry.stream.startswith(_JOB):
                cluster = int(entry.stream.removeprefix(_JOB).partition(".")[0])
                self._last[self._owner_of.get(cluster, "")] = position

    async def finish(self) -> None:
        """See `Follower.finish`."""

    def of_owner(self, owner: str) -> int:
        """The last position of an event of this owner's clusters and jobs; 0: none."""
        return self._last.get(owner, 0)

    async def position(self, key: Mapping[str, object], *, until: int) -> int:
        """
        The last position, up to a frame, that a row with this primary key follows from; 0: it follows from none.
        """
        if "pos" in key:
            return int(str(key["pos"]))
        if "owner" in key:
            return self.of_owner(str(key["owner"]))
        for stream in _streams(key):
            if found := await self._db.last_of_stream(self._shard, stream, until=until):
                return found
        return 0


_JOB: Final = "job/"


def _streams(key: Mapping[str, object]) -> list[str]:
    if "cluster" in key:
        cluster = f"cluster/{key['cluster']}"
        more = f"job/{key['cluster']}.{key['proc']}" if "proc" in key else f"factory/{key['cluster']}"
        return [more, cluster]
    return [f"{kind}/{key[kind]}" for kind in ("claim", "machine", "cycle") if kind in key]
