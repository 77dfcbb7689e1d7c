"""
An entrypoint's part that looks after jobs at a batch system, with the schedd and the shadow that ask it played by the test.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.eventsourcing.log import Log, WorkingSet
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.testing.patience import PATIENCE_S
from kettle_services.ce.attempts.follower import Follower
from kettle_services.ce.attempts.node_files import NodeFiles
from kettle_services.ce.attempts.wiring import following
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.domain.attempts.attempt import BatchClaim, Run, Stage
from kettle_services.ce.domain.state import CeState
from kettle_services.ce.record import Record, shard_of
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode
from kettle_wire.commands.ce import batch_startd
from kettle_wire.commands.startd import (
    ACTIVATE,
    CONFIRM,
    DEACTIVATE,
    FETCH_OUTPUT,
    REQUEST_CLAIMS,
    Activate,
    Activation,
    ActivationResult,
    ClaimKey,
    ClaimsDecided,
    Confirm,
    Deactivate,
    Deactivation,
    FetchOutput,
    InputFile,
    RequestClaims,
)
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId
from kettle_wire.payloads import PayloadReport
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import Body, FinalReport, Report, Reports

POOL: Final = "test"
SCHEDD: Final = "schedd"
STARTD: Final = batch_startd(SCHEDD)
_SUBJECTS: Final = Subjects(POOL)


@dataclass
class World:
    """The bus, the log and the files, which outlive an entrypoint."""

    settings: BatchSettings
    home: Path
    server: MemoryServer = field(default_factory=MemoryServer)
    log: Log = field(default_factory=MemoryLog)
    working_set: WorkingSet | None = None
    """None: that of a log in memory."""
    number: int = 0
    files: NodeFiles | None = None
    """Where nodes fetch the files of jobs."""
    payloads: list[tuple[JobId, PayloadReport]] = field(default_factory=list)
    """What pilots have reported."""

    def __post_init__(self) -> None:
        self.bus = MemoryBus(self.server, subjects=_SUBJECTS, identity=daemon("schedd"))
        self.shadow = MemoryBus(self.server, subjects=_SUBJECTS, identity=daemon("shadow"))
        self.reports: list[Report] = []

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Entrypoint"]:
        """An entrypoint while the context lasts; nothing that it knows stays but what is recorded."""
        bus = MemoryBus(self.server, subjects=_SUBJECTS, identity=daemon("ce"))
        async with Shard.own(self.log, shard_of(SCHEDD), owner="test") as shard:
            record = await Record.recall(
                self.log, self.working_set or _in_memory(self.log), shard, CeState(), interval=60.0
            )
            committing = asyncio.create_task(shard.run())
            hearing = asyncio.create_task(self._hear())
            claims = record.state.claims.states
            try:
                async with following(
                    bus,
                    [self.settings],
                    claims,
                    record.record,
                    pool=POOL,
                    schedd=SCHEDD,
                    home=self.home / "ce",
                    node_files=self.files,
                    payloads=self._reported,
                ) as followers:
                    yield Entrypoint(self, claims, followers[self.settings.name])
            finally:
                bus.close()
                for task in (committing, hearing):
                    task.cancel()

    async def _reported(self, job: JobId, report: PayloadReport) -> None:
        self.payloads.append((job, report))

    async def _hear(self) -> None:
        stream = _SUBJECTS.work_stream
        async for batch in self.shadow.consume(stream, "test", subject=_SUBJECTS.work_all, batch=100):
            for message in batch.messages:
                self.reports += msgspec.msgpack.decode(message.data, type=Reports).reports
            await batch.ack()


@dataclass
class Entrypoint:
    """One that runs."""

    world: World
    claims: dict[str, BatchClaim]
    follower: Follower

    async def well(self) -> None:
        """Wait until the batch system has answered."""
        await until(lambda: not self.follower.trouble, lambda: self.follower.trouble)

    async def claim(self, slot: str = "") -> tuple[ClaimKey, ClaimsDecided]:
        """Ask for a claim."""
        self.world.number += 1
        key = ClaimKey(f"schedd#{self.world.number}", f"secret {self.world.number}")
        request = RequestClaims(
            schedd=SCHEDD,
            slot=slot or self.world.settings.name,
            capability="",
            submitter="somebody",
            job={},
            claims=[key],
            lease=86_400.0 * 30,
        )
        return key, await self.world.bus.call(REQUEST_CLAIMS, STARTD, request, deadline=PATIENCE_S)

    async def activate(self, key: ClaimKey, activation: Activation) -> ActivationResult:
        """Have a job begun."""
        request = Activate(activations=[activation])
        reply = await self.world.shadow.call(ACTIVATE, STARTD, request, deadline=PATIENCE_S)
        return reply.results[0]

    async def submit(self, program: str, **more: object) -> Activation:
        """A claim, and a job on it that runs a script."""
        key, decided = await self.claim()
        assert [key.claim] == [each.claim for each in decided.granted], decided.reason
        activation = job(key, program, **more)
        assert 0 == (await self.activate(key, activation)).code
        return activation

    async def deactivate(self, activation: Activation) -> Ending:
        """A job is to end; its ending."""
        ending = Ending(code=HoldCode.UserRequest, reason="somebody said so")
        order = Deactivation(key=activation.key, job=activation.job, attempt=1, ending=ending)
        await self.world.shadow.call(DEACTIVATE, STARTD, Deactivate(attempts=[order]))
        return ending

    def run(self, activation: Activation) -> Run | None:
        """What is known of a job."""
        claim = self.claims.get(activation.key.claim)
        return None if claim is None else claim.run

    async def stage(self, activation: Activation, stage: Stage) -> Run:
        """Wait until a job is so far."""

        def is_so() -> bool:
            run = self.run(activation)
            return run is not None and run.stage is stage

        await until(is_so, lambda: f"it is {self.run(activation)}, and not {stage}")
        run = self.run(activation)
        assert run is not None
        return run

    async def final(self, activation: Activation) -> FinalReport:
        """Wait for the report of a job's end."""
        found: list[FinalReport] = []

        def is_there() -> bool:
            bodies = self.bodies(activation)
            found[:] = [each for each in bodies if isinstance(each, FinalReport)]
            return bool(found)

        await until(is_there, lambda: f"there is no report of {self.run(activation)}")
        return found[0]

    def bodies(self, activation: Activation) -> Sequence[Body]:
        """All that was reported about a job."""
        return [each.body for each in self.world.reports if each.claim == activation.key.claim]

    async def confirm(self, activation: Activation) -> None:
        """The end of a job is recorded; wait until nothing of it is left."""
        keys = [
            each.key
            for each in self.world.reports
            if each.claim == activation.key.claim and isinstance(each.body, FinalReport)
        ]
        run = self.run(activation)
        assert run is not None
        await self.world.shadow.call(CONFIRM, STARTD, Confirm(recorded=keys[:1]))
        sandbox = Path(self.follower.sandboxes.path(run.intent))
        await until(lambda: not sandbox.exists(), lambda: "its sandbox stays")
        assert self.run(activation) is None

    async def output(self, activation: Activation, name: str, size: int) -> bytes:
        """A large result."""
        request = FetchOutput(
            key=activation.key,
            job=activation.job,
            attempt=activation.attempt,
            name=name,
            offset=0,
            length=size,
        )
        return (await self.world.shadow.call(FETCH_OUTPUT, STARTD, request)).data


def _in_memory(log: Log) -> MemoryWorkingSet:
    assert isinstance(log, MemoryLog)
    return MemoryWorkingSet(log)


def job(key: ClaimKey, program: str, **more: object) -> Activation:
    """A job that runs a script, which comes with it."""
    text = f"#!/bin/sh\n{program}\n"
    ad: Ad = {"Cmd": "/somewhere/program", "Out": "out", "Err": "err", "RequestCpus": 1, "RequestMemory": 50}
    files = [("program", text.encode(), 0o755), ("in", b"what it reads\n", 0o644)]
    return Activation(
        key=key,
        job=JobId(int(key.claim.rpartition("#")[2]), 0),
        attempt=1,
        ad={**ad, **more},  # type: ignore[dict-item]
        inputs=[
            InputFile(name=name, mode=mode, size=len(data), sha256="", data=data)
            for name, data, mode in files
        ],
        shadow="shadow",
    )


async def until(is_so: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    """Wait for what others do."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(otherwise()) from None
