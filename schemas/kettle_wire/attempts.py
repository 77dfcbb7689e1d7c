"""
How an attempt of a job ended, and what it used: the types that this travels as, from its starter to the history.

`ExitRecord` is the end of its program, `Ending` what ended it otherwise: a hold or a failure.
"""

from typing import Annotated

import msgspec

from kettle_wire.codes import FIRST_VACATE
from kettle_wire.moved_files import MovedFiles

SUBCODES = 1 << 31
"""A code, and a subcode with any sign, is smaller: numbers of 32 bits wherever somebody keeps them."""
Code = Annotated[int, msgspec.Meta(ge=0, lt=SUBCODES)]
Subcode = Annotated[int, msgspec.Meta(gt=-SUBCODES, lt=SUBCODES)]


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one attempt used, as measured by its starter."""

    wall: float = 0.0
    """Seconds from activation to the end of clean-up."""
    user_cpu: float = 0.0
    """Seconds, whole process tree."""
    system_cpu: float = 0.0
    memory_kib: int = 0
    """Peak resident set, KiB."""
    disk_kib: int = 0
    """Size of the sandbox at the end, KiB."""
    sent: int = 0
    """Bytes of output shipped to the submit side."""
    received: int = 0
    """Bytes of input fetched."""
    moved: MovedFiles | None = None
    """The files that it moved by URL; None: there were none."""


class Transfer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Files of an attempt that were moved on their own, one way; times in seconds since the epoch."""

    began: float = 0.0
    ended: float = 0.0
    queued: float = 0.0
    """Seconds that it waited for its turn before."""


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the program of an attempt ran to its end: exactly one of `code` and `signal` is set."""

    code: int | None = None
    """The exit code."""
    signal: int | None = None
    """The number of the signal that ended it."""
    at: float = 0.0
    """When it exited, on the worker's clock, seconds since the epoch; 0: nobody has looked."""
    dumped: bool = False
    """The signal that ended it had its memory written into a file."""
    core: str = ""
    """
    That file: which of the results it is, and from the shadow on its path on the submit side. Empty: nobody has it.
    """
    output: Transfer | None = None
    """Of results that were moved on their own; None: all that it left came with the report of its end."""

    def __post_init__(self) -> None:
        if (self.code is None) == (self.signal is None):
            raise ValueError("a program ends with an exit code or by a signal")


class Ending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What ended an attempt, or is to end it, before its job was done: a hold or a failure."""

    code: Code
    """HTCondor's HoldReasonCode (below 1000), or VacateReasonCode."""
    reason: str
    """A sentence for people."""
    subcode: Subcode = 0
    """What it means depends on the code: of most holds it is an errno."""

    @property
    def holds(self) -> bool:
        """Whether the job is to wait for somebody."""
        return self.code < FIRST_VACATE


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    How an attempt ended: with its program's exit and nothing else the job is done, with an ending it is not.

    With both the program ran to its end, and its results are not where they should be, or a policy does not let it go.
    """

    exit: ExitRecord | None = None
    """None: its program did not run to its end."""
    ending: Ending | None = None
    usage: Usage = Usage()

    @property
    def done(self) -> bool:
        """Whether the job is done."""
        return self.exit is not None and self.ending is None
