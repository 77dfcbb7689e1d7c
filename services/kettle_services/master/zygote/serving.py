"""
The zygote of a host's services; this is its own side.

Ten interpreters that load the same modules side by side cost 2.5 s of processor time and 240 MB; one that has loaded
them forks a service in milliseconds, and what a service does not change it shares with the others.

It has one thread, no event loop and no connection but the one to its master, and it loads modules and forks, no more:
what was refused, or took it down, is executed in the usual way instead.  A forked process waits until its master
knows it, so none runs that nobody knows of, and none says that it is ready to somebody who does not know it yet.
"""

import contextlib
import fcntl
import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle import faults
from kettle.retry.deadline import Deadline
from kettle_services.master.zygote.identity import show
from kettle_services.master.zygote.messages import (
    GO,
    LONGEST,
    MOST_FILES,
    OWN_FILES,
    Answer,
    Ended,
    Launch,
    Launched,
    Refused,
)

_GRACE_S: Final = 1.2
"""
For services to end by themselves after their master, which they do within a second (see `kettle.runtime.lifeline`);
then those are killed that are stopped.
"""
_LATER: Final = ("uvloop", "nkeys")
"""What each service loads when it begins, and not with its modules; what is not installed, none does."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Launch).decode


class Zygote:
    """One that serves the other end of `sock`; `modules` are loaded while nothing is asked."""

    def __init__(self, sock: socket.socket, modules: Sequence[str]) -> None:
        self._socket = sock
        self._unloaded = deque(modules)
        self._loaded: dict[str, str] = {}
        """Modules, each with why it cannot be forked; empty: it can."""
        self._children: dict[int, int] = {}
        """Process ids by the descriptors that become readable when they end."""
        self._masters = set[int]()
        """The descriptors of those that are masters."""
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def serve(self) -> Launch | None:
        """
        Load, fork and reap until the master ends.  Returns in each child, too: what it is to become; None: the end.
        """
        gc.disable()
        for module in _LATER:
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(module)
        while True:
            ready = {fd for fd, _ in self._poll.poll(0 if self._unloaded else None)}
            for fd in ready & self._children.keys():
                self._reap(fd)
            if self._socket.fileno() in ready:
                data, files, _flags, _ = socket.recv_fds(self._socket, LONGEST, OWN_FILES + MOST_FILES)
                if not data:
                    break
                launch = _decode(data)
                if self._fork(launch):
                    become(launch, *files)
                    return launch
                for file in files:
                    os.close(file)
            elif self._unloaded:
                self._load(self._unloaded.popleft())
        self._outlive()
        return None

    def _load(self, module: str) -> str:
        """Have the module loaded; why it cannot be forked, or nothing."""
        if module not in self._loaded:
            program = f"{module}.__main__"
            try:
                importlib.import_module(program)
                why = ""
            except Exception as error:  # noqa: BLE001 - the service itself says in its own log what it is
                why = f"it cannot be loaded: {error!r}"
            sys.modules.pop(program, None)  # it is to be run, as `__main__`
            self._loaded[module] = why
        return self._loaded[module]

    def _fork(self, launch: Launch) -> bool:
        """Whether this is the child."""
        while launch.is_master and self._unloaded:
            self._load(self._unloaded.popleft())
        why = self._load(launch.module)
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - names are all we want
        if threads != 1:
            why = why or f"there are {threads} threads"
        if why:
            self._say(Refused(launch.number, why))
            return False
        gc.freeze()  # what is there now is never looked at again, so its pages stay shared
        try:
            pid = os.fork()
        except OSError as error:
            self._say(Refused(launch.number, f"no process can be made: {error.strerror}"))
            return False
        if pid == 0:
            self._leave()
            return True
        handle = os.pidfd_open(pid)
        self._children[handle] = pid
        if launch.is_master:
            self._masters.add(handle)
        self._poll.register(handle, select.POLLIN)
        self._say(Launched(launch.number, pid))
        return False

    def _leave(self) -> None:
        """In a child: nothing of the zygote's stays open."""
        self._socket.close()
        for handle in self._children:
            os.close(handle)

    def _reap(self, handle: int) -> None:
        self._poll.unregister(handle)
        os.close(handle)
        self._masters.discard(handle)
        pid, status = os.waitpid(self._children.pop(handle), 0)
        self._say(Ended(pid, os.waitstatus_to_exitcode(status)))

    def _say(self, answer: Answer) -> None:
        with contextlib.suppress(OSError):  # the master is over: the next look at the socket says so
            self._socket.sendall(_encode(answer))

    def _outlive(self) -> None:
        """The services end with their master; one that is stopped, or hangs in the kernel, is killed."""
        deadline = Deadline(_GRACE_S)
        poll = select.poll()
        left = self._children.keys() - self._masters
        for handle in left:
            poll.register(handle, select.POLLIN)
        while left and not deadline.passed:
            for handle, _ in poll.poll(deadline.left() * 1000):
                poll.unregister(handle)
                left.remove(handle)
        for handle in left:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)


def become(launch: Launch, output: int, go: int, *files: int) -> None:
    """
    In a child, when its master knows of it: be a process as one is that was executed, but for the modules that it has already.
    """
    if os.read(go, len(GO)) != GO:
        os._exit(1)
    os.close(go)
    os.setsid()
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    _renumber(files, launch.fds)
    os.environb.clear()
    os.environb.update(launch.environ)
    show(["-P", "-m", launch.module], launch.environ)
    os.chdir(launch.cwd)
    faults.arm(os.environ)
    gc.enable()


def _renumber(files: Sequence[int], numbers: Sequence[int]) -> None:
    """Give open files these numbers, which others of them may have now."""
    free = max(numbers, default=0) + 1
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, free) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(aside, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
