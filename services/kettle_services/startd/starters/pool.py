"""
Where starters come from: a zygote that is always there, and a socket at which starters of a former startd report.
"""

import asyncio
import errno
import logging
import os
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from kettle.execution.attempts.messages import SOCKET
from kettle.execution.processes.zygote_client import Zygote
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits, slept
from kettle.runtime import open_file_limit

_log: Final = logging.getLogger(__name__)
_BACKOFF: Final = Backoff(first=0.05, longest=5.0, spread=0.0)
_QUIET_S: Final = 10.0
_ROOM_PAUSE_S: Final = 1.0
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_REST_S: Final = 5.0
"""How long a starter without a job is kept: its memory is the price of the next job's quick start."""


class StarterPool(Protocol):
    """Where a startd's starters come from."""

    def starter(self) -> socket.socket | None:
        """
        A starter that waits for its job, or will be made, as our end of the line to it; None if none can be had now.
        """
        ...

    def rest(self, sock: socket.socket) -> None:
        """Keep a starter that waits for another job, for a while."""
        ...

    def listen(self, arrived: Callable[[socket.socket], None]) -> None:
        """Have `arrived` called with the line of each starter that looks for a startd."""
        ...

    async def keep(self) -> None:
        """Keep starters ready; never returns."""
        ...

    def close(self) -> None:
        """No more starters; those that live go on."""
        ...


class ZygoteStarterPool:
    """
    Forks starters.  A zygote that dies is replaced, at once the first time and later with growing pauses.
    """

    def __init__(self, state: Path, execute: Path, *, lifeline_fd: int | None) -> None:
        self._state = state
        self._execute = execute
        self._lifeline_fd = lifeline_fd
        self._loop = asyncio.get_running_loop()
        self._listener: socket.socket | None = None
        self._again: asyncio.TimerHandle | None = None
        self._zygote: Zygote | None = None
        self._died = asyncio.Event()
        self._unborn: deque[socket.socket] = deque()
        """Ends of lines for starters that the zygote has no time to fork yet."""
        self._resting: deque[tuple[socket.socket, float]] = deque()
        """Starters that wait for a job, and until when; who came last is taken first."""
        self._dismissal: asyncio.TimerHandle | None = None
        self._spawn()

    @property
    def pid(self) -> int:
        """The zygote's process id; 0 while there is none."""
        return self._zygote.pid if self._zygote is not None else 0

    def starter(self) -> socket.socket | None:
        """A starter that rests, or a new one, as our end of the line to it; None if none can be had now."""
        while self._resting:
            sock, _ = self._resting.pop()
            if _is_quiet(sock):
                return sock
            sock.close()  # it ended, or says what nobody asked it
        return self._fork()

    def rest(self, sock: socket.socket) -> None:
        """Keep a starter that waits for another job, for a while."""
        self._resting.append((sock, self._loop.time() + _REST_S))
        if self._dismissal is None:
            self._dismissal = self._loop.call_later(_REST_S, self._dismiss)

    def _dismiss(self) -> None:
        """Hang up on those that have rested long enough; they end."""
        now = self._loop.time()
        while self._resting and self._resting[0][1] <= now:
            self._resting.popleft()[0].close()
        self._dismissal = self._loop.call_at(self._resting[0][1], self._dismiss) if self._resting else None

    def _fork(self) -> socket.socket | None:
        """A line whose other end the zygote gets in its turn.  If it dies before, the line breaks."""
        if self._zygote is None:
            return None
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:
            _log.warning("no line to a starter could be made", extra={"cause": str(error)})
            return None
        self._unborn.append(theirs)
        if len(self._unborn) == 1:  # else it is asked when it can take more
            self._ask(self._zygote)
        return ours

    def _ask(self, zygote: Zygote) -> None:
        """
        Have as many starters forked as the zygote takes now; a thousand jobs that start at once fill its socket.
        """
        while self._unborn:
            try:
                zygote.request(self._unborn[0])
            except BlockingIOError:
                self._loop.add_writer(zygote.socket, self._ask, zygote)
                return
            except OSError as error:
                _log.warning("no starter could be asked for", extra={"cause": str(error)})
            self._unborn.popleft().close()
        self._loop.remove_writer(zygote.socket)

    def listen(self, arrived: Callable[[socket.socket], None]) -> None:
        """Have `arrived` called with the line of each starter that looks for a startd."""
        path = self._state / SOCKET
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        directory = os.open(self._state, os.O_PATH | os.O_CLOEXEC)
        try:
            listener.bind(
                f"/proc/self/fd/{directory}/{SOCKET}"
            )  # the path itself may be too long for a socket
        except OSError as error:
            listener.close()
            if error.errno not in _FULL:
                raise
            _log.warning("no room for our socket", extra={"cause": str(error)})
            self._again = self._loop.call_later(_ROOM_PAUSE_S, self.listen, arrived)
            return
        finally:
            os.close(directory)
        path.chmod(0o600)
        listener.listen(1024)
        listener.setblocking(False)
        self._listener = listener

        def accept() -> None:
            with suppress(BlockingIOError, ConnectionError):
                while True:
                    arrived(listener.accept()[0])

        self._loop.add_reader(listener, accept)

    async def keep(self) -> None:
        """Keep a zygote running; never returns."""
        waits = Waits(_BACKOFF)
        while True:
            await self._died.wait()
            self._died.clear()
            pause = waits.delay()
            _log.warning("the zygote died: its starters go on, a new one is made", extra={"pause_s": pause})
            await asyncio.sleep(pause)
            self._spawn()
            if await slept(_QUIET_S, wake=self._died):
                waits.reset()

    def close(self) -> None:
        """No more starters; those that live go on."""
        if self._again is not None:
            self._again.cancel()
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            (self._state / SOCKET).unlink(missing_ok=True)
            self._listener = None
        if self._dismissal is not None:
            self._dismissal.cancel()
            self._dismissal = None
        while self._resting:
            self._resting.pop()[0].close()
        self._drop()

    def _spawn(self) -> None:
        self._zygote = Zygote(str(self._execute), lifeline_fd=self._lifeline_fd)
        open_file_limit.restore(self._zygote.pid)  # starters and their jobs need no more than we were given
        self._loop.add_reader(self._zygote.socket, self._ended)

    def _ended(self) -> None:
        """The zygote says nothing while it lives: a readable socket is its end."""
        self._drop()
        self._died.set()

    def _drop(self) -> None:
        if self._zygote is not None:
            self._loop.remove_reader(self._zygote.socket)
            self._loop.remove_writer(self._zygote.socket)
            self._zygote.close()
            self._zygote = None
        while self._unborn:
            self._unborn.popleft().close()


def _is_quiet(sock: socket.socket) -> bool:
    """Whether the other end is there and says nothing."""
    try:
        sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
