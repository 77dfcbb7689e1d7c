"""
What a schedd records of the published services of a running job, in an order in which it happens.

    .venv/bin/python -m tests.replay.service_events 0.1.139     its frames become tests/replay/0.1.139
"""

import sys
from typing import Final

from kettle_wire.events import ClaimGranted, ClusterSubmitted, JobAssigned, JobServed, JobStarted
from kettle_wire.events.codec import Recorded
from kettle_wire.events.job import ServiceUse
from kettle_wire.frames import Frame

from .entrypoint_events import frames
from .folds import expected
from .recording import HERE, write

SHARD: Final = "schedd.served"
_SERVED: Final[list[tuple[str, Recorded]]] = [
    (
        "cluster/12",
        ClusterSubmitted(
            cluster=12,
            owner="ada",
            ad={"Cmd": "/bin/server", "Services": "web:8080/http", "ServicesSharedWith": "eve"},
            columns=[],
            rows=[[]],
        ),
    ),
    (
        "claim/node1#1",
        ClaimGranted(
            claim="node1#1",
            slot="slot1@node1",
            startd="node1",
            submitter="ada",
            slot_ad={"Name": "slot1@node1", "Cpus": 1},
            autocluster=1,
            lease=60.0,
        ),
    ),
    ("job/12.0", JobAssigned(attempt=1, claim="node1#1", slot="slot1@node1", startd="node1")),
    ("job/12.0", JobStarted(attempt=1, pid=7)),
    ("job/12.0", JobServed(attempt=1, tunnel="up", services=["web:8080/http"])),
    (
        "job/12.0",
        JobServed(
            attempt=1,
            uses=[
                ServiceUse(person="eve", service="web", because="shared", connections=2, sent=3, received=4),
                ServiceUse(person="bob", service="web", refused=1),
            ],
        ),
    ),
    ("job/12.0", JobServed(attempt=1, tunnel="down", reason="the other side has closed it")),
]


def of_schedd() -> list[Frame]:
    """One commit for each."""
    return frames(SHARD, _SERVED)


if __name__ == "__main__":
    shards = {SHARD: of_schedd()}
    write(HERE / sys.argv[1], shards)
    (HERE / sys.argv[1] / "expected.json").write_bytes(expected(shards))
