"""
The log and the working set in memory, with the guards of the real ones: for tests, replay and simulation.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence

import msgspec

from kettle.eventsourcing.log import IMPORTED, Answered, FencedError, StoredEvent, Tenure, not_taken
from kettle_wire.event_expansion import stream_of_many, with_those_of_many
from kettle_wire.frames import Frame, encode, recorded


class _Shard:
    def __init__(self, name: str) -> None:
        self.tenure = Tenure(shard=name, epoch=0, owner="", head=0, frame=0)
        self.frames: list[bytes] = []
        self.answers: OrderedDict[str, Answered] = OrderedDict()
        self.folded = 0
        self.rows: dict[str, StoredEvent] = {}


class MemoryLog:
    """Keeps encoded frames, so that what is read back was decoded, as from a database."""

    def __init__(self) -> None:
        self._shards: dict[str, _Shard] = {}

    async def take(self, shard: str, *, owner: str) -> Tenure:
        """See `Log.take`."""
        mine = self._shards.setdefault(shard, _Shard(shard))
        if mine.tenure.epoch and (mine.tenure.owner == IMPORTED) != (owner == IMPORTED):
            raise not_taken(shard, owner)
        mine.tenure = msgspec.structs.replace(mine.tenure, epoch=mine.tenure.epoch + 1, owner=owner)
        return mine.tenure

    async def append(self, frame: Frame, answers: Sequence[Answered] = ()) -> None:
        """See `Log.append`."""
        mine = self._shards.get(frame.shard) or _Shard(frame.shard)
        now = mine.tenure
        if (now.epoch, now.frame, now.head) != (frame.epoch, frame.number - 1, frame.position - 1):
            raise FencedError(
                f"{frame.shard}: frame {frame.number} of epoch {frame.epoch} at position {frame.position} "
                f"does not follow frame {now.frame} of epoch {now.epoch} at head {now.head}"
            )
        for answer in answers:
            mine.answers.setdefault(answer.id, answer)
        if frame.entries:
            mine.frames.append(encode(frame))
            mine.tenure = msgspec.structs.replace(now, frame=frame.number, head=frame.head)

    async def tenure(self, shard: str) -> Tenure | None:
        """See `Log.tenure`."""
        mine = self._shards.get(shard)
        return mine.tenure if mine else None

    async def shards(self) -> list[Tenure]:
        """See `Log.shards`."""
        return [self._shards[name].tenure for name in sorted(self._shards)]

    async def read(self, shard: str, *, after: int = 0, until: int | None = None) -> AsyncIterator[Frame]:
        """See `Log.read`."""
        mine = self._shards.get(shard)
        for data in mine.frames[after:until] if mine else ():
            yield recorded(data)

    async def stream(self, shard: str, stream: str) -> list[tuple[Frame, int]]:
        """See `Log.stream`."""
        found: dict[str | None, list[tuple[Frame, int]]] = {stream: [], stream_of_many(stream): []}
        async for frame in self.read(shard):
            for position, entry in enumerate(frame.entries, frame.position):
                if entry.stream in found:
                    single = msgspec.structs.replace(frame, position=position, entries=[entry])
                    found[entry.stream].append((single, position))
        return with_those_of_many(found[stream], found[stream_of_many(stream)], stream)

    async def answers(self, shard: str, *, newest: int) -> list[Answered]:
        """See `Log.answers`."""
        mine = self._shards.get(shard)
        return list(mine.answers.values())[-newest:] if mine and newest else []

    async def forget_answers(self, shard: str, *, keep: int) -> None:
        """See `Log.forget_answers`."""
        mine = self._shards.get(shard)
        while mine and len(mine.answers) > keep:
            mine.answers.popitem(last=False)

    def kept(self, shard: str) -> "_Shard | None":
        """All that is kept of a shard, its working set included."""
        return self._shards.get(shard)


class MemoryWorkingSet:
    """The working sets of the shards of one `MemoryLog`, which knows their epochs."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def load(self, shard: str) -> tuple[int, list[StoredEvent]]:
        """See `WorkingSet.load`."""
        mine = self._log.kept(shard)
        return (mine.folded, [mine.rows[name] for name in sorted(mine.rows)]) if mine else (0, [])

    async def save(
        self, shard: str, *, epoch: int, was: int, now: int, put: Sequence[StoredEvent], drop: Sequence[str]
    ) -> None:
        """See `WorkingSet.save`."""
        mine = self._log.kept(shard)
        if mine is None or (mine.tenure.epoch, mine.folded) != (epoch, was):
            raise FencedError(f"{shard}: the working set is not at frame {was} of epoch {epoch} any more")
        mine.folded = now
        for stream in drop:
            mine.rows.pop(stream, None)
        mine.rows.update((row.stream, row) for row in put)
