"""
What a schedd records of clusters that are submitted together, and of their jobs, in an order in which it happens.

    .venv/bin/python -m tests.replay.together_events 0.1.213     its frames become tests/replay/0.1.213
"""

import sys
from typing import Final

from kettle_wire.attempts import ExitRecord, Usage
from kettle_wire.events import (
    ClaimGranted,
    ClustersSubmitted,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobRemoved,
    JobStarted,
)
from kettle_wire.events.codec import Recorded
from kettle_wire.frames import Frame

from .entrypoint_events import frames
from .folds import expected
from .recording import HERE, write

SHARD: Final = "schedd.together"
_TOGETHER: Final[list[tuple[str, Recorded]]] = [
    (
        "clusters/0",
        ClustersSubmitted(
            first=498,
            owner="ada",
            ad={"Cmd": "/bin/true", "UserLog": "/home/ada/x.log", "Args": "a", "DAGNodeName": "A"},
            columns=["Args", "DAGNodeName"],
            rows=[["a", "A"], ["b", "B"]],
        ),
    ),
    (
        "clusters/500",
        ClustersSubmitted(
            first=500,
            owner="ada",
            ad={"Cmd": "/bin/true", "UserLog": "/home/ada/x.log", "Args": "a", "DAGNodeName": "A"},
            columns=["Args", "DAGNodeName"],
            rows=[["c", "C"], ["d", "D"], ["e", "E"]],
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
    ("job/498.0", JobAssigned(attempt=1, claim="node1#1", slot="slot1@node1", startd="node1")),
    ("job/498.0", JobStarted(attempt=1, pid=7)),
    ("job/498.0", JobCompleted(attempt=1, exit=ExitRecord(code=0, at=1.0), usage=Usage(wall=1.0))),
    ("job/499.0", JobRemoved(reason="it is not wanted", by="ada")),
    ("job/501.0", JobHeld(code=1, reason="later", by="ada")),
    ("job/502.0", JobRemoved(reason="it is not wanted", by="ada")),
    (
        "clusters/500",
        ClustersSubmitted(first=503, owner="ada", ad={"Cmd": "/bin/true"}, columns=[], rows=[[], []]),
    ),
]


def of_schedd() -> list[Frame]:
    """One commit for each."""
    return frames(SHARD, _TOGETHER)


if __name__ == "__main__":
    shards = {SHARD: of_schedd()}
    write(HERE / sys.argv[1], shards)
    (HERE / sys.argv[1] / "expected.json").write_bytes(expected(shards))
