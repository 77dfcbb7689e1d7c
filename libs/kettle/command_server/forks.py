"""The process that forks commands: it has one thread and no event loop."""

import gc
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from kettle.command_server import needing
from kettle.command_server.asking import HAND_BACK, LONGEST
from kettle.command_server.order import MalformedOrderError, Order

if TYPE_CHECKING:
    from io import TextIOWrapper

MOST: Final = 64
"""Commands at once, as far as there are descriptors for them; what more are asked for are not taken."""
_SPARE: Final = 32
"""Descriptors that are for something else than commands and those who ask for them."""
_EACH: Final = 3
"""Descriptors for a command that runs, and for one who has not said yet what he asks for."""
_STREAMS: Final = 4
"""Descriptors that come with an order: standard input, output and errors, and the working directory."""
_AGAIN_S: Final = 1.0
"""Seconds until it is tried again to hear who has come, where there was no descriptor or no memory for it."""
_PID: Final = slice(0, 4)
_UID: Final = slice(4, 8)
"""Process and account in what the kernel tells of a peer: process, user and group, of four bytes each."""


class Forks:
    """The commands that run, each for a connection on which its end is told."""

    def __init__(
        self, listener: socket.socket, accepts: Callable[[Order, int], bool], *, lifeline: int | None = None
    ) -> None:
        """
        `accepts`: whether an order is for this server, and the process that has sent it one for whom it may be carried out.
        `lifeline`: a descriptor; when its other end is closed, it is over.
        """
        self._listener = listener
        self._accepts = accepts
        self._lifeline = lifeline
        self._connections: dict[int, socket.socket] = {}
        """Those whose order has not come, by descriptor."""
        self._running: dict[int, tuple[int, socket.socket]] = {}
        """By the descriptor that says that it has ended: its process id, and who waits for it."""
        self._waiting: dict[int, int] = {}
        """The descriptors of `_running`, by those of who waits."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = min(MOST, (soft - _SPARE) // _EACH) if soft != resource.RLIM_INFINITY else MOST
        self.ending = False
        """Whether it is over as soon as no command runs."""
        self._deaf = False
        """Whether nobody can be heard for the moment: the listener is not looked at."""
        # What has started us may ignore how its children end, and with that set nobody could be told how a command has.
        self._ignored = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
        if self._ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._poll = select.poll()
        for fd in (listener.fileno(), *([] if lifeline is None else [lifeline])):
            self._poll.register(fd, select.POLLIN)

    def serve(self, idle_s: float | None = None) -> Order | None:
        """
        Fork and reap until nobody asks any more: None. Returns in each child, too: what it is to be.

        `idle_s`: seconds without a command after which it is over.
        """
        while True:
            if self.ending and not self._running:
                return None
            ready = {fd for fd, _ in self._poll.poll(self._patience_ms(idle_s))}
            if self._deaf:
                self._deaf = False
                self._poll.register(self._listener, select.POLLIN)
            elif not ready:
                return None
            if self._lifeline in ready and self._lifeline_is_over():
                for waiting in list(self._waiting):
                    self._kill(waiting)
                return None
            if order := self._heed(ready):
                return order

    def _lifeline_is_over(self) -> bool:
        """Whether its other end is closed; what somebody writes there means nothing."""
        assert self._lifeline is not None
        try:
            said = os.read(self._lifeline, 4096)
        except OSError:
            return True
        if said:
            sys.stderr.write(f"command server: somebody has written {said!r} to the lifeline\n")
            sys.stderr.flush()
        return not said

    def _patience_ms(self, idle_s: float | None) -> float | None:
        if self._deaf:
            return _AGAIN_S * 1000
        return None if idle_s is None or self._running else idle_s * 1000

    def _heed(self, ready: AbstractSet[int]) -> Order | None:
        """Of each descriptor, what has happened there; in a child, what it is to be."""
        for handle in ready & self._running.keys():
            self._reap(handle)
        for waiting in ready & self._waiting.keys():
            self._kill(waiting)
        for fd in ready & self._connections.keys():
            if order := self._take(self._connections.pop(fd)):
                return order
        if (
            self._listener.fileno() in ready
        ):  # the last: what is opened now may have the number of what was closed above
            self._accept()
        return None

    def turn_away(self) -> None:
        """Tell those who came in the last moment that nothing has happened; once nobody can come any more."""
        self._listener.setblocking(False)
        with suppress(BlockingIOError):
            while not self._deaf:
                self._accept()
        for caller in self._connections.values():
            self._poll.unregister(caller)
            _hand_back(caller)
        self._connections.clear()

    def _accept(self) -> None:
        try:
            caller, _ = self._listener.accept()
        except BlockingIOError:
            raise
        except (
            OSError
        ) as error:  # no descriptors, no memory: those who wait are heard when there is some again
            _complain("nobody is heard for a moment", error)
            self._deaf = True
            self._poll.unregister(self._listener)
            return
        credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if int.from_bytes(credentials[_UID], sys.byteorder) != os.getuid():
            caller.close()
            return
        if len(self._connections) >= self._most:
            _hand_back(caller)
            return
        self._connections[caller.fileno()] = caller
        self._poll.register(caller, select.POLLIN)

    def _take(self, caller: socket.socket) -> Order | None:
        """The order of one who is connected."""
        self._poll.unregister(caller)
        try:
            data, fds, _flags, _address = socket.recv_fds(caller, LONGEST, _STREAMS)
        except OSError as error:  # it is of this caller alone
            _complain("an order could not be read", error)
            _hand_back(caller)
            return None
        try:
            order = Order.read(data) if len(fds) == _STREAMS else None
        except MalformedOrderError:
            order = None
        pid = -1
        if order is not None and len(self._running) < self._most and self._accepts(order, _process(caller)):
            with suppress(OSError):  # this account has as many processes as it may have
                pid = os.fork()
        if order is not None and pid >= 0:
            return self._forked(pid, order, caller, fds)
        for fd in fds:
            os.close(fd)
        _hand_back(caller)
        return None

    def _forked(self, pid: int, order: Order, caller: socket.socket, fds: Sequence[int]) -> Order | None:
        if pid == 0:
            self._leave()
            _become(order, caller, fds)
            return order
        for fd in fds:
            os.close(fd)
        try:
            handle = os.pidfd_open(pid)
        except OSError as error:  # its end would not be seen, so it is now; its caller says that it cannot tell what was done
            _complain("a command was ended", error)
            _end(pid)
            os.waitpid(pid, 0)
            caller.close()
            return None
        self._running[handle] = pid, caller
        self._waiting[caller.fileno()] = handle
        self._poll.register(handle, select.POLLIN)
        self._poll.register(caller, select.POLLHUP)
        return None

    def _leave(self) -> None:
        """In a child: nothing of ours stays open, or is set."""
        if self._ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self._listener.close()
        if self._lifeline is not None:
            os.close(self._lifeline)
        for handle, (_, waiting) in self._running.items():
            os.close(handle)
            waiting.close()
        for connection in self._connections.values():
            connection.close()

    def _reap(self, handle: int) -> None:
        pid, caller = self._running.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        if self._waiting.pop(caller.fileno(), None) is not None:
            self._poll.unregister(caller)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with caller, suppress(OSError):  # nobody waits any more
            caller.sendall(b"%d" % status)

    def _kill(self, waiting: int) -> None:
        """Nobody waits for it any more."""
        pid, _ = self._running[self._waiting.pop(waiting)]
        self._poll.unregister(waiting)
        _end(pid)


def _process(caller: socket.socket) -> int:
    """Who has connected, by the word of the kernel; 0: one in another namespace of processes."""
    credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[_PID], sys.byteorder)


def _end(pid: int) -> None:
    """End a child, and what it has started; it is not reaped, so nobody else has its process id."""
    for kill in (os.kill, os.killpg):
        with suppress(
            ProcessLookupError, PermissionError
        ):  # it has become a program with more rights than ours
            kill(pid, signal.SIGKILL)


def _complain(what: str, error: OSError) -> None:
    """To who looks at what a server says."""
    sys.stderr.write(f"command server: {what}: {error}\n")
    sys.stderr.flush()


def _hand_back(caller: socket.socket) -> None:
    with caller, suppress(OSError):  # it waits no more
        caller.sendall(HAND_BACK)


def _become(order: Order, caller: socket.socket, fds: Sequence[int]) -> None:
    """In a child: be a process as one is that was executed, but for the modules that it has already."""
    needing.callers.append(caller)
    os.setsid()
    *streams, here = fds
    try:
        os.fchdir(here)
    except OSError:  # one may be where one may not go
        needing.hand_back()
    os.close(here)
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=os.isatty(1))
    os.umask(order.umask)
    os.environb.clear()
    os.environb.update(order.environ)
    time.tzset()
    gc.enable()
