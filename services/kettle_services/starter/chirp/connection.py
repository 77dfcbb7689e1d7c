"""One connection in the chirp protocol: bytes in and out of a socket that never keeps the starter waiting."""

import select
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kettle.execution.attempts.job_spec import ChirpPolicy
from kettle.execution.system.linux import boottime
from kettle_services.starter.chirp.conversation import Delayed, Dialogue
from kettle_services.starter.chirp.syntax import LONGEST_LINE
from kettle_services.starter.chirp.waits import (
    Asked,
    AskSubmitSide,
    HangUpError,
    Pause,
    ReadBytes,
    ReadLine,
    Wait,
    WaitForRoom,
)
from kettle_wire.commands.chirp import PIECE, Chirped

if TYPE_CHECKING:
    from kettle_services.starter.chirp.publishing import Publishing

_READ: Final = 64 * 1024
_MUCH: Final = 2 * PIECE
"""Bytes that the other side has not read: nothing more is sent before it reads them."""


class Connection:
    """Asks `ask` what the submit side is to answer; one question at a time."""

    def __init__(
        self,
        sock: socket.socket,
        cookie: str,
        policy: ChirpPolicy,
        delayed: Delayed,
        ask: Callable[["Connection", Asked], object],
        publishing: "Publishing | None" = None,
    ) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._ask = ask
        self._heard = bytearray()
        self._unsaid = bytearray()
        self._dialogue = Dialogue(cookie, policy, delayed, self._unsaid.extend, publishing)
        self._talk = self._dialogue.talk()
        self._wait: Wait | None = None
        self.pauses_until = float("inf")
        """When it goes on that waits for nothing but time, on `boottime`."""
        self._ended = False
        self.since: Final = boottime()
        self.over = False
        """Whether it is to be closed."""
        self._advance(None)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._socket.fileno()

    @property
    def trusted(self) -> bool:
        """Whether it has shown the cookie."""
        return self._dialogue.trusted

    @property
    def open_files(self) -> set[int]:
        """What it has opened and not closed."""
        return self._dialogue.open_files

    @property
    def sessions(self) -> set[tuple[int, str]]:
        """What it has had started on other nodes that has not ended."""
        return self._dialogue.sessions

    @property
    def events(self) -> int:
        """What a poll is to watch for."""
        return (select.POLLIN if self._listens else 0) | (select.POLLOUT if self._unsaid else 0)

    @property
    def _listens(self) -> bool:
        """
        Whether requests are read: a client that does not read its answers is not asked for more requests.
        """
        if self._dialogue.sessions:
            return True  # nothing is expected but the end of the connection, with which the program is ended
        return isinstance(self._wait, ReadLine | ReadBytes) and len(self._unsaid) < _MUCH

    def go_on(self) -> None:
        """Read and write as much as is possible now."""
        try:
            if self._unsaid:
                del self._unsaid[: self._socket.send(self._unsaid, socket.MSG_NOSIGNAL)]
            listens = self._listens
            data = self._socket.recv(_READ, 0 if listens else socket.MSG_PEEK)
            if not data:
                self.over = True
                return
            if listens:
                self._heard += data
                if self._dialogue.sessions and len(self._heard) > LONGEST_LINE:
                    self.over = True
                    return
        except BlockingIOError:
            pass  # there is nothing, or no room
        except OSError:
            self.over = True
            return
        self._pump()

    def answered(self, answer: Chirped) -> None:
        """The submit side has."""
        if isinstance(self._wait, AskSubmitSide):
            self._advance(answer)
            self._pump()

    def go_on_in_time(self, now: float) -> None:
        """Its pause is over, if it is."""
        if now >= self.pauses_until:
            self.pauses_until = float("inf")
            self._advance(None)
            self._pump()

    def close(self) -> None:
        """Hang up."""
        self.over = True
        self._talk.close()
        self._socket.close()

    def _pump(self) -> None:
        """Give the dialogue the input that it waits for, as far as it has arrived."""
        while not self.over and (found := self._found()) is not None:
            self._advance(found[0])
        if self._ended and not self._unsaid:
            self.over = True

    def _found(self) -> tuple[Any] | None:
        match self._wait:
            case ReadLine() if len(self._unsaid) < _MUCH:
                return self._line()
            case ReadBytes(count=count) if len(self._heard) >= count:
                data = bytes(self._heard[:count])
                del self._heard[:count]
                return (data,)
            case WaitForRoom() if len(self._unsaid) < _MUCH:
                return (None,)
            case _:
                return None

    def _line(self) -> tuple[str | None] | None:
        end = self._heard.find(b"\n", 0, LONGEST_LINE + 1)
        if end < 0:
            return (None,) if len(self._heard) > LONGEST_LINE else None
        line = self._heard[:end].decode(errors="replace")
        del self._heard[: end + 1]
        return (line,)

    def _advance(self, found: Any) -> None:
        try:
            self._wait = self._talk.send(found)
        except StopIteration:
            self._wait, self._ended = None, True
        except HangUpError:
            self.over = True
        else:
            if isinstance(self._wait, AskSubmitSide):
                self._ask(self, self._wait.wish)
            elif isinstance(self._wait, Pause):
                self.pauses_until = boottime() + self._wait.seconds
