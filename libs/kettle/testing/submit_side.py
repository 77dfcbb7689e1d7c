"""
The submit side of a pool for tests of an execution side: a schedd and a shadow in one, that keeps what it hears.
"""

import asyncio
import hashlib
import math
from collections.abc import Callable
from typing import Final

import msgspec

from kettle import VERSION
from kettle.bus.ports import BucketSpec, Bus, RefusedError, Served, StreamSpec
from kettle.testing.patience import PATIENCE_S
from kettle_wire.ads import Ad, Scalar
from kettle_wire.ads.daemon import SlotSecret
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.shadow import FETCH_INPUT, FetchInput
from kettle_wire.commands.startd import (
    ACTIVATE,
    CONFIRM,
    RELEASE,
    REQUEST_CLAIMS,
    Activate,
    Activation,
    ActivationResult,
    ClaimKey,
    ClaimsDecided,
    Confirm,
    InputFile,
    Piece,
    Release,
    RequestClaims,
)
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects, slot_key
from kettle_wire.worker_reports import FinalReport, Report, ReportKey, Reports

POOL: Final = "test"
STARTD: Final = "worker"
SCHEDD: Final = "submit"
SHADOW: Final = "shadow"
LEASE: Final = 60.0

_decode: Final = msgspec.msgpack.Decoder(Reports).decode


def job_ad(**attributes: Scalar) -> Ad:
    """The ad of a job that runs a program of this machine."""
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
    """A job that is a line of shell."""
    quoted = text.replace("'", "''")
    return job_ad(Arguments=f"-c '{quoted}'", **attributes)


class SubmitSide:
    """Two connections to a bus, one as schedd and one as shadow."""

    def __init__(self, schedd: Bus, shadow: Bus, *, pool: str = POOL, startd: str = STARTD) -> None:
        self.subjects = Subjects(pool)
        self.startd = startd
        self.schedd = schedd
        self.shadow = shadow
        self.reports: list[Report] = []
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.pieces: float = math.inf
        """How many pieces of input files are served before `resumed` is waited for."""
        self.resumed = asyncio.Event()
        self.first: Activation | None = None
        """Whose turn it is to have its input files sent; None: everybody's."""
        self._heard = asyncio.Event()
        self._procs = 0
        self._claims = 0
        self._granted: list[ClaimKey] = []

    async def prepare(self) -> None:
        """Make what others would make, and answer."""
        for bucket in (self.subjects.ads, self.subjects.private_ads):
            await self.schedd.ensure_bucket(BucketSpec(name=bucket))
        await self.schedd.ensure_stream(
            StreamSpec(name=self.subjects.work_stream, subjects=[self.subjects.work_all])
        )
        await self.shadow.serve("shadow", SHADOW, [Served(FETCH_INPUT, self.fetch_input)], version=VERSION)

    async def listen(self) -> None:
        """Keep all reports; never returns."""
        subject = self.subjects.work_of(SCHEDD)
        async for batch in self.shadow.consume(self.subjects.work_stream, "test", subject=subject):
            for message in batch.messages:
                self.reports += _decode(message.data).reports
            self._heard.set()
            await batch.ack()

    async def fetch_input(self, request: FetchInput, caller: Identity) -> Piece:
        """Serve `files`."""
        if self.first is not None and request.job != self.first.job:
            raise RefusedError(RefusalCode.BUSY, f"job {request.job} waits for its turn")
        self.fetched.append(request.name)
        if len(self.fetched) > self.pieces:
            await self.resumed.wait()
        if request.name not in self.files:
            raise RefusedError(RefusalCode.UNREADABLE, f"{request.name}: No such file or directory")
        return Piece(self.files[request.name][request.offset : request.offset + request.length])

    async def capability(self) -> str:
        """What a negotiator would hand over."""
        name = slot_key(self.startd, f"slot1@{self.startd}")
        async for change in self.schedd.watch(self.subjects.private_ads):
            if change is not None and change.key == name and change.value is not None:
                return msgspec.msgpack.decode(change.value, type=SlotSecret).capability
        raise AssertionError

    async def request(self, count: int = 1, *, lease: float = LEASE, ad: Ad | None = None) -> ClaimsDecided:
        """Ask for claims with fresh ids."""
        self._claims += count
        keys = [ClaimKey(f"claim#{self._claims - n}", f"secret{self._claims - n}") for n in range(count)]
        return await self.request_keys(keys, lease=lease, ad=ad)

    async def settle(self) -> None:
        """Confirm every report, and give back every claim, whether or not it is over."""
        keys = [report.key for report in self.reports]
        await self.shadow.call(CONFIRM, self.startd, Confirm(recorded=keys))
        await self.schedd.call(RELEASE, self.startd, Release(claims=self._granted, reason="the test is over"))
        self.reports, self._granted = [], []

    async def request_keys(
        self,
        keys: list[ClaimKey],
        *,
        lease: float = LEASE,
        capability: str | None = None,
        ad: Ad | None = None,
    ) -> ClaimsDecided:
        """Ask for these claims."""
        request = RequestClaims(
            schedd=SCHEDD,
            slot=f"slot1@{self.startd}",
            capability=capability or await self.capability(),
            submitter="alice",
            job=ad or job_ad(),
            claims=keys,
            lease=lease,
        )
        decided = await self.schedd.call(REQUEST_CLAIMS, self.startd, request)
        granted = {each.claim for each in decided.granted}
        self._granted += [claim for claim in keys if claim.claim in granted]
        return decided

    async def claim(self, *, lease: float = LEASE, **attributes: Scalar) -> ClaimKey:
        """Have one claim."""
        decided = await self.request(lease=lease, ad=job_ad(**attributes))
        assert [grant.claim for grant in decided.granted], decided.reason
        name = decided.granted[0].claim
        return ClaimKey(name, name.replace("claim#", "secret"))

    def activation(
        self, claim: ClaimKey, ad: Ad, *, inputs: list[InputFile] | None = None, attempt: int = 1
    ) -> Activation:
        """An activation of the next job."""
        self._procs += 1
        return Activation(
            key=claim,
            job=JobId(1, self._procs),
            attempt=attempt,
            ad={**ad, "ClusterId": 1, "ProcId": self._procs},
            inputs=inputs or [],
            shadow=SHADOW,
        )

    async def activate(
        self, *activations: Activation, recorded: list[ReportKey] | None = None
    ) -> ActivationResult:
        """Send activations; the result of the first."""
        request = Activate(activations=list(activations), recorded=recorded or [])
        return (await self.shadow.call(ACTIVATE, self.startd, request)).results[0]

    async def start(
        self, ad: Ad, *, claim: ClaimKey | None = None, inputs: list[InputFile] | None = None
    ) -> Activation:
        """Have a job accepted."""
        activation = self.activation(claim or await self.claim(), ad, inputs=inputs)
        result = await self.activate(activation)
        assert result.code == 0, result.reason
        return activation

    async def run(self, ad: Ad, *, inputs: list[InputFile] | None = None) -> FinalReport:
        """Have a job run to its end."""
        return await self.final(await self.start(ad, inputs=inputs))

    async def final(self, activation: Activation, *, wait: float = PATIENCE_S) -> FinalReport:
        """Wait for the final report."""
        report = await self.hear(activation, lambda report: isinstance(report.body, FinalReport), wait=wait)
        assert isinstance(report.body, FinalReport)
        return report.body

    async def hear(
        self, activation: Activation, wanted: Callable[[Report], bool], *, wait: float = PATIENCE_S
    ) -> Report:
        """Wait for a report; if it does not come those that did are told."""
        mine: list[Report] = []
        try:
            async with asyncio.timeout(wait):
                while True:
                    key = (activation.job, activation.attempt)
                    mine = [each for each in self.reports if (each.job, each.attempt) == key]
                    if found := next(filter(wanted, mine), None):
                        return found
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError as error:
            error.add_note(f"reports so far: {[each.body for each in mine]}")
            raise

    def file(self, name: str, data: bytes, *, mode: int = 0o644) -> InputFile:
        """An input file that has to be fetched."""
        self.files[name] = data
        return InputFile(name=name, mode=mode, size=len(data), sha256=hashlib.sha256(data).hexdigest())


def inline(name: str, data: bytes, *, mode: int = 0o644) -> InputFile:
    """An input file that carries its bytes."""
    digest = hashlib.sha256(data).hexdigest()
    return InputFile(name=name, mode=mode, size=len(data), sha256=digest, data=data)


def output(exited: FinalReport, name: str = "_condor_stdout") -> bytes | None:
    """What a job wrote, as far as the report carries it."""
    assert exited.result.exit is not None, exited
    return next((file.data for file in exited.outputs if file.name == name), None)
