"""The line to the startd: it may break at any time, and the job goes on."""

import contextlib
import os
import select
import socket
import sys
from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

from kettle.execution.attempts.messages import (
    SOCKET,
    Hello,
    MessageReader,
    RunJob,
    ToStartd,
    ToStarter,
    decode_to_starter,
    frame,
    receive,
)
from kettle.execution.system.linux import boottime
from kettle.retry.backoff import Backoff

_BACKOFF: Final = Backoff(first=0.05, longest=2.0, spread=0.0)
_SEND_TIMEOUT_S: Final = 10.0


class StartdConnection:
    """
    A connection that is made again, with back-off, after it broke.  Messages during the break are not kept: the
    registration on the next connection has the current state, and a final report is on disk.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket: socket.socket | None = sock
        self._frames = MessageReader()
        self.heard: deque[ToStarter] = deque()
        """What has arrived, and was not taken yet."""
        self._state = -1
        self._failures = 0
        self.retry_at: float | None = None
        """When to try again, on `boottime`; None while connected."""

    def order(self, lifeline_fd: int) -> RunJob | None:
        """
        Wait for the request to run a job; None if it never comes.  Earlier messages are about a job that is over.
        """
        poll = select.poll()
        self.register(poll)
        if lifeline_fd >= 0:
            poll.register(lifeline_fd, select.POLLIN)
        while self._socket is not None:
            ready = {fd for fd, _ in poll.poll(0 if self.heard else None)}
            if lifeline_fd in ready:
                return None
            for message in self.receive():
                if isinstance(message, RunJob):
                    return message
        return None

    def settle(self, state: str) -> None:
        """
        From now on `state` is where a startd is found again.  By descriptor: a path may be too long for a socket.
        """
        if self._state >= 0:
            os.close(self._state)
        self._state = os.open(state, os.O_PATH | os.O_CLOEXEC)
        if self._socket is not None:
            self._socket.settimeout(_SEND_TIMEOUT_S)

    def fileno(self) -> int:
        """The descriptor to be polled; -1 while there is none."""
        return -1 if self._socket is None else self._socket.fileno()

    def send(self, message: ToStartd) -> bool:
        """Send to the startd; returns whether there was one."""
        if self._socket is None:
            return False
        try:
            self._socket.sendall(frame(message), socket.MSG_NOSIGNAL)
        except OSError:
            self._lose()
            return False
        return True

    def receive(self) -> Iterator[ToStarter]:
        """Received messages; called when there is something in `heard`, or `fileno` is readable."""
        if not self.heard:
            self._read()
        while self.heard:
            yield self.heard.popleft()

    def _read(self) -> None:
        if self._socket is None:
            return
        data = receive(self._socket)
        if not data:
            self._lose()
            return
        for body in self._frames.feed(data):
            try:
                message = decode_to_starter(body)
            except msgspec.ValidationError as error:
                # A message of a newer startd: it must not harm the job that its starter is older.
                sys.excepthook(type(error), error, error.__traceback__)
            else:
                self.heard.append(message)

    def reconnect(self, hello: Hello) -> None:
        """Try to find a startd, if it is time."""
        if self.retry_at is None or boottime() < self.retry_at:
            return
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(_SEND_TIMEOUT_S)
        try:
            sock.connect(f"/proc/self/fd/{self._state}/{SOCKET}")
        except OSError:
            sock.close()
            self._failures += 1
            self.retry_at = boottime() + _BACKOFF.length(self._failures)
            return
        self._socket, self._frames = sock, MessageReader()
        self._failures, self.retry_at = 0, None
        self.send(hello)

    def close(self) -> None:
        """Close the connection; messages that were sent are still delivered."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self._socket.close()
            self._socket = None

    def register(self, poll: select.poll) -> None:
        """Have a poll watch the connection, if there is one."""
        if self._socket is not None:
            poll.register(self._socket, select.POLLIN)

    def _lose(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self.retry_at = boottime() + _BACKOFF.length(self._failures)
