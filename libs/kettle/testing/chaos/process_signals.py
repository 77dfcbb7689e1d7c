"""Signals to the processes of a pool, and what they hold open."""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from kettle.pool import processes

_PROC = Path("/proc")
_PARENT = 1  # field of /proc/PID/stat, counted from the one after the name


class Handle(msgspec.Struct, frozen=True):
    """One process, and not another one that was given its number later."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Handle":
        """The process that has this number now."""
        return cls(pid, processes.start_ticks(pid))

    def send(self, number: signal.Signals) -> bool:
        """Send a signal if the process is still there; whether it was."""
        if not self.pid or not self.started or processes.start_ticks(self.pid) != self.started:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
            return True
        return False


def with_children(pid: int) -> list[Handle]:
    """A process and its children: a server of several processes as a whole."""
    return [Handle.of(each) for each in (pid, *_children(pid))]


def starters(pool_id: str, execute: Path) -> list[Handle]:
    """The starters that live now, in the order of their numbers."""
    return _running("kettle_services.starter", pool_id, execute)


def service_zygotes(pool_id: str, execute: Path) -> list[Handle]:
    """The processes from which a master's services are forked."""
    return _running("kettle_services.master.zygote", pool_id, execute)


def _running(module: str, pool_id: str, execute: Path) -> list[Handle]:
    found = processes.of_pool(pool_id, execute)
    return [
        Handle.of(each.pid)
        for each in sorted(found, key=lambda p: p.pid)
        if f"-m {module} " in f"{each.command} "
    ]


def open_files(pid: int) -> int:
    """How many files and sockets a process has open; 0 if it is gone."""
    try:
        return sum(1 for _ in (_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return 0


def memory_kib(pid: int) -> int:
    """The resident memory of a process, KiB; 0 if it is gone."""
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def _children(pid: int) -> Iterable[int]:
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (Path(entry.path) / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if int(fields[_PARENT]) == pid:
                    yield int(entry.name)
