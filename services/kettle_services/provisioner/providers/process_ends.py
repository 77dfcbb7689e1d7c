"""
Notices that a machine which is a process of this host has ended, so that nobody has to ask again and again.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Final

from kettle.execution.system.linux import start_time
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import Waits
from kettle_wire.leases import Handle

_LOOKS: Final = Backoff(first=0.05, longest=2.0, spread=0.0)
"""Between looks whether what the process has left is gone: most of it ends by itself, and it tells nobody."""
_PATIENCE_S: Final = 60.0


class ProcessEnds:
    """Follows the processes of machines, and what they leave."""

    def __init__(self, remains: Callable[[Handle], bool]) -> None:
        """`remains`: whether something of a machine lives; it takes a while, and is asked in a thread."""
        self._remains = remains
        self._told: Callable[[Handle], None] | None = None
        self._following: Final[dict[Handle, asyncio.Task[None]]] = {}

    def tell(self, told: Callable[[Handle], None]) -> None:
        """Have somebody told of machines that have ended; without, nothing is followed."""
        self._told = told

    def follow(self, handle: Handle, pid: int, started: int) -> None:
        """
        Follow a machine until it has ended; `pid` with its start time is the process that was made for it.
        """
        if self._told is not None and handle not in self._following:
            task = asyncio.create_task(
                self._follow(handle, pid, started, self._told), name=f"end of {handle}"
            )
            self._following[handle] = task
            task.add_done_callback(lambda _: self._following.pop(handle, None))

    def close(self) -> None:
        """Follow nothing any more."""
        for task in self._following.values():
            task.cancel()

    async def _follow(self, handle: Handle, pid: int, started: int, told: Callable[[Handle], None]) -> None:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            fd = -1
        try:
            if fd >= 0 and start_time(pid) == started:
                await _readable(fd)
        finally:
            if fd >= 0:
                os.close(fd)
        deadline, waits = Deadline(_PATIENCE_S), Waits(_LOOKS)
        while await asyncio.to_thread(self._remains, handle) and not deadline.passed:
            await waits.wait()
        told(handle)


async def _readable(fd: int) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(fd)
