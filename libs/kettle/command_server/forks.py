"""The process that forks commands: it has one thread and no event loop."""

import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Final

from kettle.command_server.asking import HAND_BACK, LONGEST
from kettle.command_server.order import MalformedOrderError, Order
from kettle.command_server.worker import Assignment, Worker

MOST: Final = 64
"""Commands at once, as far as there are descriptors for them; what more are asked for are not taken."""
_SPARE: Final = 32
"""Descriptors that are for something else than commands and those who ask for them."""
_EACH: Final = 4
"""Descriptors for a command that runs, and for one who has not said yet what he asks for."""
_WAITING: Final = 4
"""Processes that have carried out commands and wait for more, at most."""
_STREAMS: Final = 4
"""Descriptors that come with an order: standard input, output and errors, and the working directory."""
_AGAIN_S: Final = 1.0
"""Seconds until it is tried again to hear who has come, where there was no descriptor or no memory for it."""
_PID: Final = slice(0, 4)
_UID: Final = slice(4, 8)
"""Process and account in what the kernel tells of a peer: process, user and group, of four bytes each."""


class Forks:
    """The processes that are commands, or will be; each command is for a connection on which its end is told."""

    def __init__(
        self,
        listener: socket.socket,
        accepts: Callable[[Order, int], bool],
        *,
        lifeline: int | None = None,
        own: Sequence[int] = (),
    ) -> None:
        """
        `accepts`: whether an order is for this server, and the process that has sent it one for whom it may be carried out.
        `lifeline`: a descriptor; when its other end is closed, it is over. `own`: other descriptors that no command has.
        """
        self._listener = listener
        self._accepts = accepts
        self._lifeline = lifeline
        self._own = own
        self._connections: dict[int, socket.socket] = {}
        """Those whose order has not come, by descriptor."""
        self._workers: dict[int, Worker] = {}
        """All processes, by the descriptor that says that one has ended."""
        self._lines: dict[int, Worker] = {}
        """Those that are commands, by the descriptor on which they say that they are done."""
        self._callers: dict[int, Worker] = {}
        """The same, by that of who waits for them."""
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

    def serve(self, idle_s: float | None = None) -> Assignment | None:
        """
        Fork and reap until nobody asks any more: None. Returns in each child that is to be a command, too.

        `idle_s`: seconds without a command after which it is over.
        """
        while True:
            if self.ending and not self._running:
                return None
            if assigned := self._prepare():
                return assigned
            ready = {fd for fd, _ in self._poll.poll(self._patience_ms(idle_s))}
            if self._deaf:
                self._deaf = False
                self._poll.register(self._listener, select.POLLIN)
            elif not ready:
                return None
            if self._lifeline in ready and self._lifeline_is_over():
                for caller in list(self._callers):
                    self._kill(caller)
                return None
            if assigned := self._heed(ready):
                return assigned

    @property
    def _running(self) -> int:
        """How many commands there are."""
        return sum(worker.caller is not None for worker in self._workers.values())

    def _prepare(self) -> Assignment | None:
        """Have a process that has not been a command; it is forked while another one is. In it, what it is to be."""
        if self.ending or self._running >= self._most or any(each.is_new for each in self._workers.values()):
            return None
        try:
            forked = Worker.fork()
        except OSError:  # nobody is lost: who asks for what nobody can do does it himself
            return None
        if isinstance(forked, Assignment):
            self._leave()
            forked.begin()
            return forked
        self._workers[forked.handle] = forked
        self._poll.register(forked.handle, select.POLLIN)
        return None

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

    def _heed(self, ready: AbstractSet[int]) -> Assignment | None:
        """Of each descriptor, what has happened there; in a child, what it is to be."""
        for line in ready & self._lines.keys():
            self._hear(line)
        for handle in ready & self._workers.keys():
            self._reap(handle)
        for caller in ready & self._callers.keys():
            self._kill(caller)
        for fd in ready & self._connections.keys():
            if assigned := self._prepare():
                return assigned
            self._take(self._connections.pop(fd))
        # The last: what is opened now may have the number of what was closed above.
        if self._listener.fileno() in ready:
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

    def _take(self, caller: socket.socket) -> None:
        """The order of one who is connected."""
        self._poll.unregister(caller)
        try:
            data, fds, _flags, _address = socket.recv_fds(caller, LONGEST, _STREAMS)
        except OSError as error:  # it is of this caller alone
            _complain("an order could not be read", error)
            _hand_back(caller)
            return
        try:
            order = Order.read(data) if len(fds) == _STREAMS else None
        except MalformedOrderError:
            order = None
        taken = (
            order is not None
            and self._running < self._most
            and self._accepts(order, _process(caller))
            and self._told(order, data, caller, fds)
        )
        for fd in fds:
            os.close(fd)
        if not taken:
            _hand_back(caller)

    def _told(self, order: Order, data: bytes, caller: socket.socket, fds: Sequence[int]) -> bool:
        """Whether a process carries out an order."""
        while (worker := self._chosen(order)) is not None:
            if worker.told(order, data, caller, fds):
                for descriptor, register in (
                    (worker.line.fileno(), self._lines),
                    (caller.fileno(), self._callers),
                ):
                    register[descriptor] = worker
                self._poll.register(worker.line, select.POLLIN)
                self._poll.register(caller, select.POLLHUP)
                return True
            worker.dismiss()
        return False

    def _chosen(self, order: Order) -> Worker | None:
        """One that has carried out such orders; else one that has done nothing yet."""
        alike = (worker for worker in self._workers.values() if worker.has_done(order))
        return next(alike, None) or next((worker for worker in self._workers.values() if worker.is_new), None)

    def _leave(self) -> None:
        """In a child: nothing of ours stays open, or is set."""
        if self._ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self._listener.close()
        for descriptor in (*self._own, *([] if self._lifeline is None else [self._lifeline])):
            os.close(descriptor)
        for worker in self._workers.values():
            worker.close()
        for connection in self._connections.values():
            connection.close()

    def _hear(self, line: int) -> None:
        """A process has said that it is done with its command, whose caller it tells, or it has ended."""
        self._poll.unregister(line)
        worker = self._lines.pop(line)
        if worker.is_done():
            self._let_go(worker)
            if sum(each.caller is None and not each.is_new for each in self._workers.values()) > _WAITING:
                worker.dismiss()

    def _let_go(self, worker: Worker) -> None:
        """It has no caller any more."""
        caller, worker.caller = worker.caller, None
        if caller is not None:
            if self._callers.pop(caller.fileno(), None) is not None:
                self._poll.unregister(caller)
            caller.close()

    def _reap(self, handle: int) -> None:
        worker = self._workers.pop(handle)
        self._poll.unregister(handle)
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if self._lines.pop(worker.line.fileno(), None) is not None:
            self._poll.unregister(worker.line)
        if worker.caller is not None:
            with suppress(OSError):  # nobody waits any more
                worker.caller.sendall(b"%d" % status)
        self._let_go(worker)
        worker.close()

    def _kill(self, caller: int) -> None:
        """Nobody waits for it any more."""
        self._poll.unregister(caller)
        _end(self._callers.pop(caller).pid)


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
