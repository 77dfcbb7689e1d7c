"""A submit side and the workers on its bus, for tests of an execution side."""

import asyncio
import os
import secrets
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Bus
from kettle.execution.job_environment.helper_programs import directory
from kettle.testing.patience import PATIENCE_S
from kettle.testing.submit_side import POOL, SubmitSide
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects


class Worker(Protocol):
    """What these tests know of a startd."""

    async def drain(self) -> None:
        """End all jobs."""
        ...


class WorkerPool:
    """
    A submitter, and startds on the same bus, one after the other; `home` is where they keep their files.
    """

    def __init__(
        self,
        server: MemoryServer,
        submitter: SubmitSide,
        home: Path,
        start: Callable[[Bus], AbstractAsyncContextManager[Worker]],
    ) -> None:
        self.server = server
        self.submitter = submitter
        self.home = home
        self.nap = str(10**7 + secrets.randbelow(9 * 10**7))
        """
        Seconds that a job may sleep whose processes are looked for: tests side by side would find each other's.
        """
        self._start = start

    @asynccontextmanager
    async def startd(self) -> AsyncGenerator[Worker]:
        """A startd, which is not drained at the end: jobs that run go on."""
        bus = MemoryBus(self.server, subjects=Subjects(POOL), identity=daemon("startd"))
        try:
            async with self._start(bus) as startd:
                yield startd
        finally:
            bus.close()

    @property
    def execute(self) -> Path:
        """The directory of the sandboxes."""
        return self.home / "execute"

    @property
    def sandboxes(self) -> list[Path]:
        """What is there now: everything but the helper programs that jobs share."""
        return [path for path in self.execute.iterdir() if path != Path(directory(str(self.execute)))]

    @property
    def reports(self) -> Path:
        """The directory of the final reports."""
        return self.home / "startd" / "reports"

    async def until(self, holds: Callable[[], object], *, wait: float = PATIENCE_S) -> None:
        """Look until it holds."""
        async with asyncio.timeout(wait):
            while not holds():
                await asyncio.sleep(0.01)

    def sleeping(self) -> list[int]:
        """Living processes that sleep this pool's `nap`."""
        return self.processes(f"sleep\0{self.nap}\0")

    async def sleeper(self) -> int:
        """Wait for the one process that sleeps the `nap`: a job has started when what becomes it has."""
        await self.until(self.sleeping)
        (found,) = self.sleeping()
        return found

    def processes(self, part: str) -> list[int]:
        """
        Living processes of the whole machine with this in their command line: it must be this pool's alone.
        """
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and part in (entry / "cmdline").read_text(errors="replace"):
                    found.append(int(entry.name))
        return found

    def clean(self) -> None:
        """
        End whatever a failed test has left: it works in this pool's directory, or has its path in its environment.
        """
        home = str(self.home)
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != os.getpid() and _belongs(entry, home):
                    os.kill(int(entry.name), signal.SIGKILL)


def _belongs(entry: Path, home: str) -> bool:
    inside = str((entry / "cwd").readlink()).startswith(home)
    return inside or f"={home}".encode() in (entry / "environ").read_bytes()
