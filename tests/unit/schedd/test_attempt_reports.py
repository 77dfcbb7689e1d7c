"""What a schedd that was overtaken, and does not know it yet, says to a shadow."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Telemetry
from kettle.testing.bus_adapters import MemoryWorld
from kettle.testing.served import Endpoints
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.gangs import GangClaims
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.commands.attempt_reports import AttemptReports
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.jobs.policies import Policies
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.attempts import AttemptResult, ExitRecord
from kettle_wire.commands.attempt_reports import REPORT as REPORT_ATTEMPTS
from kettle_wire.commands.attempt_reports import (
    SYNC,
    Attempt,
    AttemptReport,
    Ended,
    ReportAttempts,
    ShadowSync,
)
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId

NAME = "schedd.ap"
SHADOW = daemon("shadow")
JOB = JobId(7, 0)
REPORT = ReportAttempts(
    shadow="s",
    reports=[
        AttemptReport(
            job=JOB, attempt=1, claim="c", news=Ended(result=AttemptResult(exit=ExitRecord(code=0)))
        )
    ],
)
STRAY = ShadowSync(shadow="s", attempts=[], strays=[Attempt(JOB, 1)])
KEPT = ShadowSync(shadow="s", attempts=[Attempt(JOB, 1)])


@asynccontextmanager
async def attempt_reports(log: MemoryLog) -> AsyncGenerator[Endpoints, None]:
    """Of a schedd whose queue is empty."""
    bus, settings = await MemoryWorld().connect(), ScheddSettings(name="ap")
    async with Shard.own(log, NAME, owner="first") as shard, asyncio.TaskGroup() as tasks:
        queue = Queue("ap")
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        secrets = ClaimSecrets(bytes(32))
        shadows = ShadowDispatch(
            bus, queue, secrets, AttributeSeal([bytes(32)]), tasks, Telemetry(), interval=1.0
        )
        claims = ClaimLifecycle(bus, recorder, shadows, secrets, tasks, settings)
        reports = AttemptReports(
            recorder,
            claims,
            GangClaims(recorder, claims, shadows, tasks, settings),
            shadows,
            Policies(recorder, shadows, settings),
            msgspec.structs.replace(settings, max_failures=1),
        )
        pipeline = CommandPipeline(recorder)
        yield Endpoints([
            pipeline.command(SYNC, reports.sync_shadow),
            pipeline.command(REPORT_ATTEMPTS, reports.record_reports),
        ])  # fmt: skip


async def test_an_owner_says_of_a_job_that_it_never_had_that_it_is_over() -> None:
    """A client that repeats its command much later does not wait."""
    async with attempt_reports(MemoryLog()) as owner:
        assert STRAY.strays == (await owner.ask(SYNC, STRAY, SHADOW)).over
        assert KEPT.attempts == (await owner.ask(SYNC, KEPT, SHADOW)).forget
        assert [] == (await owner.ask(REPORT_ATTEMPTS, REPORT, SHADOW)).start


async def test_who_was_overtaken_lets_nobody_throw_anything_away() -> None:
    """
    The job may be the successor's: neither its report nor its attempt is given up on the word of the old owner.
    """
    log = MemoryLog()
    async with attempt_reports(log) as overtaken:
        await log.take(NAME, owner="second")
        for said in (
            overtaken.ask(SYNC, STRAY, SHADOW),
            overtaken.ask(SYNC, KEPT, SHADOW),
            overtaken.ask(REPORT_ATTEMPTS, REPORT, SHADOW),
        ):
            with pytest.raises(RefusedError, match="belongs to second") as refused:
                await said
            assert "unavailable" == refused.value.code
