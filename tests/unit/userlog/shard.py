"""A shard whose frames are fed to a projector of job event logs."""

from collections.abc import Sequence
from datetime import UTC

import msgspec

from kettle.userlog import LogLine, UserLogProjector
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    FactoryChanged,
    FactoryClosed,
    FactoryMaterialized,
    JobAssigned,
    JobCompleted,
    JobStarted,
    Usage,
    encode,
    tag_of,
)
from kettle_wire.frames import Entry, Frame

AT = 1_790_000_000
ASSIGNED = JobAssigned(attempt=1, claim="c#1", slot="slot1_1@ep", startd="ep")
STARTED = JobStarted(attempt=1, pid=1, at=AT + 2.0)
USAGE = Usage(wall=10.0, user_cpu=4.0, system_cpu=1.0, memory_kib=2049, disk_kib=50, sent=3, received=5)
DONE = JobCompleted(attempt=1, exit=ExitRecord(code=0, at=AT + 11.0), usage=USAGE)


def memory(projector: UserLogProjector) -> int:
    """The bytes of what a projector remembers of jobs."""
    state = msgspec.msgpack.decode(projector.snapshot())
    return len(msgspec.msgpack.encode([state[name] for name in ("clusters", "jobs", "claims", "told")]))


def cluster(
    rows: int = 1, ad: Ad | None = None, columns: Sequence[str] = (), items: list[list[Scalar]] | None = None
) -> ClusterSubmitted:
    base: Ad = {"Iwd": "/home/a", "userlog": "job.log", "RequestCpus": 1, "RequestMemory": Expr("1+1")}
    return ClusterSubmitted(
        cluster=5,
        owner="a",
        ad=base if ad is None else ad,
        columns=list(columns),
        rows=items if items is not None else [[] for _ in range(rows)],
    )


class Shard:
    """Feeds a projector one frame per call, a second apart."""

    def __init__(self) -> None:
        self.projector = UserLogProjector("ap:9618", zone=UTC)
        self.number = 0
        self.position = 1

    def frame(self, *events: Event, proc: int = 0) -> Frame:
        self.number += 1
        entries = [Entry(_stream(e, proc), 1, tag_of(e), encode(e)) for e in events]
        frame = Frame("schedd.ap", 1, self.number, self.position, (AT + self.number) * 1_000_000, entries)
        self.position += len(entries)
        return frame

    def feed(self, *events: Event, proc: int = 0) -> list[LogLine]:
        return self.projector.feed(self.frame(*events, proc=proc))


def _stream(event: Event, proc: int) -> str:
    match event:
        case ClusterSubmitted():
            return "cluster/5"
        case FactoryMaterialized() | FactoryChanged() | FactoryClosed():
            return "factory/5"
        case ClaimGranted() | ClaimEnded():
            return f"claim/{event.claim}"
        case _:
            return f"job/5.{proc}"


def numbers(lines: Sequence[LogLine]) -> list[str]:
    return [line.text[:3] for line in lines]
