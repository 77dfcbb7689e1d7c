"""
A process that carries out commands: it is forked before it is asked for, and may carry out several, one after the other.

To fork takes longer than most commands, since a fork copies what it changes.  So one that has succeeded, and has left nothing behind,
takes the next order of a caller with the same variables and mask: what differs are words, directory and streams.  For any other caller
there is another process, so that nothing that was read for one can be used for another.
"""

import gc
import io
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self, cast

from kettle.command_server import needing
from kettle.command_server.asking import LONGEST, LOST
from kettle.command_server.order import Order

MOST: Final = 100
"""Commands that one process carries out: what a command leaves in memory does not add up."""
_DESCRIPTORS: Final = 5
"""Standard streams and directory of a command, and the connection of who waits for it."""
_OF_SHELLS: Final = frozenset({b"_", b"PWD", b"OLDPWD"})
"""Variables in which a shell keeps what it does: they differ from command to command of one and the same loop."""
_DONE: Final = b"done"
"""What it says when it has carried out a command, and would take another one."""


class Worker:
    """One such process, as the server has it."""

    def __init__(self, pid: int, handle: int, line: socket.socket) -> None:
        self.pid: Final = pid
        self.handle: Final = handle
        """The descriptor that says that it has ended."""
        self.line: Final = line
        """On which it is told what to do; no other process has the other end. When this end is closed it ends."""
        self.caller: socket.socket | None = None
        """Who waits for the command that it is."""
        self._done_for: tuple[int, object] | None = None
        """Those whose orders it carries out, see `_of`; None: it has had none."""
        self._dismissed = False

    @classmethod
    def fork(cls) -> "Self | Assignment":
        """
        Returns in both processes: in the new one, what it is to be.

        Raises OSError: there is no process, no memory or no descriptor for it.
        """
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = -1
        try:
            pid = os.fork()
            if pid == 0:
                ours.close()
                return Assignment(its)
            its.close()
            return cls(pid, os.pidfd_open(pid), ours)
        except OSError:
            ours.close()
            its.close()
            if pid > 0:  # nobody would see how it ends
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            raise

    @property
    def is_new(self) -> bool:
        """Whether it may be any command, since it has not been one."""
        return self._done_for is None and not self._dismissed

    def has_done(self, order: Order) -> bool:
        """Whether it waits for another command, and has carried out orders of such callers alone."""
        return self.caller is None and not self._dismissed and self._done_for == _of(order)

    def told(self, order: Order, data: bytes, caller: socket.socket, fds: Sequence[int]) -> bool:
        """Have it carry out an order for a caller, with streams and directory; False: it has ended."""
        self._done_for = _of(order)
        try:
            socket.send_fds(self.line, [data], [*fds, caller.fileno()])
        except OSError:
            return False
        self.caller = caller
        return True

    def is_done(self) -> bool:
        """When it has said something: that it has carried out what it was told, and waits."""
        with suppress(OSError):
            return self.line.recv(len(_DONE), socket.MSG_DONTWAIT) == _DONE
        return False

    def dismiss(self) -> None:
        """It is not needed, and ends."""
        self._dismissed = True
        self.line.close()

    def close(self) -> None:
        """It has ended, or is another process's."""
        self.line.close()
        os.close(self.handle)
        if self.caller is not None:
            self.caller.close()


class Assignment:
    """The same process, as it has itself: what it is to be, and then what comes after that."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._count = 0
        self._open = 0
        """How many descriptors it has between two commands."""
        self.words: Sequence[str] = ()

    def begin(self) -> None:
        """Wait for the first order, and be what it says; without one the process ends."""
        os.setsid()
        self._open = _open_descriptors()
        self._become(*self._awaited())

    def next(self, status: int) -> Sequence[str] | None:
        """
        A command has ended with a status. Its caller is told, and the words of the next are returned when there is one.

        None: this process takes no other, and is to end with the status.
        """
        self._count += 1
        [caller] = needing.callers
        if status or self._count >= MOST or not _is_clean() or _open_descriptors() != self._open + 1:
            return None
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):  # who reads what was written sees its end before the caller does
            os.dup2(null, standard)
        os.close(null)
        needing.callers.clear()
        with caller, suppress(OSError):  # nobody waits any more
            self._line.sendall(_DONE)
            caller.sendall(b"%d" % status)
        self._become(*self._awaited())
        return self.words

    def _awaited(self) -> tuple[Order, socket.socket, Sequence[int]]:
        data, fds, _flags, _address = socket.recv_fds(self._line, LONGEST, _DESCRIPTORS)
        if not data:
            os._exit(0)  # nobody can tell it anything any more
        if len(fds) < _DESCRIPTORS:  # none was left for them; the server tells the caller how it ended
            os._exit(LOST)
        *given, caller = fds
        return Order.read(data), socket.socket(fileno=caller), given

    def _become(self, order: Order, caller: socket.socket, fds: Sequence[int]) -> None:
        """Be a process as one is that was executed, but for the modules that it has already."""
        needing.callers.append(caller)
        *streams, here = fds
        try:
            os.fchdir(here)
        except OSError:  # one may be where one may not go
            needing.hand_back()
        os.close(here)
        for standard, stream in enumerate(streams):
            os.dup2(stream, standard)
            os.close(stream)
        _renew_streams()
        os.umask(order.umask)
        os.environb.clear()
        os.environb.update(order.environ)
        time.tzset()
        gc.enable()
        self.words = order.words


def _of(order: Order) -> tuple[int, object]:
    """What all have in common for whom one process may carry out commands."""
    return order.umask, {name: value for name, value in order.environ.items() if name not in _OF_SHELLS}


def _renew_streams() -> None:
    """What one command has not read of its input is not the next one's."""
    before = cast("io.TextIOWrapper", sys.__stdin__)
    raw = io.FileIO(0, closefd=False)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(raw), encoding=before.encoding, errors=before.errors)
    sys.stdout, sys.stderr = (
        cast("io.TextIOWrapper", sys.__stdout__),
        cast("io.TextIOWrapper", sys.__stderr__),
    )
    sys.stdout.reconfigure(line_buffering=os.isatty(1))


def _is_clean() -> bool:
    """Whether a command has left nothing that goes on: no thread, no process; and no limit of time adds up."""
    if "threading" in sys.modules or resource.getrlimit(resource.RLIMIT_CPU)[0] != resource.RLIM_INFINITY:
        return False
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - for each command
