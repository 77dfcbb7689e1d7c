"""
Worker reports: what a machine says about the attempts that run on it, on the stream of work.

A report is idempotent by (claim, attempt, sequence) and is kept on the worker's disk until confirmed.
"""

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import msgspec

from kettle_wire.attempts import AttemptResult, Ending, ExitRecord, Transfer, Usage
from kettle_wire.codes import HoldCode
from kettle_wire.jobs import JobId
from kettle_wire.tasks import Step


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """The executable runs."""

    pid: int
    at: float
    input: Transfer | None = None
    """Of files that came on their own, by value or by URL."""


class Measured(msgspec.Struct, frozen=True, kw_only=True, tag="measured"):
    """Use so far."""

    usage: Usage
    told: dict[str, str] = {}
    """Attributes that the program has set without hurry, all of them, as texts of expressions."""


class Suspended(msgspec.Struct, frozen=True, kw_only=True, tag="suspended"):
    """All processes of the job are suspended."""

    at: float
    processes: int = 0
    """How many there are."""


class Continued(msgspec.Struct, frozen=True, kw_only=True, tag="continued"):
    """They go on."""

    at: float


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag="stepped"):
    """Something has happened in a job of several tasks."""

    steps: list[Step]
    """All of this attempt so far, in order: an earlier report of them may be lost."""


class OutputFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that the job left. Small ones carry their bytes; the others are read with `fetch_output`."""

    name: str
    """Relative path in the sandbox; `_condor_stdout` and `_condor_stderr` are the standard streams."""
    mode: int
    size: int
    data: bytes | None = None
    directory: bool = False
    """It is a directory with nothing in it; its `data` is empty."""


class FinalReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="final"):
    """
    The attempt is over; nothing of the job is left on the machine but its outputs.

    With an exit and an ending in its result the program ran to its end, and the worker itself could not send all of its
    results where they go.
    """

    result: AttemptResult
    outputs: list[OutputFile] = []
    """What the job left as its results, or for its next run."""
    told: dict[str, str] = {}
    """As in `Measured`."""
    steps: list[Step] = []
    """As in `Stepped`."""


class Checkpointed(msgspec.Struct, frozen=True, kw_only=True, tag="checkpointed"):
    """
    The program ended with its checkpoint's exit code.  It is started again when this is confirmed; until then what it
    left stays as it is.
    """

    number: int
    """Counts the checkpoints of this attempt from 1."""
    at: float = 0.0
    usage: Usage = Usage()
    outputs: list[OutputFile] = []
    ending: Ending | None = None
    """Why it cannot be saved: the job is to be held."""


class ExitedV1(msgspec.Struct, frozen=True, kw_only=True, tag="exited"):
    """The `FinalReport` of a program that ran to its end, as earlier versions wrote it."""

    exit_code: int | None = None
    exit_signal: int | None = None
    at: float = 0.0
    usage: Usage = Usage()
    outputs: list[OutputFile] = []
    missing: list[str] = []
    """Files of TransferOutput that the job did not make."""
    trouble: Ending | None = None
    output: Transfer | None = None
    dumped: bool = False
    core: str = ""
    told: dict[str, str] = {}

    def upcast(self) -> FinalReport:
        """In today's words."""
        ran = None
        if (self.exit_code is None) != (self.exit_signal is None):
            ran = ExitRecord(
                code=self.exit_code,
                signal=self.exit_signal,
                at=self.at,
                dumped=self.dumped,
                core=self.core,
                output=self.output,
            )
        ending = self.trouble or (not_made(self.missing) if self.missing else None)
        result = AttemptResult(exit=ran, ending=ending, usage=self.usage)
        return FinalReport(result=result, outputs=self.outputs, told=self.told)


class FailedV1(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """The `FinalReport` of an attempt that ended otherwise, as earlier versions wrote it."""

    code: int
    reason: str
    subcode: int = 0
    usage: Usage = Usage()
    outputs: list[OutputFile] = []
    told: dict[str, str] = {}

    def upcast(self) -> FinalReport:
        """In today's words."""
        ending = Ending(code=self.code, subcode=self.subcode, reason=self.reason)
        return FinalReport(
            result=AttemptResult(ending=ending, usage=self.usage), outputs=self.outputs, told=self.told
        )


def not_made(names: Sequence[str]) -> Ending:
    """The program ran to its end, and did not make these of its results."""
    return Ending(
        code=HoldCode.TransferOutputError,
        subcode=errno.ENOENT,
        reason=f"Transfer output files failure at the execution point: the job did not make {', '.join(names)}",
    )


Body = Started | Measured | Suspended | Continued | Checkpointed | Stepped | FinalReport
if TYPE_CHECKING:
    _Read = Body
else:
    _Read = Body | ExitedV1 | FailedV1
    """What is read as well; nobody but the report itself gets to see it."""


class ReportKey(msgspec.Struct, frozen=True, array_like=True):
    """
    Names a worker report: it is repeated until somebody says that it is recorded.

    An attempt is a job and a number; a claim serves many jobs, and a job may run on many claims.
    """

    claim: str
    job: JobId
    attempt: int
    sequence: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One report about one attempt; `sequence` rises from report to report of a claim."""

    claim: str
    attempt: int
    sequence: int
    job: JobId
    body: _Read
    trace: str = ""
    """W3C traceparent of the job."""
    closing: bool = False
    """Of a final report: the claim is over with its attempt."""

    def __post_init__(self) -> None:
        """Starters of earlier versions outlive their startd, and their reports wait on its disk."""
        if isinstance(old := cast("object", self.body), ExitedV1 | FailedV1):
            msgspec.structs.force_setattr(self, "body", old.upcast())

    @property
    def key(self) -> ReportKey:
        """What the report is confirmed by."""
        return ReportKey(self.claim, self.job, self.attempt, self.sequence)


class Reports(msgspec.Struct, frozen=True, kw_only=True):
    """What one startd sends to one schedd in one message."""

    startd: str
    reports: list[Report]
