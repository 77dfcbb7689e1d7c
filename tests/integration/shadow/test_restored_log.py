"""
What is written for people after the log was restored from an older copy, while the shadow's own files were not.
"""

import asyncio
import getpass
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from kettle import VERSION
from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.replay import ROLE, served_frames
from kettle.eventsourcing.shard import Shard
from kettle_wire.events import ClusterSubmitted, Event, JobRemoved
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

from .fakes import POOL, Side, until

SHARD = "schedd.schedd"
Recorded = tuple[str, Event]


def text(path: Path) -> str:
    """What a file has, which may be put aside at any moment."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def submitted(cluster: int, log: Path) -> Recorded:
    event = ClusterSubmitted(
        cluster=cluster, owner=getpass.getuser(), ad={"UserLog": str(log), "Iwd": "/"}, columns=[], rows=[[]]
    )
    return f"cluster/{cluster}", event


def removed(cluster: int) -> Recorded:
    return f"job/{cluster}.0", JobRemoved(reason="not wanted", by="ada")


@asynccontextmanager
async def pool(place: Path, recorded: Sequence[tuple[int, Recorded]]) -> AsyncGenerator[tuple[Side, Shard]]:
    """
    A bus and a log with these events, each of a time, in which a shadow runs whose files are in a place.
    """
    side = Side(MemoryServer(), Path(tempfile.mkdtemp(dir=place)))
    await side.schedd.serve()
    log, subjects = MemoryLog(), Subjects(POOL)
    bus = MemoryBus(side.server, subjects=subjects, identity=daemon("schedd"))
    try:
        async with Shard.own(log, SHARD, owner="test") as shard, asyncio.TaskGroup() as tasks:
            await bus.serve(ROLE, SHARD, [served_frames(log, SHARD)], version=VERSION)
            loops = [
                tasks.create_task(shard.run()),
                tasks.create_task(relay(bus, log, shard, subjects, refill=10_000)),
            ]
            for at, change in recorded:
                await shard.record([change], now_us=at)
            async with side.shadow(event_log="log/EventLog", home=str(place / "shared")):
                yield side, shard
            for loop in loops:
                loop.cancel()
    finally:
        bus.close()
        await side.close()


async def test_what_is_recorded_after_that_is_told_of_the_right_jobs(tmp_path: Path) -> None:
    """
    Jobs that have the numbers of jobs that are lost have their own logs, and nothing of them comes into those of others.
    """
    lost, own, kept = (tmp_path / f"{name}.log" for name in ("lost", "own", "kept"))
    common = [(1, submitted(1, kept)), (2, submitted(2, kept))]
    for name in ("credentials", "log"):
        (tmp_path / "shared" / name).mkdir(parents=True)
    told = tmp_path / "shared" / "log" / "EventLog"
    async with pool(tmp_path, [*common, (3, submitted(3, lost))]) as (_, shard):
        await until(told.exists)
        await shard.record([submitted(4, lost)], now_us=4)
        await until(lambda: 2 == text(lost).count("Job submitted"))
        await until(lambda: "(004.000.000)" in text(told))
    before = lost.read_text(), kept.read_text()
    later = [(5, submitted(3, own)), (6, removed(1)), (7, removed(3))]
    async with pool(tmp_path, [*common, *later[:1]]) as (_, shard):
        for at, change in later[1:]:
            await shard.record([change], now_us=at)
        await until(lambda: "aborted" in text(own))
        await until(lambda: "aborted" in text(kept))
        await until(lambda: 2 == text(told).count("aborted"))
    assert before[0] == lost.read_text()
    assert kept.read_text().startswith(before[1])
    assert (1, 1) == (own.read_text().count("Job submitted"), kept.read_text().count("aborted"))
