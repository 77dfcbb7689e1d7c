"""
Dagmans that are killed where they are told to be, one after the other: `python -m tests.integration.dagman.deaths SETTINGS`.

Each line of standard input is the place of the next one; its exit status is a line of standard output.  They are forked from a
process that has read all modules.
"""

import asyncio
import os
import secrets
import signal
import sys
import traceback
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kettle import faults
from kettle.pool.processes import end_all, mark, of_pool
from kettle.runtime import Runtime
from kettle.testing.patience import PATIENCE_S
from kettle_services.dagman.settings import DagmanSettings
from kettle_services.dagman.wiring import serve

_ROOT: Final = Path(__file__).parents[3]


class Deaths:
    """Starts them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def die(self, fault: str) -> None:
        """Have one begin that is killed at this place, and wait until it was."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{fault}\n".encode())
        status = await self._process.stdout.readline()
        assert f"{-signal.SIGKILL}\n".encode() == status, (fault, status)


@asynccontextmanager
async def deaths(settings: DagmanSettings) -> AsyncGenerator[Deaths]:
    """Who starts them, while the context lasts; nothing of it is left."""
    name = f"deaths{secrets.token_hex(6)}"
    try:
        yield Deaths(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.integration.dagman.deaths",
                msgspec.json.encode(settings).decode(),
                env={**os.environ, **mark(name), "PYTHONPATH": str(_ROOT)},
                cwd=_ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        )
    finally:
        left = end_all(partial(of_pool, name, _ROOT / "none of theirs"), deadline_s=PATIENCE_S)
    assert not left, left


def _end(settings: DagmanSettings, fault: str) -> int:
    """How a dagman ends that is killed there."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        faults.arm({faults.VARIABLE: f"{fault}=kill"})
        asyncio.run(Runtime("dagman").host(settings, serve))
        os._exit(0)
    except BaseException:  # noqa: BLE001 - it is said, and this process goes no further
        traceback.print_exc()
        os._exit(1)


def main(settings: DagmanSettings) -> None:
    """One after the other."""
    for line in sys.stdin:
        sys.stdout.write(f"{_end(settings, line.strip())}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1].encode(), type=DagmanSettings))
