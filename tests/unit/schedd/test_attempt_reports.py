"""
What a schedd that was overtaken, and does not know it yet, says to a shadow.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from kettle.eventsourcing.log import FencedError
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.runtime import Telemetry
from kettle.testing.worlds import MemoryWorld
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.lifecycle import Claims
from kettle_services.schedd.commands.attempt_reports import Partners
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.jobs.policies import Policies
from kettle_services.schedd.queue.recorder import Ledger, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import Shadows
from kettle_wire.commands.schedd import Attempt, AttemptReport, Finished, ReportAttempts, ShadowSync
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId

NAME = "schedd.ap"
SHADOW = daemon("shadow")
JOB = JobId(7, 0)
REPORT = ReportAttempts(
    shadow="s", reports=[AttemptReport(job=JOB, attempt=1, claim="c", news=Finished(exit_code=0))]
)
STRAY = ShadowSync(shadow="s", attempts=[], strays=[Attempt(JOB, 1)])
KEPT = ShadowSync(shadow="s", attempts=[Attempt(JOB, 1)])


@asynccontextmanager
async def partners(log: MemoryLog) -> AsyncGenerator[Partners, None]:
    """
    Of a schedd whose queue is empty.
    """
    bus, settings = await MemoryWorld().connect(), ScheddSettings(name="ap")
    async with Shard.own(log, NAME, owner="first") as shard, asyncio.TaskGroup() as tasks:
        queue = Queue("ap")
        ledger = Ledger(shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0))
        secrets = ClaimSecrets(bytes(32))
        shadows = Shadows(bus, queue, secrets, tasks, Telemetry(), interval=1.0)
        claims = Claims(bus, ledger, shadows, secrets, tasks, settings)
        yield Partners(
            ledger,
            claims,
            shadows,
            Policies(ledger, shadows, settings),
            msgspec.structs.replace(settings, max_failures=1),
        )


async def test_an_owner_says_of_a_job_that_it_never_had_that_it_is_over() -> None:
    """
    Whoever repeats himself long afterwards is not kept waiting.
    """
    async with partners(MemoryLog()) as owner:
        assert STRAY.strays == (await owner.sync(STRAY, SHADOW)).over
        assert KEPT.attempts == (await owner.sync(KEPT, SHADOW)).forget
        assert [] == (await owner.report(REPORT, SHADOW)).start


async def test_who_was_overtaken_lets_nobody_throw_anything_away() -> None:
    """
    The job may be the successor's: neither its report nor its attempt is given up on the word of the old owner.
    """
    log = MemoryLog()
    async with partners(log) as overtaken:
        await log.take(NAME, owner="second")
        for said in (
            overtaken.sync(STRAY, SHADOW),
            overtaken.sync(KEPT, SHADOW),
            overtaken.report(REPORT, SHADOW),
        ):
            with pytest.raises(FencedError, match="belongs to second"):
                await said
