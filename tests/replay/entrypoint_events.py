"""
Everything that a compute entrypoint ever records, and what its schedd does for it, in an order in which it may happen.

    .venv/bin/python -m tests.replay.entrypoint_events 0.1.36     its frames become tests/replay/0.1.36
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from kettle.testing.entrypoint_events import ENTRYPOINT, PAYLOADS, REGISTERED, ROUTED
from kettle_services.ce.record import shard_of
from kettle_wire.events import encode, tag_of
from kettle_wire.events.codec import Recorded
from kettle_wire.frames import Entry, Frame

from .folds import expected
from .recording import HERE, write

SHARD: Final = shard_of("schedd")
_AT: Final = 1_795_651_200_000_000


def frames(shard: str = SHARD, events: Sequence[tuple[str, Recorded]] = ENTRYPOINT) -> list[Frame]:
    """One commit for each event."""
    made: list[Frame] = []
    versions = Counter[str]()
    for number, (stream, event) in enumerate(events, start=1):
        versions[stream] += 1
        entry = Entry(stream, versions[stream], tag_of(event), encode(event), b"")
        made.append(Frame(shard, 1, number, number, _AT + number * 1_000_000, [entry]))
    return made


def of_schedd() -> list[Frame]:
    """Jobs of its queue."""
    return frames("schedd.routed", ROUTED)


def of_pilots() -> list[Frame]:
    """What pilots report."""
    return frames("ce.pilots", PAYLOADS)


def of_registry() -> list[Frame]:
    """What a registry of entrypoints records of those that are silent."""
    return frames("collector.registry", REGISTERED)


if __name__ == "__main__":
    shards = {
        SHARD: frames(),
        "schedd.routed": of_schedd(),
        "ce.pilots": of_pilots(),
        "collector.registry": of_registry(),
    }
    write(HERE / sys.argv[1], shards)
    (HERE / sys.argv[1] / "expected.json").write_bytes(expected(shards))
