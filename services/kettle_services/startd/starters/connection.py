"""The startd's end of the line to one starter: non-blocking, without the weight of a transport per job."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.execution.attempts.messages import (
    MessageReader,
    ToStartd,
    ToStarter,
    decode_to_startd,
    frame,
    receive,
)

_log: Final = logging.getLogger(__name__)
_MUCH: Final = 1024 * 1024
"""Bytes that the other end has not taken; orders are sent all the same."""


class StarterConnection:
    """`heard` gets each message, `lost` is called once when the other end is gone."""

    def __init__(
        self,
        sock: socket.socket,
        heard: Callable[["StarterConnection", ToStartd], None],
        lost: Callable[["StarterConnection"], None],
    ) -> None:
        sock.setblocking(False)
        self._socket: socket.socket | None = sock
        self._loop = asyncio.get_running_loop()
        self._heard = heard
        self._lost = lost
        self._frames = MessageReader()
        self._unsent = bytearray()
        self._loop.add_reader(sock, self._read)

    def redirect(
        self,
        heard: Callable[["StarterConnection", ToStartd], None],
        lost: Callable[["StarterConnection"], None],
    ) -> None:
        """From now on others listen."""
        self._heard, self._lost = heard, lost

    @property
    def clogged(self) -> bool:
        """Whether the other end has so much to read that it should not be asked anything."""
        return len(self._unsent) > _MUCH

    def send(self, message: ToStarter) -> None:
        """Send a message; what the socket does not take now follows when it can."""
        if self._socket is None:
            return
        first = not self._unsent
        self._unsent += frame(message)
        if first:
            self._write()
            if self._unsent:
                self._loop.add_writer(self._socket, self._write)

    def close(self) -> None:
        """Hang up; `lost` is not called."""
        if (sock := self._let_go()) is not None:
            sock.close()

    def detach(self) -> socket.socket | None:
        """The line itself, for its next user; None if it is broken, or not all that was said went out."""
        whole = not self._unsent
        sock = self._let_go()
        if sock is not None and not whole:
            sock.close()
            return None
        return sock

    def _let_go(self) -> socket.socket | None:
        sock, self._socket = self._socket, None
        if sock is not None:
            self._loop.remove_reader(sock)
            self._loop.remove_writer(sock)
        self._unsent.clear()
        return sock

    def _write(self) -> None:
        if self._socket is None:
            return
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._unsent)  # the reader sees the end, and says so
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        if self._socket is None:
            return
        data = receive(self._socket)
        if data is None:
            return
        if not data:
            self.close()
            self._lost(self)
            return
        for body in self._frames.feed(data):
            try:
                message = decode_to_startd(body)
            except (
                msgspec.ValidationError
            ) as error:  # a word of a starter that is older, or younger, than we are
                _log.warning("not understood", extra={"cause": str(error)})
            else:
                self._heard(self, message)
