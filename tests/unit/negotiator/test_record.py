"""The negotiator's record, read at its start."""

import asyncio
import time

from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.shard import Shard
from kettle_services.negotiator.domain.concurrency_limits import SETTLES
from kettle_services.negotiator.domain.cycle import Outcome
from kettle_services.negotiator.record import Record
from kettle_wire.events import CycleNegotiated, Match, Rejection, decode


async def test_all_that_was_given_of_late_is_recalled_however_many_frames_it_is() -> None:
    """
    With three cycles long ago and twenty just now, of which one frame is to be read: all twenty are recent, none is older, and
    cycles are numbered on from the last.
    """
    log, now = MemoryLog(), time.time()
    starts = [now - 10 * SETTLES] * 3 + [now - SETTLES / 2] * 20
    async with Shard.own(log, "s", owner="me") as shard:
        committer = asyncio.create_task(shard.run())
        for number, started in enumerate(starts, 1):
            match = Match(submitter="ada", schedd="ap", autocluster=number, slot="s", startd="m", count=1)
            event = CycleNegotiated(
                cycle=number, started=started, duration=0.0, slots=1, idle=1, matches=[match]
            )
            await shard.record([(f"cycle/{number}", event)], now_us=int(started * 1e6))
        committer.cancel()
    async with Shard.own(log, "s", owner="me") as shard:
        record = Record(shard)
        await record.recall(log, 1)
    assert list(range(4, 24)) == [cycle for cycle, _ in record.recent]
    assert list(range(4, 24)) == [match.autocluster for _, matches in record.recent for match in matches]
    assert 23 == record.cycle


async def test_a_cycle_records_so_many_rejections_and_the_others_later() -> None:
    """
    Of 1,100 that are new 500, 500 and 100 are recorded by three cycles, each of which says how many more there were.
    """
    log = MemoryLog()
    refused = [
        Rejection(submitter="ada", schedd="ap", autocluster=number, count=1, reason="busy", slots=1)
        for number in range(1_100)
    ]
    outcome = Outcome(slots=1, idle=1, matches=[], rejections=refused, messages={})
    async with Shard.own(log, "s", owner="me") as shard:
        committer = asyncio.create_task(shard.run())
        record = Record(shard)
        for _ in range(4):
            await record.write(outcome, started=1.0, duration=0.1)
        committer.cancel()
    told = [decode(entry.data) async for frame in log.read("s") for entry in frame.entries]
    cycles = [event for event in told if isinstance(event, CycleNegotiated)]
    assert [(500, 600), (500, 100), (100, 0)] == [(len(one.rejections), one.more) for one in cycles]
    assert list(range(1_100)) == [each.autocluster for one in cycles for each in one.rejections]
