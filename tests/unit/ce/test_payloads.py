"""What pilots run for others is recorded from their reports, and is their owners' to see."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.testing.served import Endpoints
from kettle_services.ce.domain.payloads import MOST_RUNNING, Pilot, TooManyError, fold_pilot, reported
from kettle_services.ce.domain.state import CeState
from kettle_services.ce.payloads import PayloadAudit
from kettle_services.ce.record import Record, shard_of
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus, RefusalCode
from kettle_wire.commands.payloads import (
    LIST_PAYLOADS,
    REPORT_PAYLOADS,
    ListPayloads,
    PayloadsListed,
    ReportPayloads,
)
from kettle_wire.commands.queue import QUERY_JOBS, JobAds, QueryJobs
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.jobs import JobId
from kettle_wire.payloads import Payload, PayloadEnd, PayloadReport
from kettle_wire.subjects import Subjects

PILOT, OTHER = JobId(12, 0), JobId(13, 0)
BOBS = Payload(name="atlas.1", owner="bob", vo="atlas", host="node7")
CAROLS = Payload(name="atlas.2", owner="carol")
SUBJECTS = Subjects("test")


class Audited:
    """An entrypoint's record of pilots, beside a queue with ada's pilot and others."""

    def __init__(self, log: MemoryLog, record: Record, server: MemoryServer) -> None:
        self.queue: dict[JobId, Ad] = {
            job: {
                "ClusterId": job.cluster,
                "ProcId": job.proc,
                "Owner": owner,
                "JobStatus": int(status),
                "EnteredCurrentStatus": 0,
                "RouteName": route,
            }
            for job, owner, status, route in (
                (PILOT, "ada", JobStatus.IDLE, "Slurm"),  # the schedd has not heard yet that it runs
                (OTHER, "eve", JobStatus.RUNNING, "Slurm"),
                (JobId(14, 0), "ada", JobStatus.RUNNING, ""),
                (JobId(15, 0), "ada", JobStatus.HELD, "Slurm"),
            )
        }
        self.asked = 0
        bus = MemoryBus(server, subjects=SUBJECTS, identity=daemon("ce"))
        self.audit = PayloadAudit(bus, log, record, "schedd", lambda: {"root"})
        pipeline = CommandPipeline(record)
        self._served = Endpoints(
            [
                pipeline.command(REPORT_PAYLOADS, self.audit.report),
                pipeline.query(LIST_PAYLOADS, self.audit.listed),
            ]
        )

    async def query(self, request: QueryJobs, caller: Identity) -> JobAds:
        """As the schedd answers."""
        del caller
        self.asked += 1
        found = [self.queue[job] for job in request.select.jobs if job in self.queue]
        return JobAds(jobs=found, total=len(found))

    async def report(
        self, *begun: Payload, over: tuple[PayloadEnd, ...] = (), job: JobId = PILOT, by: str = "ada"
    ) -> int:
        report = PayloadReport(begun=list(begun), over=list(over))
        done = await self._served.ask(REPORT_PAYLOADS, ReportPayloads(job=job, report=report), user(by))
        return done.running

    async def refused(self, *begun: Payload, job: JobId = PILOT, by: str = "ada") -> tuple[str, str]:
        with pytest.raises(RefusedError) as refused:
            await self.report(*begun, job=job, by=by)
        return refused.value.code, str(refused.value)

    async def listed(self, by: str, job: JobId | None = None, owner: str = "") -> PayloadsListed:
        return await self._served.ask(LIST_PAYLOADS, ListPayloads(job=job, owner=owner), user(by))

    async def names(self, by: str, job: JobId | None = None, owner: str = "") -> list[str]:
        return [each.payload.name for each in (await self.listed(by, job, owner)).payloads]


@asynccontextmanager
async def running(log: MemoryLog) -> AsyncGenerator[Audited]:
    server = MemoryServer()
    async with Shard.own(log, shard_of("schedd"), owner="me") as shard, asyncio.TaskGroup() as tasks:
        record = await Record.recall(log, MemoryWorkingSet(log), shard, CeState(), interval=60.0)
        committing = tasks.create_task(shard.run())
        ce = Audited(log, record, server)
        schedd = MemoryBus(server, subjects=SUBJECTS, identity=daemon("schedd"))
        await schedd.serve("schedd", "schedd", [Served(QUERY_JOBS, ce.query)], version="test")
        yield ce
        committing.cancel()


async def test_who_ran_what_is_known_when_it_is_over_and_after_a_restart() -> None:
    """
    A report that is said again is recorded once, also by the next process; the end is the pilot's word, with its exit code.
    """
    log = MemoryLog()
    async with running(log) as ce:
        assert [1, 1, 2] == [await ce.report(each) for each in (BOBS, BOBS, CAROLS)]
        assert 1 == ce.asked, "whose a pilot is is asked once"
    async with running(log) as ce:
        assert 2 == await ce.report(BOBS)
        assert 0 == ce.asked
        ends = (PayloadEnd(name="atlas.1", exit_code=3), PayloadEnd(name="never begun"))
        assert [1, 1] == [await ce.report(over=ends), await ce.report(over=ends)]
        bobs, carols = (await ce.listed("ada", PILOT)).payloads
        assert (BOBS, "ada", 3, False) == (bobs.payload, bobs.by, bobs.exit_code, bobs.with_pilot)
        assert bobs.ended is not None
        assert bobs.began <= bobs.ended
        assert (None, None) == (carols.ended, carols.exit_code)
        assert ["atlas.2"] == await ce.names("ada")


async def test_what_a_pilot_has_not_ended_ends_with_it() -> None:
    """
    When its job is held, and when it has left the queue; a pilot that runs again reports again, and all of it stays known.
    """
    log = MemoryLog()
    async with running(log) as ce:
        await ce.report(BOBS)
        await ce.audit.end_pilots()
        assert ["atlas.1"] == await ce.names("ada"), "its access point has not heard yet that it runs"
        ce.queue[PILOT]["JobStatus"] = int(JobStatus.HELD)
        for _ in range(2):
            await ce.audit.end_pilots()
        assert [] == await ce.names("ada")
        ce.queue[PILOT]["JobStatus"] = int(JobStatus.RUNNING)
        assert 1 == await ce.report(BOBS)
        del ce.queue[PILOT]
        await ce.audit.end_pilots()
    async with running(log) as ce:
        del ce.queue[PILOT]
        told = (await ce.listed("ada", PILOT)).payloads
        assert [(BOBS, True), (BOBS, True)] == [(each.payload, each.with_pilot) for each in told]
        assert RefusalCode.NOT_FOUND == (await ce.refused(CAROLS))[0]


async def test_a_pilot_that_waits_again_runs_nothing() -> None:
    """One that was sent back into the queue waits since a later time than that of its last report."""
    async with running(MemoryLog()) as ce:
        await ce.report(BOBS)
        ce.queue[PILOT]["EnteredCurrentStatus"] = 2**33
        await ce.audit.end_pilots()
        assert [] == await ce.names("ada")


async def test_pilots_are_their_owners() -> None:
    """
    Nobody else reports for one or sees what it runs, but administrators; what is no pilot of the entrypoint is told so.
    """
    async with running(MemoryLog()) as ce:
        await ce.report(BOBS, CAROLS)
        await ce.report(Payload(name="cms.1", owner="bob"), job=OTHER, by="eve")
        assert (RefusalCode.DENIED, "job 12.0 belongs to ada") == await ce.refused(CAROLS, by="eve")
        with pytest.raises(RefusedError, match=r"job 12\.0 belongs to ada"):
            await ce.listed("eve", PILOT)
        assert [["atlas.1", "atlas.2"], ["cms.1"]] == [await ce.names(each) for each in ("ada", "eve")]
        assert ["atlas.1", "atlas.2", "cms.1"] == await ce.names("root")
        assert ["atlas.1", "cms.1"] == await ce.names("root", owner="bob")
        assert ["cms.1"] == await ce.names("root", OTHER)
        assert RefusalCode.REFUSED == (await ce.refused(BOBS, job=JobId(14, 0)))[0]
        assert RefusalCode.NOT_RUNNING == (await ce.refused(BOBS, job=JobId(15, 0)))[0]
        assert RefusalCode.NOT_FOUND == (await ce.refused(BOBS, job=JobId(99, 0)))[0]
        assert RefusalCode.MALFORMED == (await ce.refused(Payload(name="two\nlines", owner="bob")))[0]


def test_a_pilot_fills_no_log() -> None:
    """What is too much at the same time is refused as a whole, and what has ended makes room."""
    pilot: Pilot | None = None
    for number in range(MOST_RUNNING):
        for event in reported(pilot, "ada", PayloadReport(begun=[Payload(name=f"p{number}", owner="bob")])):
            pilot = fold_pilot(pilot, event, float(number))
    assert pilot is not None
    more = [Payload(name="more", owner="bob")]
    with pytest.raises(TooManyError, match="1,000 payloads"):
        reported(pilot, "ada", PayloadReport(begun=more))
    assert 2 == len(reported(pilot, "ada", PayloadReport(begun=more, over=[PayloadEnd(name="p7")])))
