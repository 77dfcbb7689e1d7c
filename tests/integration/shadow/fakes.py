"""A schedd and a startd that say what a test wants, on a bus in memory."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from kettle.accounts.lookup import own_name
from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import RefusedError, Served
from kettle.testing.patience import PATIENCE_S
from kettle_services.shadow.service import Shadow
from kettle_services.shadow.settings import ShadowSettings
from kettle_services.shadow.wiring import running
from kettle_wire.ads import Ad
from kettle_wire.ads.types import Scalar
from kettle_wire.attempts import AttemptResult, ExitRecord
from kettle_wire.commands.attempt_reports import (
    REPORT,
    SYNC,
    Attempt,
    AttemptReport,
    AttemptsRecorded,
    Began,
    Ended,
    ReportAttempts,
    ShadowOrders,
    ShadowSync,
)
from kettle_wire.commands.shadow import LOOK_AFTER, Assignment, LookAfter, Stop
from kettle_wire.commands.startd import (
    ACTIVATE,
    CONFIRM,
    DEACTIVATE,
    FETCH_OUTPUT,
    NOT_KNOWN,
    Activate,
    Activated,
    Activation,
    ActivationResult,
    ClaimKey,
    Confirm,
    Deactivate,
    Done,
    FetchOutput,
    Piece,
)
from kettle_wire.endpoint import Position
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import FinalReport, OutputFile, Report, ReportKey, Reports

POOL = "test"


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


class Schedd:
    """
    Records what it is told; `live` is what a shadow that asks is given, `over` what is over in the record.
    """

    def __init__(self, bus: MemoryBus) -> None:
        self.bus = bus
        self.live: dict[Attempt, Assignment] = {}
        self.over: set[Attempt] = set()
        self.stop: list[Stop] = []
        self.batch = 1000
        self.interval = 60.0
        self.gone = False
        """No job whose files are kept will run again."""
        self.syncs: list[ShadowSync] = []
        self.reports: list[AttemptReport] = []

    async def serve(self) -> None:
        served: list[Served[Any, Any]] = [Served(SYNC, self.sync), Served(REPORT, self.report)]
        await self.bus.serve("schedd", "schedd", served, version="0")

    async def sync(self, request: ShadowSync, caller: Identity) -> ShadowOrders:
        self.syncs.append(request)
        missing = [a for key, a in self.live.items() if key not in request.attempts]
        return ShadowOrders(
            start=missing[: self.batch],
            stop=self.stop,
            forget=[a for a in request.attempts if a in self.over],
            over=[a for a in request.strays if a in self.over],
            drop=request.kept if self.gone else [],
            more=len(missing) > self.batch,
            sync_interval=self.interval,
        )

    async def report(self, request: ReportAttempts, caller: Identity) -> AttemptsRecorded:
        for report in request.reports:
            self.reports.append(report)
            if not isinstance(report.news, Began):
                attempt = Attempt(report.job, report.attempt)
                self.live.pop(attempt, None)
                self.over.add(attempt)
        return AttemptsRecorded(start=[], position=Position("schedd.schedd", 1))

    def has(self, assignment: Assignment) -> Assignment:
        """It is on record, and is given to the shadow that asks."""
        self.live[Attempt(assignment.job, assignment.attempt)] = assignment
        return assignment

    async def hand_over(self, *assignments: Assignment) -> None:
        for assignment in assignments:
            self.has(assignment)
        await self.bus.call(LOOK_AFTER, "shadow", LookAfter(start=list(assignments)))

    async def order(self, stop: Stop) -> None:
        await self.bus.call(LOOK_AFTER, "shadow", LookAfter(stop=[stop]))

    async def end(self, assignment: Assignment) -> Ended:
        """What was said about the end of an attempt, as soon as it was."""
        key = (assignment.job, assignment.attempt)

        def said() -> list[Ended]:
            mine = (r.news for r in self.reports if (r.job, r.attempt) == key)
            return [news for news in mine if isinstance(news, Ended)]

        await until(said)
        return said()[0]


class Startd:
    """A machine that accepts, refuses, or says nothing at all."""

    def __init__(self, bus: MemoryBus, name: str = "worker") -> None:
        self.bus = bus
        self.name = name
        self.runs: set[Attempt] = set()
        self.refuses: Callable[[Activate], RefusedError | None] = lambda _: None
        self.says: Callable[[Activation], tuple[int, str]] = lambda _: (0, "")
        self.silent = False
        """Says nothing, and never will to what it is asked meanwhile."""
        self.answering = asyncio.Event()
        self.answering.set()
        """What is asked while this is clear is answered when it is set."""
        self.messages: list[Activate] = []
        self.confirmed: list[ReportKey] = []
        self.ended: list[Attempt] = []
        self.files: dict[str, bytes] = {}

    async def serve(self) -> None:
        served: list[Served[Any, Any]] = [
            Served(ACTIVATE, self.activate),
            Served(CONFIRM, self.confirm),
            Served(DEACTIVATE, self.deactivate),
            Served(FETCH_OUTPUT, self.fetch_output),
        ]
        await self.bus.serve("startd", self.name, served, version="0")

    @property
    def activations(self) -> list[Activation]:
        return [activation for message in self.messages for activation in message.activations]

    async def activate(self, request: Activate, caller: Identity) -> Activated:
        self.messages.append(request)
        await self._answers()
        if refusal := self.refuses(request):
            raise refusal
        self.confirmed += request.recorded
        return Activated(results=[self._result(activation) for activation in request.activations])

    def _result(self, activation: Activation) -> ActivationResult:
        attempt = Attempt(activation.job, activation.attempt)
        code, reason = self.says(activation)
        if not code and activation.probe and attempt not in self.runs:
            code = NOT_KNOWN
        elif not code:
            self.runs.add(attempt)
        return ActivationResult(
            claim=activation.key.claim,
            job=activation.job,
            attempt=activation.attempt,
            code=code,
            reason=reason,
        )

    async def confirm(self, request: Confirm, caller: Identity) -> Done:
        await self._answers()
        self.confirmed += request.recorded
        return Done()

    async def deactivate(self, request: Deactivate, caller: Identity) -> Done:
        self.ended += [Attempt(each.job, each.attempt) for each in request.attempts]
        await self._answers()
        return Done()

    async def fetch_output(self, request: FetchOutput, caller: Identity) -> Piece:
        return Piece(self.files[request.name][request.offset : request.offset + request.length])

    async def _answers(self) -> None:
        await self.answering.wait()
        if self.silent:
            await asyncio.Event().wait()

    async def exited(self, assignment: Assignment, *outputs: OutputFile, sequence: int = 1) -> Report:
        """Say that a job ended by itself."""
        report = Report(
            claim=assignment.key.claim,
            attempt=assignment.attempt,
            sequence=sequence,
            job=assignment.job,
            body=FinalReport(result=AttemptResult(exit=ExitRecord(code=0)), outputs=list(outputs)),
        )
        await self.say(report)
        return report

    async def say(self, *reports: Report) -> None:
        data = msgspec.msgpack.encode(Reports(startd=self.name, reports=list(reports)))
        await self.bus.append(self.bus.subjects.work("schedd", self.name), data)


class Side:
    """A shadow between a schedd and a startd."""

    def __init__(self, server: MemoryServer, directory: Path) -> None:
        subjects = Subjects(POOL)
        self.server = server
        self.work = directory / "work"
        self.work.mkdir()
        self.home = directory / "home"
        (self.home / "credentials").mkdir(parents=True)
        self.schedd = Schedd(MemoryBus(server, subjects=subjects, identity=daemon("schedd")))
        self.startd = Startd(MemoryBus(server, subjects=subjects, identity=daemon("startd")))
        self.settings = ShadowSettings(
            pool=POOL,
            home=str(self.home),
            retry=0.02,
            retry_ceiling=0.1,
            call_deadline=0.5,
            confirm_delay=0.01,
        )

    @asynccontextmanager
    async def shadow(self, **settings: object) -> AsyncGenerator[Shadow]:
        bus = MemoryBus(self.server, subjects=Subjects(POOL), identity=daemon("shadow"))
        try:
            async with running(bus, msgspec.structs.replace(self.settings, **settings)) as shadow:
                yield shadow
        finally:
            bus.close()

    def assignment(self, proc: int = 0, **attributes: Scalar) -> Assignment:
        """An order to run a job of ours."""
        return self.job(attributes, proc)

    def job(self, attributes: Ad, proc: int = 0) -> Assignment:
        """A job with any attribute."""
        ad: Ad = {
            "Owner": own_name(),
            "Iwd": str(self.work),
            "Cmd": "/bin/true",
            "TransferExecutable": False,
            "Out": "/dev/null",
            "Err": "/dev/null",
            **attributes,
        }
        return Assignment(
            job=JobId(1, proc),
            attempt=1,
            key=ClaimKey(f"claim#{proc}", "secret"),
            startd=self.startd.name,
            slot="slot1",
            ad=ad,
        )

    async def close(self) -> None:
        self.schedd.bus.close()
        self.startd.bus.close()


def held(end: Ended) -> tuple[bool, int]:
    """Whether a job has to wait for somebody, and the code."""
    assert end.result.ending is not None, end
    return end.result.ending.holds, end.result.ending.code
