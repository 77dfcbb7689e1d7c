"""
One server process: started so that it dies with us, watched, stopped for certain.

It is started through `setpriv --pdeathsig`, so the kernel ends it when the thread that started it ends: start servers
from a thread that lives as long as they should, in practice the main one.  It has its own session, so that Ctrl-C
stops the services first and the servers after them.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import select
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.embedded import binaries
from kettle.embedded.errors import AlreadySupervisedError
from kettle.embedded.server_account import Account

_LOG_LIMIT: Final = 8 << 20
_TAIL: Final = 2000

_log: Final = logging.getLogger(__name__)


class Stop(msgspec.Struct, frozen=True):
    """
    How to ask a server to end: signals, each with the seconds that it is given before the next, and then SIGKILL.
    """

    steps: tuple[tuple[signal.Signals, float], ...]

    @property
    def death_signal(self) -> str:
        """The signal that the kernel sends when this process ends."""
        return self.steps[0][0].name.removeprefix("SIG")


class ServerProcess:
    """A running server, one of our children."""

    def __init__(self, process: asyncio.subprocess.Process, stop: Stop) -> None:
        self._process = process
        self._stop = stop

    @classmethod
    async def spawn(
        cls,
        argv: Sequence[str],
        *,
        account: Account,
        stop: Stop,
        environ: Mapping[str, str],
        cwd: Path,
        log: Path,
        fds: Sequence[int] = (),
    ) -> "ServerProcess":
        """Start a server; `fds` stay open in it under the same numbers."""
        prefix = [binaries.setpriv(), *account.options(), f"--pdeathsig={stop.death_signal}", "--"]
        output = _open_log(log)
        try:
            process = await asyncio.create_subprocess_exec(
                *prefix,
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environ),
                cwd=cwd,
                pass_fds=tuple(fds),
                start_new_session=True,
            )
        finally:
            os.close(output)
        return cls(process, stop)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait for its end; the exit status, or minus the number of the signal that killed it."""
        return await self._process.wait()

    async def stop(self) -> int:
        """End it: politely, then less so, then for certain."""
        for number, seconds in self._stop.steps:
            self.signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await self.wait()
            _log.warning("does not stop", extra={"pid": self.pid, "sent": number.name, "waited_s": seconds})
        self.signal(signal.SIGKILL)
        return await self.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it is still there."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


class DirectoryLock:
    """
    A lock whose holder is the only supervisor of the server in the directory; the kernel releases it when the holder
    dies.
    """

    def __init__(self, directory: Path) -> None:
        """
        Take the lock.

        Raises:
            AlreadySupervisedError: another process has it.
        """
        self._fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise AlreadySupervisedError(directory) from None

    def release(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


async def end_orphan(pid_file: Path, cwd: Path, stop: Stop) -> bool:
    """
    End the server that an earlier supervisor left behind, if one did; whether there was one.

    It is ended rather than adopted: it would not die with us, and a restart takes some tens of milliseconds.
    A process is only taken for it if it also works in the server's directory, because process ids are used again.
    """
    pid, handle = _find_orphan(pid_file, cwd)
    if handle < 0:
        return False
    try:
        for number, seconds in (*stop.steps, (signal.SIGKILL, 10.0)):
            signal.pidfd_send_signal(handle, number)
            if await _ended(handle, seconds):
                break
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
    _log.info("ended the server of an earlier supervisor", extra={"pid": pid})
    return True


def _find_orphan(pid_file: Path, cwd: Path) -> tuple[int, int]:
    """The process id and a descriptor of the process; the descriptor is -1 if there is none."""
    try:
        pid = int(pid_file.read_text(encoding="ascii", errors="replace").split("\n", 1)[0])
        handle = os.pidfd_open(pid)
    except (OSError, ValueError, OverflowError):
        return 0, -1
    try:
        ours = Path(f"/proc/{pid}/cwd").samefile(cwd)
    except OSError:
        ours = False
    if ours:
        return pid, handle
    os.close(handle)
    return 0, -1


async def _ended(handle: int, seconds: float) -> bool:
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(handle, gone.set)  # a process descriptor is readable when the process has ended
    try:
        async with asyncio.timeout(seconds):
            await gone.wait()
    except TimeoutError:
        return bool(select.select([handle], [], [], 0)[0])
    finally:
        loop.remove_reader(handle)
    return True


def _open_log(log: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > _LOG_LIMIT:
            log.replace(log.with_suffix(".log.1"))
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def log_size(log: Path) -> int:
    """Where in its log a server goes on writing."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def log_tail(log: Path, since: int = 0) -> str:
    """The last lines of a server's log, at most those after the position `since`."""
    try:
        return log.read_bytes()[since:][-_TAIL:].decode(errors="replace").strip()
    except OSError:
        return ""
