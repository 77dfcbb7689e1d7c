"""
The asking side of an HTTP/1.1 `Upgrade`: the request, the head of the answer, and then the connection belongs to another protocol.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

_LONGEST_HEAD: Final = 64 * 1024
_LONGEST_REFUSAL: Final = 64 * 1024
_SWITCHED: Final = 101


class Upgrade(asyncio.Protocol):
    """
    Sends a request; `done` is over when the connection was handed over, or failed.

    `onward` makes the protocol that has the connection then. `refused` is given status, head and body of another answer, `broken` a
    sentence about what is none: what they return is raised.
    """

    def __init__(
        self,
        request: bytes,
        *,
        onward: Callable[[], asyncio.Protocol],
        refused: Callable[[int, bytes, bytes], Exception],
        broken: Callable[[str], Exception],
    ) -> None:
        self._request = request
        self._onward = onward
        self._refused = refused
        self._broken = broken
        self._heard = bytearray()
        self._transport: asyncio.Transport | None = None
        self._answer: tuple[int, bytes, bytes] | None = None
        """An answer that is no upgrade, as far as it has come."""
        self.done: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        self._transport = cast("asyncio.Transport", transport)  # that of uvloop is no subclass
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """The head of the answer, and what follows it."""
        self._heard += data
        head, end, rest = bytes(self._heard).partition(b"\r\n\r\n")
        if not end:
            if len(self._heard) > _LONGEST_HEAD:
                self._fail(self._broken("what answers there is no gateway: its answer has no end"))
            return
        words = head.split(b" ", 2)
        status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        if not head.startswith(b"HTTP/1.") or not status:
            self._fail(self._broken("what answers there does not speak HTTP/1.1"))
        elif status == _SWITCHED:
            self._hand_over(rest)
        else:
            self._answer = status, head, rest
            if len(rest) >= min(number_in(head, b"content-length"), _LONGEST_REFUSAL):
                self._fail(self._refused(status, head, rest))

    def _hand_over(self, rest: bytes) -> None:
        if self.done.done():
            return
        assert self._transport is not None, "it has answered"
        onward = self._onward()
        self._transport.set_protocol(onward)
        onward.connection_made(self._transport)
        if rest:
            onward.data_received(rest)
        self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Before it was handed over; what has come of a refusal says more than that it is over."""
        if self._answer is not None:
            self._fail(self._refused(*self._answer))
        else:
            self._fail(self._broken(f"the gateway has closed the connection: {exc or 'it says no more'}"))

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


def number_in(head: bytes, name: bytes) -> int:
    """What a header says that has a number, by its name in lower case; 0: it is not there."""
    for line in head.split(b"\r\n"):
        said, _, value = line.partition(b":")
        if said.strip().lower() == name and value.strip().isdigit():
            return int(value)
    return 0
