"""Programs that report what the machine has."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

import msgspec

_PATIENCE_S: Final = 30.0
"""For a program to list devices; the first call after a boot may load a driver."""
_FAREWELL_S: Final = 1.0
"""For one that was killed; what hangs in a driver cannot be, and is not waited for."""


class ProgramResult(msgspec.Struct, frozen=True):
    """How a program ended, and its output."""

    status: int
    out: str
    err: str


def ask(command: Sequence[str]) -> ProgramResult:
    """Run a program to its end, with a time limit."""
    with contextlib.ExitStack() as pipes:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # what it started goes with it
        )
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None, "as asked for"
            pipes.enter_context(pipe)
        try:
            out, err = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_FAREWELL_S)
            raise
    return ProgramResult(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
