"""
Worker reports: what a machine says about the attempts that run on it, on the stream of work.

A report is idempotent by (claim, attempt, sequence) and is kept on the worker's disk until confirmed.
"""

import msgspec

from kettle_wire.events.job import Transfer, Usage
from kettle_wire.jobs import JobId


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
    """All processes of the job stand still."""

    at: float
    processes: int = 0
    """How many there are."""


class Continued(msgspec.Struct, frozen=True, kw_only=True, tag="continued"):
    """They go on."""

    at: float


class OutputFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that the job left. Small ones carry their bytes; the others are read with `fetch_output`."""

    name: str
    """Relative path in the sandbox; `_condor_stdout` and `_condor_stderr` are the standard streams."""
    mode: int
    size: int
    data: bytes | None = None


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """The job ended, and not all of its results are where they should be: it is held, by HoldReasonCode."""

    code: int
    reason: str
    subcode: int = 0


class Exited(msgspec.Struct, frozen=True, kw_only=True, tag="exited"):
    """
    Final: the job's main process ended by itself; nothing of the job is left on the machine but its outputs.
    """

    exit_code: int | None = None
    exit_signal: int | None = None
    at: float = 0.0
    usage: Usage = Usage()
    outputs: list[OutputFile] = []
    missing: list[str] = []
    """Files of TransferOutput that the job did not make."""
    trouble: Trouble | None = None
    """What went wrong with results that the worker itself sends somewhere."""
    output: Transfer | None = None
    """Of those results."""
    dumped: bool = False
    """The signal that ended it had its memory written into a file."""
    core: str = ""
    """Which of the results that is; empty: it is not among them."""
    told: dict[str, str] = {}
    """As in `Measured`."""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """
    Final: the attempt ended otherwise; nothing of the job is left on the machine.

    `hold` true: codes are HoldReasonCode, the job must wait for somebody; else VacateReasonCode, it may run again.
    """

    hold: bool
    code: int
    reason: str
    subcode: int = 0
    usage: Usage = Usage()
    outputs: list[OutputFile] = []
    """What an evicted job left for its next run."""
    told: dict[str, str] = {}
    """As in `Measured`."""


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
    trouble: Trouble | None = None
    """Why it cannot be saved: the job is to be held."""


Body = Started | Measured | Suspended | Continued | Checkpointed | Exited | Failed


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
    body: Body
    trace: str = ""
    """W3C traceparent of the job."""
    closing: bool = False
    """Of a final report: the claim is over with its attempt."""

    @property
    def key(self) -> ReportKey:
        """What the report is confirmed by."""
        return ReportKey(self.claim, self.job, self.attempt, self.sequence)


class Reports(msgspec.Struct, frozen=True, kw_only=True):
    """What one startd sends to one schedd in one message."""

    startd: str
    reports: list[Report]
