"""
Masters of pools that are forked from a process which has the modules of a master and its services.

Two interpreters that load these modules, a master and its zygote, are half of the processor time that a pool takes to
start. A master that is forked forks its zygote as well (see `kettle_services.master.zygote.made`); what the two do from
their first line on is what they always do. There is one such process for each process of tests, itself a zygote, made
when it is first wanted.
"""

import atexit
import importlib
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle import faults
from kettle.execution.processes.ancestry import MARK
from kettle.pool import startup
from kettle.runtime import EXIT_FAILED

_ZYGOTE: Final = "kettle_services.master.zygote"
_START_ORDER: Final = "kettle_services.master.domain.start_order"
_OF_REST: Final = ("kettle.runtime.http_server", "kettle_services.gateway.http_application")
"""What a gateway loads when it is told to serve HTTP: more than half of the processor time that it takes to begin then."""
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy's library makes its threads when it is loaded, and a process with threads cannot be forked."""
_READ_LATE: Final = ("KETTLE_", MARK, "NOTIFY_SOCKET", "PYTEST_", "PATH", "HOME", "PYTHONUNBUFFERED")
"""Beginnings of variables that nobody reads while modules load, but for those that a fork reads again."""

_LIMITS: Final[Sequence[int]] = [
    getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")
]


def launch(environ: Mapping[str, str], cwd: Path, output: int, fds: Sequence[int]) -> startup.MasterProcess:
    """A master: a fork, or one of an interpreter of its own where the two could be told apart."""
    masters = _process()
    if masters.surroundings == _surroundings(environ) and (forked := masters.fork(environ, cwd, output, fds)):
        return forked
    return startup.execute(environ, cwd, output, fds)


class _Forked:
    """A master that was forked."""

    def __init__(self, masters: "_Masters", pid: int, handle: int, status: list[int]) -> None:
        """`status` gets how it has ended."""
        self.pid = pid
        self._masters = masters
        self._handle = handle
        self._status = status

    def __del__(self) -> None:
        os.close(self._handle)

    def opened(self) -> int:
        return os.dup(self._handle)

    def send_signal(self, sig: int, /) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired(startup.MASTER, timeout or 0.0)
        return self._masters.heard_of(self._status)


class _Masters:
    """The process that forks masters."""

    def __init__(self) -> None:
        self.surroundings = _surroundings(os.environ)
        self._messages = importlib.import_module(f"{_ZYGOTE}.messages")
        room = importlib.import_module(f"{_ZYGOTE}.identity").room
        order = importlib.import_module(_START_ORDER)
        roles = dict.fromkeys([*order.DAEMON_LIST, *sorted(order.NEEDS_DATABASE)])
        modules = [startup.MASTER, *(f"kettle_services.{role}" for role in roles), *_OF_REST]
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _ZYGOTE, str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD, **room()},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._one = threading.Lock()
        self._number = 0
        self._statuses: dict[int, list[int]] = {}
        """By process ids, of masters that run, where their exit statuses go: a number may be given to another one after that."""

    def close(self) -> None:
        """End it; masters that still run go on."""
        self._socket.close()
        self._process.wait()

    def fork(self, environ: Mapping[str, str], cwd: Path, output: int, fds: Sequence[int]) -> _Forked | None:
        """None: it cannot be forked."""
        variables = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
        go, told = os.pipe()
        try:
            with self._one:
                self._number += 1
                order = self._messages.Launch(
                    self._number, startup.MASTER, variables, str(cwd), tuple(fds), is_master=True
                )
                with suppress(BrokenPipeError):
                    socket.send_fds(self._socket, [msgspec.msgpack.encode(order)], [output, go, *fds])
                while isinstance(answer := self._heard(), self._messages.Ended):
                    pass
                if not isinstance(answer, self._messages.Launched):
                    return None
                status: list[int] = []
                self._statuses[answer.pid] = status
            handle = os.pidfd_open(answer.pid)  # it waits to be told, so the number is its own
            forked = _Forked(self, answer.pid, handle, status)
            os.write(told, self._messages.GO)
            return forked
        finally:
            os.close(go)
            os.close(told)

    def heard_of(self, status: list[int]) -> int:
        """
        How a process ended that has ended, however often that is asked; a failure, if nobody is there who knows.
        """
        with self._one:
            while not status:
                if self._heard() is None:
                    return EXIT_FAILED
            return status[0]

    def _heard(self) -> Any:
        """What the zygote says next; None if it has ended: masters are executed then."""
        try:
            data = self._socket.recv(self._messages.LONGEST)
        except ConnectionError:
            data = b""
        if not data:
            return None
        answer = msgspec.msgpack.decode(data, type=self._messages.Answer)
        if isinstance(answer, self._messages.Ended):
            self._statuses.pop(answer.pid, []).append(answer.status)
        return answer


def _surroundings(environ: Mapping[str, str]) -> dict[str, object]:
    """What a process takes over from the one that starts it, or reads when its modules load."""
    mask = os.umask(0o077)
    os.umask(mask)
    own = Path("/proc/self")
    return {
        "variables": {
            name: value
            for name, value in environ.items()
            if not name.startswith(_READ_LATE) or name == faults.VARIABLE
        },
        "mask": mask,
        "account": (os.getresuid(), os.getresgid(), os.getgroups()),
        "nice": os.nice(0),
        "limits": [resource.getrlimit(each) for each in _LIMITS],
        "groups": (own / "cgroup").read_text(),
        "namespaces": sorted((each.name, str(each.readlink())) for each in (own / "ns").iterdir()),
        "interpreter": sys.executable,
    }


@cache
def _process() -> _Masters:
    made = _Masters()
    atexit.register(made.close)
    return made
