"""
A startd with real starters and real jobs; the pool around it is a bus in memory.
"""

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import BucketSpec, RefusedError, Served, StreamSpec
from kettle.startd.settings import StartdSettings
from kettle.startd.startd import Startd
from kettle.startd.wiring import running
from kettle.wire.ads import Ad, Scalar
from kettle.wire.ads.daemon import SlotSecret
from kettle.wire.commands.shadow import FETCH_INPUT, FetchInput
from kettle.wire.commands.startd import (
    ACTIVATE,
    REQUEST_CLAIMS,
    Activate,
    Activation,
    ActivationResult,
    ClaimKey,
    ClaimsDecided,
    InputFile,
    Piece,
    ReportKey,
    RequestClaims,
)
from kettle.wire.identity import Identity, daemon
from kettle.wire.jobs import JobId
from kettle.wire.subjects import Subjects, key
from kettle.wire.work import Exited, Failed, Report, Reports

POOL = "test"
STARTD = "worker"
SCHEDD = "submit"
SHADOW = "shadow"
LEASE = 60.0
WAIT = 20.0
_decode = msgspec.msgpack.Decoder(Reports).decode


def job_ad(**attributes: Scalar) -> Ad:
    """
    The ad of a job that runs a program of this machine.
    """
    return {
        "MyType": "Job",
        "Owner": "alice",
        "Cmd": "/bin/sh",
        "TransferExecutable": False,
        "Out": "out",
        "Err": "err",
        "RequestCpus": 1,
        "RequestMemory": 128,
        "RequestDisk": 1024,
        "Requirements": True,
        **attributes,
    }


def script(text: str, **attributes: Scalar) -> Ad:
    """
    A job that is a line of shell.
    """
    quoted = text.replace("'", "''")
    return job_ad(Arguments=f"-c '{quoted}'", **attributes)


class Submitter:
    """
    The submit side of the tests: a schedd and a shadow in one, that keeps what it hears.
    """

    def __init__(self, server: MemoryServer) -> None:
        subjects = Subjects(POOL)
        self.subjects = subjects
        self.server = server
        self.schedd = MemoryBus(server, subjects=subjects, identity=daemon("schedd"))
        self.shadow = MemoryBus(server, subjects=subjects, identity=daemon("shadow"))
        self.reports: list[Report] = []
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self._heard = asyncio.Event()
        self._procs = 0
        self._claims = 0

    async def prepare(self) -> None:
        for bucket in (self.subjects.ads, self.subjects.private_ads):
            await self.schedd.ensure_bucket(BucketSpec(name=bucket))
        await self.schedd.ensure_stream(
            StreamSpec(name=self.subjects.work_stream, subjects=[self.subjects.work_all])
        )
        await self.shadow.serve("shadow", SHADOW, [Served(FETCH_INPUT, self.fetch_input)], version="0.1.0")

    async def listen(self) -> None:
        subject = self.subjects.work_of(SCHEDD)
        async for batch in self.shadow.consume(self.subjects.work_stream, "test", subject=subject):
            for message in batch.messages:
                self.reports += _decode(message.data).reports
            self._heard.set()
            await batch.ack()

    async def fetch_input(self, request: FetchInput, caller: Identity) -> Piece:
        self.fetched.append(request.name)
        if request.name not in self.files:
            raise RefusedError("unreadable", f"{request.name}: No such file or directory")
        return Piece(self.files[request.name][request.offset : request.offset + request.length])

    async def capability(self) -> str:
        name = key(f"slot1@{STARTD}")
        async for change in self.schedd.watch(self.subjects.private_ads):
            if change is not None and change.key == name and change.value is not None:
                return msgspec.msgpack.decode(change.value, type=SlotSecret).capability
        raise AssertionError

    async def request(self, count: int = 1, *, lease: float = LEASE, **attributes: Scalar) -> ClaimsDecided:
        self._claims += count
        keys = [ClaimKey(f"claim#{self._claims - n}", f"secret{self._claims - n}") for n in range(count)]
        return await self.request_keys(keys, lease=lease, **attributes)

    async def request_keys(
        self, keys: list[ClaimKey], *, lease: float = LEASE, capability: str | None = None, **attributes: Scalar
    ) -> ClaimsDecided:
        request = RequestClaims(
            schedd=SCHEDD,
            slot=f"slot1@{STARTD}",
            capability=capability or await self.capability(),
            submitter="alice",
            job=job_ad(**attributes),
            claims=keys,
            lease=lease,
        )
        return await self.schedd.call(REQUEST_CLAIMS, STARTD, request)

    async def claim(self, *, lease: float = LEASE, **attributes: Scalar) -> ClaimKey:
        decided = await self.request(lease=lease, **attributes)
        assert [grant.claim for grant in decided.granted], decided.reason
        name = decided.granted[0].claim
        return ClaimKey(name, name.replace("claim#", "secret"))

    def activation(
        self, claim: ClaimKey, ad: Ad, *, inputs: list[InputFile] | None = None, attempt: int = 1
    ) -> Activation:
        self._procs += 1
        return Activation(
            key=claim,
            job=JobId(1, self._procs),
            attempt=attempt,
            ad={**ad, "ClusterId": 1, "ProcId": self._procs},
            inputs=inputs or [],
            shadow=SHADOW,
        )

    async def activate(self, *activations: Activation, recorded: list[ReportKey] | None = None) -> ActivationResult:
        request = Activate(activations=list(activations), recorded=recorded or [])
        return (await self.shadow.call(ACTIVATE, STARTD, request)).results[0]

    async def start(
        self, ad: Ad, *, claim: ClaimKey | None = None, inputs: list[InputFile] | None = None
    ) -> Activation:
        activation = self.activation(claim or await self.claim(), ad, inputs=inputs)
        result = await self.activate(activation)
        assert result.code == 0, result.reason
        return activation

    async def run(self, ad: Ad, *, inputs: list[InputFile] | None = None) -> Exited | Failed:
        return await self.final(await self.start(ad, inputs=inputs))

    async def final(self, activation: Activation, *, wait: float = WAIT) -> Exited | Failed:
        report = await self.hear(activation, lambda report: isinstance(report.body, Exited | Failed), wait=wait)
        assert isinstance(report.body, Exited | Failed)
        return report.body

    async def hear(self, activation: Activation, wanted: Callable[[Report], bool], *, wait: float = WAIT) -> Report:
        async with asyncio.timeout(wait):
            while True:
                for report in self.reports:
                    if (report.job, report.attempt) == (activation.job, activation.attempt) and wanted(report):
                        return report
                self._heard.clear()
                await self._heard.wait()

    def file(self, name: str, data: bytes, *, mode: int = 0o644) -> InputFile:
        self.files[name] = data
        return InputFile(name=name, mode=mode, size=len(data), sha256=hashlib.sha256(data).hexdigest())


def inline(name: str, data: bytes, *, mode: int = 0o644) -> InputFile:
    """
    An input file that carries its bytes.
    """
    digest = hashlib.sha256(data).hexdigest()
    return InputFile(name=name, mode=mode, size=len(data), sha256=digest, data=data)


def output(exited: Exited | Failed, name: str = "_condor_stdout") -> bytes | None:
    """
    What a job wrote, as far as the report carries it.
    """
    assert isinstance(exited, Exited), exited
    return next((file.data for file in exited.outputs if file.name == name), None)


@pytest.fixture
def directory() -> Generator[Path]:
    """
    A directory that other accounts can pass through; the temporary directories of pytest are closed to them.
    """
    path = Path(tempfile.mkdtemp(prefix="kettle-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@pytest.fixture
def settings(directory: Path) -> StartdSettings:
    return StartdSettings(
        pool=POOL,
        home=str(directory),
        name=STARTD,
        num_cpus=8,
        memory=4096,
        disk=1 << 20,
        report_repeat=0.3,
        kill_timeout=5.0,
        monitor_interval=0.2,
        adoption_patience=0.5,
    )


class Pool:
    """
    A submitter, and startds on the same bus.
    """

    def __init__(self, submitter: Submitter, settings: StartdSettings) -> None:
        self.submitter = submitter
        self.settings = settings
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def startd(self, settings: StartdSettings | None = None) -> AsyncGenerator[Startd]:
        bus = MemoryBus(self.submitter.server, subjects=Subjects(POOL), identity=daemon("startd"))
        async with running(bus, settings or self.settings) as startd:
            yield startd
        bus.close()

    @property
    def execute(self) -> Path:
        return Path(self.settings.home) / "execute"

    @property
    def reports(self) -> Path:
        return Path(self.settings.home) / "startd" / "reports"


@pytest.fixture
async def pool(settings: StartdSettings) -> AsyncGenerator[Pool]:
    server = MemoryServer()
    submitter = Submitter(server)
    await submitter.prepare()
    listening = asyncio.create_task(submitter.listen())
    try:
        yield Pool(submitter, settings)
    finally:
        listening.cancel()
        submitter.schedd.close()
        submitter.shadow.close()


@pytest.fixture
async def submitter(pool: Pool) -> AsyncGenerator[Submitter]:
    """
    The submit side of a running startd, which is drained at the end and must leave nothing.
    """
    async with pool.startd() as startd:
        yield pool.submitter
        await startd.drain()
    assert [] == os.listdir(pool.execute) or pool.submitter.reports
