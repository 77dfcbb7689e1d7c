"""
The systemd notification protocol, both sides: a service notifies its supervisor that it is ready, alive or stopping.

The sender works under systemd and under our master alike.  The listener is the master's: the kernel identifies the
process that sent a message, so that no child can send for another.
"""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

MESSAGE_BYTES: Final = 4096
SERVING: Final = "serving"
STANDBY: Final = "standing by"
_CREDENTIALS: Final = struct.Struct("3i")


class Notifier:
    """
    The service's side.  Sending never blocks and never fails: a supervisor in trouble is no trouble of ours.
    """

    def __init__(self, address: str = "", *, watchdog_s: float = 0.0) -> None:
        """`watchdog_s` is how long the supervisor waits between signs of life; 0 means that it does not."""
        self.watchdog_s = watchdog_s
        self._socket: socket.socket | None = None
        if address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setblocking(False)
            self._address = "\0" + address[1:] if address.startswith("@") else address

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """What `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` say; without them sending does nothing."""
        period = environ.get("WATCHDOG_USEC", "")
        meant = environ.get("WATCHDOG_PID", "")
        watchdog_s = int(period) / 1e6 if period.isdigit() and meant in {"", str(os.getpid())} else 0.0
        return cls(environ.get("NOTIFY_SOCKET", ""), watchdog_s=watchdog_s)

    @property
    def supervised(self) -> bool:
        """Whether somebody listens, and so would start the service again."""
        return self._socket is not None

    def send(self, *assignments: str) -> bool:
        """Send to the supervisor, for instance `READY=1`; returns whether it was handed over."""
        if self._socket is None:
            return False
        try:
            self._socket.sendto("\n".join(assignments).encode(), self._address)
        except OSError:
            return False
        return True

    def ready(self) -> None:
        """The service does its work from now on."""
        self.send("READY=1", f"STATUS={SERVING}")

    def standby(self) -> None:
        """The service has started, and another one does its work."""
        self.send("READY=1", f"STATUS={STANDBY}")

    def stopping(self) -> None:
        """The service drains."""
        self.send("STOPPING=1")

    async def keep_alive(self) -> None:
        """Send heartbeats from the event loop without end: a loop that hangs sends none."""
        while self._socket is not None and self.watchdog_s > 0:
            self.send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_s / 3)

    def close(self) -> None:
        """Send nothing any more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Notification(msgspec.Struct, frozen=True):
    """A message that the process `pid` sent about itself."""

    pid: int
    uid: int
    state: Mapping[str, str]


class NotifyListener:
    """
    The supervisor's side: a datagram socket in a private directory, and what arrives there, one by one.

    The kernel's own queue is the only one: a supervisor that does not listen loses nothing until it is full, and then
    the sender loses signs of life, not the supervisor its memory.
    """

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self._socket.setblocking(False)
            self._socket.bind(str(path))
        except OSError:
            self._socket.close()
            raise

    def environ(self, *, watchdog_s: float = 0.0) -> dict[str, str]:
        """What a child's environment has to say; a child that is silent for `watchdog_s` seconds hangs."""
        variables = {"NOTIFY_SOCKET": str(self.path)}
        if watchdog_s > 0:
            variables["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        return variables

    def close(self) -> None:
        """Stop listening and remove the socket."""
        self._socket.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[Notification]:
        return self._receive()

    async def _receive(self) -> AsyncIterator[Notification]:
        while True:
            try:
                data, ancillary, _flags, _ = self._socket.recvmsg(
                    MESSAGE_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size)
                )
            except BlockingIOError:
                await self._readable()
                continue
            for level, kind, content in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                    pid, uid, _gid = _CREDENTIALS.unpack(content[: _CREDENTIALS.size])
                    yield Notification(pid, uid, _parse(data))

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()

        def wake() -> None:
            if not arrived.done():
                arrived.set_result(None)

        loop.add_reader(self._socket, wake)
        try:
            await arrived
        finally:
            loop.remove_reader(self._socket)


def _parse(data: bytes) -> dict[str, str]:
    lines = (line.partition("=") for line in data.decode(errors="replace").splitlines())
    return {name: value for name, equals, value in lines if equals}
