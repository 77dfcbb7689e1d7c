"""
The zygote of a master that was forked itself.

What forks a master has loaded the modules of all services.  So the master forks its zygote, too, before it has
an event loop and anything open, instead of executing an interpreter that loads them again.  As in a master that was
executed, the zygote is its child, and the next one is executed.
"""

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Final, NoReturn

from kettle_services.master.zygote.identity import PROGRAM, show

_STANDARD: Final = 3
"""The first number that is not of a standard stream."""


class MadeZygote:
    """A zygote that runs: its process as `asyncio.subprocess` has it, and the socket to it."""

    def __init__(self, pid: int, sock: socket.socket) -> None:
        self.pid = pid
        self.socket = sock
        self._handle = os.pidfd_open(pid)
        self._status: int | None = None

    def kill(self) -> None:
        """SIGKILL; ProcessLookupError if it has been waited for."""
        if self._status is not None:
            raise ProcessLookupError
        signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for its end; its exit status, or minus the number of the signal that killed it."""
        if self._status is None:
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(self._handle, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(self._handle)
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])  # noqa: ASYNC222 - it has ended
            os.close(self._handle)
        return self._status

    def leave(self) -> None:
        """Have it end, since nothing will be asked of it."""
        self.socket.close()


def make_zygote() -> MadeZygote | None:
    """
    Fork a zygote, if this process was forked and not executed; in the zygote, and in a service, this does not return.
    """
    if PROGRAM not in sys.orig_argv:
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if (pid := os.fork()) == 0:
        _be(theirs.detach())
    theirs.close()
    ours.setblocking(False)
    return MadeZygote(pid, ours)


def _be(sock: int) -> NoReturn:
    """In the child: nothing of the master's stays open, such as the lock of its home."""
    from kettle_services.master.zygote.program import serve  # a master that was executed has no use for it

    os.setsid()
    for number in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208 - names are all we want
        if number >= _STANDARD and number != sock:
            with suppress(OSError):  # the look itself
                os.close(number)
    show(["-P", "-m", PROGRAM, str(sock)], os.environb)
    serve(sock, [])
    raise SystemExit(0)
