"""
The process that forks commands: it has one thread and no event loop, and ends with the process that has started it.
"""

import gc
import importlib
import os
import pkgutil
import select
import signal
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

LONGEST: Final = 1 << 17
"""Bytes of a message: an environment and the words of a command."""


class Order(msgspec.Struct, frozen=True):
    """
    Be `python -P words`; the packet carries the standard streams, and the socket on which the end is told.

    When the other end of that socket is closed, the command is killed.
    """

    words: Sequence[bytes]
    environ: Mapping[bytes, bytes]
    cwd: bytes


class Ended(msgspec.Struct, frozen=True):
    """The exit status, or minus the number of the signal that killed it."""

    status: int


_order: Final = msgspec.msgpack.Decoder(Order).decode
_encode: Final = msgspec.msgpack.Encoder().encode


def load(packages: Iterable[str]) -> None:
    """Load all modules of the packages, but the programs among them."""
    for name in packages:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith(".__main__"):
                importlib.import_module(found.name)


class Forks:
    """The commands that run."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._running: dict[int, tuple[int, socket.socket]] = {}
        """By the descriptor that says that it has ended: its process id, and who waits for it."""
        self._waiting: dict[int, int] = {}
        """The descriptors of `_running`, by those of who waits."""
        self._poll = select.poll()
        self._poll.register(orders, select.POLLIN)

    def serve(self) -> Order | None:
        """
        Fork and reap until nobody can give orders any more: None. Returns in each child, too: what it is to be.
        """
        orders = self._orders.fileno()
        while True:
            ready = {fd for fd, _ in self._poll.poll()}
            for handle in ready & self._running.keys():
                self._reap(handle)
            for waiting in ready & self._waiting.keys():
                self._kill(waiting)
            if orders in ready:  # the last: what is opened now may have the number of what was closed above
                data, fds, _flags, _address = socket.recv_fds(self._orders, LONGEST, 4)
                if not data:
                    for waiting in list(self._waiting):
                        self._kill(waiting)
                    return None
                if order := self._fork(_order(data), fds):
                    return order

    def _fork(self, order: Order, fds: Sequence[int]) -> Order | None:
        *streams, told = fds
        pid = os.fork()
        if pid == 0:
            self._leave()
            os.close(told)
            _become(order, streams)
            return order
        for stream in streams:
            os.close(stream)
        handle = os.pidfd_open(pid)
        self._running[handle] = pid, socket.socket(fileno=told)
        self._waiting[told] = handle
        self._poll.register(handle, select.POLLIN)
        self._poll.register(told, select.POLLHUP)
        return None

    def _leave(self) -> None:
        """In a child: nothing of ours stays open."""
        self._orders.close()
        for handle, (_, waiting) in self._running.items():
            os.close(handle)
            waiting.close()

    def _reap(self, handle: int) -> None:
        pid, waiting = self._running.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        if self._waiting.pop(waiting.fileno(), None) is not None:
            self._poll.unregister(waiting)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with waiting, suppress(OSError):  # nobody waits any more
            waiting.sendall(_encode(Ended(status)))

    def _kill(self, waiting: int) -> None:
        """Nobody waits for it any more: it ends, with what it has started."""
        pid, _ = self._running[self._waiting.pop(waiting)]
        self._poll.unregister(waiting)
        for kill in (os.kill, os.killpg):
            with suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)


def _become(order: Order, streams: Sequence[int]) -> None:
    """In a child: be a process as one is that was executed, but for the modules that it has already."""
    os.setsid()
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    os.environb.clear()
    os.environb.update(order.environ)
    time.tzset()
    os.chdir(order.cwd)
    gc.enable()
