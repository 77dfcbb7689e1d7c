"""A command of a person, run to its end: `kettle`, or one of the condor_* commands."""

import asyncio
import os
import select
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kettle.execution.system.linux import end_group
from kettle.testing.commands import warm
from kettle.testing.patience import PATIENCE_S

KETTLE: Final = ("-c", "from kettle_services.cli.entry import command; command()")
"""What the file `kettle` is, wherever it was installed: words for Python."""

_PIPE_BYTES: Final = select.PIPE_BUF
"""What the smallest pipe takes without a reader."""


class Said(NamedTuple):
    """What a command left: its exit status, its output, its errors."""

    status: int
    out: str
    err: str


async def run(
    words: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    typed: str = "",
    *,
    within_s: float = PATIENCE_S,
) -> Said:
    """
    Run a program of Python, given by its words, with a text at its standard input, forked from a process that has its modules.

    When its time is over it ends, with what it has started.

    Raises:
        TimeoutError: it took longer than `within_s`.
    """
    data = typed.encode()
    if len(data) <= _PIPE_BYTES:
        async with asyncio.timeout(within_s):
            if said := await _forked(words, cwd, environ, data):
                return said
    return await execute(executable(words), cwd, environ, typed, within_s=within_s)


def executable(words: Sequence[str]) -> Sequence[str]:
    """The words that start a program with an interpreter of its own."""
    return [sys.executable, "-P", *words] if words[0] == "-c" else words


async def execute(
    program: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    typed: str = "",
    *,
    within_s: float = PATIENCE_S,
) -> Said:
    """
    Execute any program; for the rest as `run`.

    Raises:
        TimeoutError: it took longer than `within_s`.
    """
    process = await asyncio.create_subprocess_exec(
        *program,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
        cwd=cwd,
        start_new_session=True,  # what it has started ends with it, else it would hold our pipes open
    )
    try:
        async with asyncio.timeout(within_s):
            out, err = await process.communicate(typed.encode())
    finally:
        if process.returncode is None:
            end_group(process.pid)
            await process.wait()
    return Said(process.returncode or 0, out.decode(), err.decode())


async def _forked(words: Sequence[str], cwd: Path, environ: Mapping[str, str], typed: bytes) -> Said | None:
    """None: it has to be executed."""
    typing, (out, out_written), (err, err_written) = _filled(typed), os.pipe(), os.pipe()
    written = (typing, out_written, err_written)
    try:
        forked = warm.fork(words, cwd, environ, written)
    finally:
        for stream in written:
            os.close(stream)
    if forked is None:
        os.close(out)
        os.close(err)
        return None
    try:
        said = await asyncio.gather(_all(out), _all(err))
        await _readable(forked.told.fileno())
        status = forked.status()
        return None if status is None else Said(status, *(part.decode() for part in said))
    finally:
        forked.close()


def _filled(typed: bytes) -> int:
    """A pipe that says this and no more; the end to read."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(typed)
    return read


async def _all(descriptor: int) -> bytes:
    """All that is written to a pipe; it is closed."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    try:
        return await reader.read()
    finally:
        transport.close()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def told() -> None:
        loop.remove_reader(descriptor)
        ready.set_result(None)

    loop.add_reader(descriptor, told)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
