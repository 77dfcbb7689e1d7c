"""
The process beside the job that keeps its tunnel to the gateway.

It is forked, as other helpers are, and has the job's account and none of its control group: what the job may use is the job's, and it
goes on when the job is suspended.  It ends when the starter closes its orders, or has died.
"""

import asyncio
import ctypes
import fcntl
import importlib
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from kettle.execution.attempts.job_spec import Account

if TYPE_CHECKING:
    from kettle_services.starter.published.socket_maker import SocketMaker

_FIRST_FREE: Final = 3
_ABOVE: Final = 64
_SET_DEATH_SIGNAL: Final = 1
_LONGEST_LINE: Final = 256 * 1024


class TunnelHelper:
    """The process; `told` is readable when it says something, and when it has ended."""

    def __init__(self, account: Account | None, cgroup: str, *, own_network: bool = False) -> None:
        """
        `cgroup`: the directory of the job's control group; empty: it has none. `own_network`: its container may have one, which the job's
        account may not enter. Raises OSError: there can be no process.
        """
        orders, self._orders = os.pipe()
        self.told, said = os.pipe()
        starter = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            for fd in (orders, self._orders, self.told, said):
                os.close(fd)
            raise
        if self.pid == 0:
            _begin(account, cgroup, starter, orders, said, own_network=own_network)
        self._handle = os.pidfd_open(self.pid)
        os.close(orders)
        os.close(said)
        os.set_blocking(self._orders, False)
        os.set_blocking(self.told, False)
        self._heard = bytearray()

    def order(self, orders: msgspec.Struct) -> bool:
        """Tell it what holds from now on; whether it can be told."""
        line = msgspec.json.encode(orders) + b"\n"
        try:
            return os.write(self._orders, line) == len(line)
        except OSError:  # it has ended, or reads nothing
            return False

    def hear(self) -> list[bytes] | None:
        """The lines that it has said; None: it has ended."""
        try:
            data = os.read(self.told, 1 << 16)
        except BlockingIOError:
            return []
        if not data or len(self._heard) > _LONGEST_LINE:
            return None
        *lines, rest = (bytes(self._heard) + data).split(b"\n")
        self._heard = bytearray(rest)
        return lines

    def end(self) -> None:
        """End it, if it has not ended; somebody may have waited for it already."""
        os.close(self._orders)
        os.close(self.told)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        os.close(self._handle)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


# -- in the process ----------------------------------------------------------------------------------------------------


def _begin(
    account: Account | None, cgroup: str, starter: int, orders: int, said: int, *, own_network: bool
) -> NoReturn:
    status = 1
    try:
        _load()
        _keep(orders, said)
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)  # only the starter ends it
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        maker = _maker(account, cgroup, starter) if account is not None and own_network else None
        if account is not None:
            os.setresgid(account.gid, account.gid, account.gid)
            os.setresuid(account.uid, account.uid, account.uid)
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == starter:
            asyncio.run(_keep_tunnel(cgroup, starter, maker))
        status = 0
    except Exception as error:  # noqa: BLE001 - the runner of this process
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)


def _load() -> None:
    """As somebody else we could not read them any more."""
    for module in (
        "concurrent.futures.thread",
        "encodings.ascii",
        "encodings.idna",
        "encodings.latin_1",
        "kettle.published.freed_memory",
        "kettle.published.job_side",
        "kettle_services.starter.published.ports",
        "ssl",
    ):
        importlib.import_module(module)


def _keep(orders: int, said: int) -> None:
    """Of all descriptors these two, as the first free ones: the starter's line must break when it dies."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, _ABOVE) for fd in (orders, said)]
    for at, fd in enumerate(high):
        os.dup2(fd, _FIRST_FREE + at)
    os.closerange(_FIRST_FREE + len(high), os.sysconf("SC_OPEN_MAX"))


def _maker(account: Account, cgroup: str, starter: int) -> "SocketMaker":
    from kettle_services.starter.published.ports import job_processes
    from kettle_services.starter.published.socket_maker import SocketMaker

    helper = os.getpid()
    return SocketMaker(account, lambda: job_processes(cgroup, starter, helper))


async def _keep_tunnel(cgroup: str, starter: int, maker: "SocketMaker | None") -> None:
    """Until the orders end."""
    from kettle.published.freed_memory import keep_freed_memory
    from kettle.published.job_side import JobSide, Orders, Said
    from kettle_services.starter.published.ports import JobPorts

    keep_freed_memory()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    pipe = os.fdopen(_FIRST_FREE, "rb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)

    def say(said: Said) -> None:
        os.write(_FIRST_FREE + 1, msgspec.json.encode(said) + b"\n")

    side = JobSide(JobPorts(cgroup, starter, maker).connect, say)
    running = loop.create_task(side.run(), name="tunnel")
    running.add_done_callback(lambda _: reader.feed_eof())
    while line := await reader.readline():
        side.order(msgspec.json.decode(line, type=Orders))
    if running.done():
        running.result()
    running.cancel()
