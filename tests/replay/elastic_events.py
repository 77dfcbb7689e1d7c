"""
Everything that a scaler ever records: a plan of its planner with the leases of it, and each other event in an order in which they may
happen.

    .venv/bin/python -m tests.replay.elastic_events 0.1.188     its frames become tests/replay/0.1.188
"""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.unit.scaler.planning_lab import Lab, job, offer, pool

from kettle.testing.elastic_events import ELASTIC
from kettle_services.scaler.domain.plans import STREAM
from kettle_services.scaler.record import SHARD
from kettle_wire.events import Event, encode, tag_of
from kettle_wire.events.lease import LeaseGone, LeaseRequested
from kettle_wire.events.plan import PlanMade
from kettle_wire.frames import Entry, Frame

from .folds import expected
from .recording import HERE, write

_AT: Final = 1_795_651_200_000_000


def _planned() -> list[tuple[str, Event]]:
    """Small jobs, a large one, one that no machine holds, and a pool that is full."""
    lab = Lab(pool("lab", [offer(), offer("large", 64, 262_144, price=2.0, currency="EUR", max=1)], max=3))
    lab.queue(60)
    lab.queue(2, job(40, 1024, Owner="bob"), submitter="bob")
    lab.queue(1, job(500, 1024, Owner="eve"), submitter="eve")
    plan = lab.plan()
    return [(STREAM, plan.made), *((f"lease/{lease.lease}", lease) for lease in plan.leases)]


def commits() -> Iterator[list[tuple[str, Event]]]:
    """
    What is recorded together. Nothing comes after the failure of a lease, so how one ends otherwise is told of a second
    one.
    """
    requests = [event for _, event in ELASTIC if isinstance(event, LeaseRequested)]
    for stream, event in ELASTIC:
        if isinstance(event, PlanMade):
            yield _planned()
        elif isinstance(event, LeaseGone):
            yield [(f"{stream}-2", request) for request in requests]
            yield [(f"{stream}-2", event)]
        else:
            yield [(stream, event)]


def frames() -> list[Frame]:
    """One commit after the other."""
    made: list[Frame] = []
    versions, position = Counter[str](), 1
    for changes in commits():
        entries: list[Entry] = []
        for stream, event in changes:
            versions[stream] += 1
            entries.append(Entry(stream, versions[stream], tag_of(event), encode(event), b""))
        number = len(made) + 1
        made.append(Frame(SHARD, 1, number, position, _AT + number * 1_000_000, entries))
        position += len(entries)
    return made


if __name__ == "__main__":
    shards = {SHARD: frames()}
    write(HERE / sys.argv[1], shards)
    (HERE / sys.argv[1] / "expected.json").write_bytes(expected(shards))
