"""Frames of the collector in, rows out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kettle.eventsourcing.projection import Decoded, Tx
from kettle.projections.stored_projection import instant, storable
from kettle.storage.queries import load
from kettle_wire.events import MachineJoined, MachineLeft

HERE: Final = Path(__file__).parent
_QUERIES: Final = load(HERE / "queries.sql")


class Machines:
    """See `StoredProjection`. Version 1."""

    def __init__(self) -> None:
        self.name: Final = "machines"
        self.version: Final = 1
        self.kinds: Final = ("collector",)
        self.directory: Final = HERE

    async def apply(self, tx: Tx, frames: Sequence[Decoded]) -> None:
        """See `Projection.apply`."""
        passages: list[tuple[object, ...]] = []
        came: dict[str, tuple[object, ...]] = {}
        times: dict[str, int] = {}
        left: dict[str, tuple[object, ...]] = {}
        for frame, decoded in frames:
            at = instant(frame.at)
            for position, event in enumerate(decoded, frame.position):
                match event:
                    case MachineJoined():
                        name = storable(event.machine)
                        passages.append((position, at, name, True, None))
                        times[name] = times.get(name, 0) + 1
                        came[name] = (name, at, event.cpus, event.memory)
                        left.pop(name, None)
                    case MachineLeft():
                        name, reason = storable(event.machine), storable(event.reason)
                        passages.append((position, at, name, False, reason))
                        left[name] = (name, at, reason)
                    case _:
                        pass
        shard = frames[0][0].shard
        joins = [(*row, times[name]) for name, row in came.items()]
        for query, rows in (("pass", passages), ("join", joins), ("leave", list(left.values()))):
            if rows:
                await tx.execute(_QUERIES[query], shard, *map(list, zip(*rows, strict=True)))
