"""
Finding and ending the processes of a pool, no matter what started them.

Every process that a master starts carries the pool's mark in its environment, and so do its descendants
(HTCondor marks the descendants of a job in the same way).  A job that has thrown its environment away is still found
by where it works: in a sandbox of the pool.  The mark of starters and their jobs has another value: they outlive a master
that was killed, and its services do not.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.processes.ancestry import MARK, SERVICE
from kettle.retry.deadline import Deadline

_PROC: Final = "/proc"
_PIECE: Final = 1 << 16
"""Bytes of a file in `/proc` at a time; most are shorter."""
_PARENT, _TTY, _STARTED = 1, 4, 19  # fields of /proc/PID/stat, counted from the one after the name


def mark(pool_id: str) -> dict[str, str]:
    """The variable that says: this process, and what it starts, belongs to the pool."""
    return {f"{MARK}{pool_id}": SERVICE}


class Process(msgspec.Struct, frozen=True):
    """A living process of the pool."""

    pid: int
    command: str


def start_ticks(pid: int) -> int:
    """
    When the process started, in clock ticks after the machine; 0 if there is no such process, or it is a zombie.
    """
    fields = _stat(pid)
    return int(fields[_STARTED]) if fields and fields[0] not in {"Z", "X"} else 0


def of_pool(pool_id: str, execute: Path, *, but: frozenset[int] = frozenset()) -> list[Process]:
    """
    The living processes that carry the mark, or work inside `execute` without a terminal; but not those in `but`.
    """
    wanted = next(iter(mark(pool_id))).encode() + b"="
    return [
        Process(pid, _command(pid))
        for pid in _pids()
        if pid not in but and (_marked(pid, wanted) or _works_in(pid, str(execute))) and start_ticks(pid)
    ]


def of_services(pool_id: str, execute: Path, *, but: frozenset[int] = frozenset()) -> list[Process]:
    """The living processes of the pool that are no starters, and no jobs."""
    wanted = b"=".join(part.encode() for pair in mark(pool_id).items() for part in pair)
    return [
        process
        for process in of_pool(pool_id, execute, but=but)
        if _marked(process.pid, wanted) and not _works_in(process.pid, str(execute))
    ]


def end_all(look: Callable[[], list[Process]], *, deadline_s: float = 5.0) -> list[Process]:
    """
    SIGKILL whatever is found of the pool; what could not be ended within the deadline.

    Looks again until nothing is found, because a process may have started another one meanwhile; and once more after the
    deadline: on a machine that was suspended they may have ended since.
    """
    deadline, late = Deadline(deadline_s), False
    while found := look():
        ended = [_kill(process.pid, start_ticks(process.pid)) for process in found]
        if late:
            return found
        late = deadline.passed
        if not all(ended):
            time.sleep(0.01)
    return []


def end_orphans(pool_id: str, execute: Path, *, of: int) -> list[Process]:
    """
    SIGKILL the processes of the pool that do not descend from the process `of`: their parents have ended.

    Returns them.  What they start meanwhile is found by the next look, until none is found.
    """
    ended: dict[int, Process] = {}
    while found := [
        process
        for process in of_pool(pool_id, execute, but=frozenset({of}))
        if process.pid not in ended and of not in _ancestors(process.pid)
    ]:
        for process in found:
            ended[process.pid] = process
            _kill(process.pid, start_ticks(process.pid))
    return list(ended.values())


def signal_service(pid: int, number: int, pool_id: str, *, master: int) -> bool:
    """
    Send a signal to a service or server of the pool, and not to a process that was given its number later; whether it was there.

    Services carry the mark; servers, which carry nothing of ours, descend from the process `master`.

    Raises:
        PermissionError: it is of another account.
    """
    try:
        handle = os.pidfd_open(pid)
    except (ProcessLookupError, ValueError):
        return False
    try:
        variables = Path(_PROC, str(pid), "environ").read_bytes().split(b"\0")
        wanted = b"=".join(part.encode() for pair in mark(pool_id).items() for part in pair)
        if wanted not in variables and master not in _ancestors(pid):
            return False
        signal.pidfd_send_signal(handle, number)
    except (ProcessLookupError, FileNotFoundError):
        return False
    finally:
        os.close(handle)
    return True


def wait_gone(handle: int, deadline_s: float | None) -> bool:
    """Wait until the process behind a process descriptor has ended, None: without limit; whether it has."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(None if deadline_s is None else max(0.0, deadline_s) * 1000))


def _kill(pid: int, started: int) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        if start_ticks(pid) != started:
            return False  # another process by now: whether it is ours, the next look says
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        return wait_gone(handle, 0.5)
    finally:
        os.close(handle)


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit())


def _read(pid: int, name: str) -> bytes:
    """
    A file of a process in `/proc`, nothing if it cannot be read: for each process of the machine, so without what a
    file object does besides.
    """
    try:
        file = os.open(f"{_PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        found = b""
        while piece := os.read(file, _PIECE):
            found += piece
    except OSError:
        return b""
    finally:
        os.close(file)
    return found


def _stat(pid: int) -> list[str]:
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _ancestors(pid: int) -> list[int]:
    """The parents, from the nearest; one that has ended takes its own parents with it."""
    found: list[int] = []
    while pid > 1 and (fields := _stat(pid)):
        pid = int(fields[_PARENT])
        found.append(pid)
    return found


def _marked(pid: int, wanted: bytes) -> bool:
    return b"\0" + wanted in b"\0" + _read(pid, "environ")


def _works_in(pid: int, execute: str) -> bool:
    """A person who works in a sandbox has a terminal; a job has none."""
    try:
        place = os.readlink(f"{_PROC}/{pid}/cwd")  # noqa: PTH115 - one for each process of the machine
    except OSError:
        return False
    if place != execute and not place.startswith(f"{execute}/"):
        return False
    fields = _stat(pid)
    return bool(fields) and fields[_TTY] == "0"


def _command(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
