"""The master of the machine with its startd: started, asked to finish, and ended."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kettle.pool import down, up
from kettle.runtime.lifeline import make_lifeline

_KEPT: Final = ("KETTLE_NATS_BIN", "KETTLE_PG_BIN", "KETTLE_FAULT_", "KETTLE_TEST_")
"""Variables that are about this installation, and not about the pool of who started us."""


class Services:
    """They end with this process, however it ends."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lifeline = make_lifeline()
        self._master = -1
        """A descriptor of its process; -1: it was not started."""

    async def start(self) -> None:
        """Returns when the machine is advertised.  Raises PoolError."""
        started = await asyncio.to_thread(
            up, self._home, environ=own_environment(os.environ), lifeline_fd=self._lifeline.read_fd
        )
        if self._master >= 0:
            os.close(self._master)
        self._master = os.pidfd_open(started.state.pid)

    async def ended(self) -> None:
        """Wait until the master has ended."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._master, over.set)
        try:
            await over.wait()
        finally:
            loop.remove_reader(self._master)

    def finish(self) -> None:
        """Take no more jobs, and end when the last has ended; `ended` says when."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._master, signal.SIGUSR1)

    async def end(self, within: float) -> None:
        """Ask jobs to end, and kill what is left after `within` seconds.  Raises PoolError."""
        await asyncio.to_thread(down, self._home, deadline_s=within)

    def close(self) -> None:
        """Give up the lifeline: who still holds the other end stops."""
        self._lifeline.close()
        if self._master >= 0:
            os.close(self._master)


def own_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of what is started here: nothing that was said of the pool of who started us."""
    return {
        name: value
        for name, value in ours.items()
        if not name.startswith("KETTLE_") or name.startswith(_KEPT)
    }
