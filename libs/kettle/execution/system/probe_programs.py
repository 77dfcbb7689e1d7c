"""Programs that report what the machine has."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

PATIENCE_S: Final = 30.0
"""For a program to list devices; the first call after a boot may load a driver."""
_FAREWELL_S: Final = 1.0
"""For one that was killed; what hangs in a driver cannot be, and is not waited for."""


class ProgramResult(msgspec.Struct, frozen=True):
    """How a program ended, and its output."""

    status: int
    out: str
    err: str


def ask(
    command: Sequence[str],
    *,
    patience_s: float = PATIENCE_S,
    told: bytes = b"",
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> ProgramResult:
    """
    Run a program to its end, with a time limit; `told`: what it reads.

    Raises:
        OSError: it cannot be run.
        TimeoutExpired: it did not end, and was killed with what it had started.
    """
    with contextlib.ExitStack() as pipes:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if told else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            cwd=directory,
            start_new_session=True,  # what it started goes with it
        )
        for pipe in (process.stdout, process.stderr, process.stdin):
            if pipe is not None:
                pipes.enter_context(pipe)
        try:
            out, err = process.communicate(told or None, timeout=patience_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_FAREWELL_S)
            raise
    return ProgramResult(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
