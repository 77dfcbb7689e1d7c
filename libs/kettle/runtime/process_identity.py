"""
The identity of a process, in a form from which any other process on the same machine can detect its end.

An expired lease shows only that its holder was silent for a long time; the end of the process proves more, and at once.
It can be proven only where the process is visible: same boot of the same kernel, same namespace of process ids.
"""

import asyncio
import os
import socket
from pathlib import Path
from typing import Final

import msgspec

_START_TIME: Final = 19
"""
Place of `starttime` in `/proc/PID/stat`, counted after the command, which may hold anything (proc(5): field 22).
"""


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """One process of one boot of one machine."""

    host: str
    boot: str
    """Identity of the boot."""
    namespace: int
    """Inode of the namespace in which `pid` counts."""
    pid: int
    started: int
    """Clock ticks after the boot: a number that is given again is another process."""
    candidate: int = 0
    """Which one of those that the process has for the same thing; mostly it has one."""


def presence(candidate: int = 0) -> str:
    """Of this process, or of a candidate in it, as text that is the same as long as it lives."""
    pid = os.getpid()
    mine = ProcessIdentity(
        host=socket.gethostname(),
        boot=_boot(),
        namespace=_namespace(),
        pid=pid,
        started=_started(pid),
        candidate=candidate,
    )
    return msgspec.json.encode(mine).decode()


async def gone(text: str) -> None:
    """Return as soon as the process that `presence` described is over; never, where that cannot be seen."""
    try:
        process = msgspec.json.decode(text, type=ProcessIdentity)
    except msgspec.DecodeError:
        process = None
    if process is None or (process.boot, process.namespace) != (_boot(), _namespace()):
        await asyncio.Event().wait()
        return
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except OSError:  # a sandbox that does not let us: nothing can be proven
        await asyncio.Event().wait()
        return
    try:
        if _started(process.pid) in (process.started, 0):
            await _readable(fd)
    finally:
        os.close(fd)


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _settle, ended)
    try:
        await ended
    finally:
        loop.remove_reader(fd)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _started(pid: int) -> int:
    """0: there is no such process any more, or it is another account's and hidden (`hidepid`)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return int(stat.rpartition(")")[2].split()[_START_TIME])
