"""Reports on their way to a schedd: one that cannot be sent must not stop the others."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.execution.attempts.job_spec import StoredReport
from kettle.execution.attempts.stored_reports import load_all, store
from kettle.execution.input_files.cache import InputCache
from kettle.execution.input_files.kept_outputs import KeptOutputs
from kettle.testing.patience import PATIENCE_S
from kettle.testing.submit_side import POOL
from kettle_services.startd.access_point.reports import ReportDelivery
from kettle_services.startd.domain import report_pacing
from kettle_wire.attempts import AttemptResult, ExitRecord
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import FinalReport, OutputFile, Report, Reports, Started

LIMIT = 200_000
Heard = Callable[[int], Coroutine[None, None, list[Report]]]
Opened = Callable[[], AbstractAsyncContextManager[tuple[ReportDelivery, Heard]]]


class Deceived(MemoryBus):
    """A bus whose server takes less than it said."""

    @property
    def payload_limit(self) -> int:
        return 1 << 30


class Counting(MemoryBus):
    """A bus that remembers how many reports each message had."""

    sizes: list[int]

    async def append(self, subject: str, data: bytes, *args: Any, **kwargs: Any) -> int:
        self.sizes.append(len(msgspec.msgpack.decode(data, type=Reports).reports))
        return await super().append(subject, data, *args, **kwargs)


def stored(proc: int, *, names: int = 0, sandbox: bool = False) -> StoredReport:
    files = [OutputFile(name=f"{n:0200}", mode=0o644, size=0) for n in range(names)]
    body = FinalReport(result=AttemptResult(exit=ExitRecord(code=0)), outputs=files)
    report = Report(claim="c", attempt=1, sequence=proc, job=JobId(1, proc), body=body)
    return StoredReport(schedd="schedd", secret="s", report=report, sandbox=sandbox)


@pytest.fixture(params=[MemoryBus, Deceived])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    (tmp_path / "reports").mkdir()
    server = MemoryServer(payload_limit=LIMIT)

    @asynccontextmanager
    async def opening() -> AsyncGenerator[tuple[ReportDelivery, Heard]]:
        bus: MemoryBus = request.param(server, subjects=Subjects(POOL), identity=daemon("startd"))
        async with asyncio.TaskGroup() as tasks:
            reporter = ReportDelivery(
                bus, Subjects(POOL), tasks, startd="host", state=tmp_path, execute=tmp_path, repeat=60.0
            )
            try:
                yield reporter, heard(bus)
            finally:
                reporter.close()
                bus.close()

    return opening


def heard(bus: MemoryBus) -> Heard:
    async def first(count: int) -> list[Report]:
        found: list[Report] = []
        stream = Subjects(POOL).work_stream
        async for batch in bus.consume(
            stream, "test", subject=Subjects(POOL).work_of("schedd"), ephemeral=True
        ):
            for message in batch.messages:
                assert len(message.data) <= LIMIT
                found += msgspec.msgpack.decode(message.data, type=Reports).reports
            if len(found) >= count:
                break
        return found

    return lambda count: asyncio.wait_for(first(count), PATIENCE_S)


async def test_a_report_too_large_for_the_bus_is_replaced_and_the_others_arrive(
    opened: Opened, tmp_path: Path
) -> None:
    """On disk as well: code 12 with a sentence, under the same number, and its outputs are removed."""
    sandbox = tmp_path / stored(2).id.sandbox
    sandbox.mkdir()
    async with opened() as (reporter, hear):
        for each in (stored(1), stored(2, names=2000, sandbox=True), stored(3)):
            reporter.store_and_send(each)
        reports = await hear(3)
        await asyncio.wait_for(reporter.sent(), PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while sandbox.exists():
                await asyncio.sleep(0.01)

    assert [1, 2, 3] == [report.sequence for report in reports]
    failed = reports[1].body
    assert isinstance(failed, FinalReport)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert (True, 12) == (failed.result.ending.holds, failed.result.ending.code)
    assert "2000 files" in failed.result.ending.reason
    kept = {each.report.sequence: each for each in load_all(str(tmp_path / "reports"))}
    assert (failed, False) == (kept[2].report.body, kept[2].sandbox)


async def test_a_report_too_large_that_a_former_startd_left_is_replaced(
    opened: Opened, tmp_path: Path
) -> None:
    """A restart does not bring the trouble back."""
    store(str(tmp_path / "reports"), stored(1, names=2000))

    async with opened() as (reporter, hear):
        reporter.restore()
        reporter.store_and_send(stored(2))
        reports = await hear(2)

    bodies = {report.sequence: report.body for report in reports}
    assert [(1, False), (2, True)] == [
        (number, isinstance(body, FinalReport) and body.result.done)
        for number, body in sorted(bodies.items())
    ]


async def test_messages_are_cut_by_their_real_size(opened: Opened, tmp_path: Path) -> None:
    """Reports that fit alone but not together arrive, in order."""
    async with opened() as (reporter, hear):
        for proc in range(1, 9):
            reporter.store_and_send(stored(proc, names=400))
        reports = await hear(8)

    assert list(range(1, 9)) == [report.sequence for report in reports]
    assert all(isinstance(report.body, FinalReport) and report.body.result.done for report in reports)


async def test_nothing_is_kept_of_a_schedd_that_is_told_nothing(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender ends; what is told later has a new one."""
    monkeypatch.setattr("kettle_services.startd.access_point.reports._IDLE_S", 0.05)
    async with opened() as (reporter, hear):
        for proc in (1, 2):
            reporter.store_and_send(stored(proc))
            await asyncio.wait_for(reporter.sent(), PATIENCE_S)
            async with asyncio.timeout(PATIENCE_S):
                while reporter.schedds:
                    await asyncio.sleep(0.01)
        reports = await hear(2)

    assert [1, 2] == [report.sequence for report in reports]


async def test_a_waiting_report_proves_that_its_attempt_ran(opened: Opened, tmp_path: Path) -> None:
    """By claim, job, attempt and secret together."""
    async with opened() as (reporter, _):
        reporter.store_and_send(stored(1))

        assert reporter.knows("c", JobId(1, 1), 1, "s")
        assert not reporter.knows("c", JobId(1, 1), 1, "wrong")
        assert not reporter.knows("c", JobId(1, 1), 2, "s")
        assert not reporter.knows("d", JobId(1, 1), 1, "s")
        keys = [ClaimKey("c", "s"), ClaimKey("d", "s"), ClaimKey("e", "")]
        assert {"c"} == reporter.claims_of(keys)
        assert set() == reporter.claims_of([ClaimKey("c", "wrong")])
        reporter.confirm([stored(1).key])
        assert set() == reporter.claims_of(keys)


async def test_in_a_rush_reports_share_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one waits for the others; what comes alone is on its way at once."""
    monkeypatch.setattr(report_pacing, "GATHER_S", 0.09)
    (tmp_path / "reports").mkdir()
    bus = Counting(MemoryServer(payload_limit=LIMIT), subjects=Subjects(POOL), identity=daemon("startd"))
    bus.sizes = []
    async with asyncio.TaskGroup() as tasks:
        reporter = ReportDelivery(
            bus, Subjects(POOL), tasks, startd="host", state=tmp_path, execute=tmp_path, repeat=60.0
        )

        async def one_by_one(*numbers: int) -> None:
            loop = asyncio.get_running_loop()
            moment = loop.time()
            with monkeypatch.context() as still:
                still.setattr(loop, "time", lambda: moment)  # however long the machine takes for it
                for number in numbers:
                    reporter.send_once("schedd", stored(number).report)
                    for _ in range(50):
                        await asyncio.sleep(0)

        await one_by_one(1)
        assert [1] == bus.sizes
        for number in range(2, 100):
            reporter.send_once("schedd", stored(number).report)
        await asyncio.wait_for(reporter.sent(), PATIENCE_S)
        await one_by_one(100, 101, 102)
        await asyncio.wait_for(reporter.sent(), PATIENCE_S)
        assert [1, 98, 3] == bus.sizes
        reporter.close()
        bus.close()


@pytest.mark.parametrize(("brief_s", "sizes"), [(0.0, [1, 1]), (3600.0, [2])])
async def test_that_a_brief_job_runs_is_said_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brief_s: float, sizes: list[int]
) -> None:
    """Of one that goes on it is said a moment later."""
    monkeypatch.setattr("kettle_services.startd.access_point.reports.BRIEF_S", brief_s)
    (tmp_path / "reports").mkdir()
    bus = Counting(MemoryServer(), subjects=Subjects(POOL), identity=daemon("startd"))
    bus.sizes = []
    async with asyncio.TaskGroup() as tasks:
        reporter = ReportDelivery(
            bus, Subjects(POOL), tasks, startd="host", state=tmp_path, execute=tmp_path, repeat=60.0
        )
        final = stored(2)
        started = msgspec.structs.replace(final.report, sequence=1, body=Started(pid=1, at=1.0))
        reporter.send_once("schedd", started)
        if len(sizes) > 1:
            await asyncio.wait_for(reporter.sent(), PATIENCE_S)
        reporter.send_until_confirmed(final)
        await asyncio.wait_for(reporter.sent(), PATIENCE_S)
        assert sizes == bus.sizes
        reporter.close()
        bus.close()


async def test_results_of_a_job_that_wants_it_stay_when_they_have_arrived(tmp_path: Path) -> None:
    """The machine says so from the end of the job on; its sandbox goes as always."""
    said: list[str] = []
    cache = InputCache(tmp_path / "cache", cast("Any", None), limit_bytes=1 << 20)
    cache.restore()
    kept = KeptOutputs(cache, limit_bytes=1 << 20, lifetime=60.0, changed=said.append)
    (tmp_path / "reports").mkdir()
    one = msgspec.structs.replace(stored(1, names=1, sandbox=True), keeps=True)
    assert isinstance(one.report.body, FinalReport)
    (result,) = one.report.body.outputs
    sandbox = tmp_path / one.id.sandbox
    sandbox.mkdir()
    (sandbox / result.name).write_bytes(b"result")
    bus = MemoryBus(MemoryServer(), subjects=Subjects(POOL), identity=daemon("startd"))
    async with asyncio.TaskGroup() as tasks:
        reporter = ReportDelivery(
            bus, Subjects(POOL), tasks, startd="host", state=tmp_path, execute=tmp_path, repeat=60.0, kept_outputs=kept,
        )  # fmt: skip
        reporter.store_and_send(one)
        assert ["schedd#1"] == said
        assert hashlib.sha256(b"result").hexdigest() not in cache
        reporter.confirm([one.key])
        async with asyncio.timeout(PATIENCE_S):
            while sandbox.exists():
                await asyncio.sleep(0.01)
        reporter.close()
        bus.close()
    assert hashlib.sha256(b"result").hexdigest() in cache
    assert ["schedd#1"] == said
