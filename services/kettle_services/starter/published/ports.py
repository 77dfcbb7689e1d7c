"""Connections to ports of the job, also within a network of its own."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final

from kettle.execution.system.linux import descendants_of
from kettle.published.errors import StreamCode, StreamRefusedError
from kettle.published.services import Service
from kettle_services.starter.published.listening import (
    Listener,
    NotListeningError,
    listener_of,
    require_still,
)
from kettle_services.starter.published.socket_maker import JobNetworks, SocketMaker, network_of

_PROCS: Final = "cgroup.procs"


class JobPorts:
    """The ports of one job, whose processes are in a control group, or below its starter."""

    def __init__(self, cgroup: str, starter: int, maker: SocketMaker | None = None) -> None:
        """`maker`: enters networks that this process may not enter; None: it enters all by itself."""
        self._cgroup = cgroup
        self._starter = starter
        self._maker: Final = maker or JobNetworks()

    async def connect(self, service: Service, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        """
        Connect a protocol with the port of a service.

        Raises:
            StreamRefusedError: no process of the job listens there, or its network cannot be entered.
            OSError: the port does not answer.
        """
        try:
            found = listener_of(service.port, self._pids())
            made = await self._connected(found)
        except NotListeningError as error:
            raise StreamRefusedError(error.code, str(error)) from error
        try:
            loop = asyncio.get_running_loop()
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.create_connection(factory, sock=made)
        except BaseException:
            made.close()
            raise

    async def _connected(self, found: Listener) -> socket.socket:
        """
        A connection with that one, and with nobody who has taken its place meanwhile; raises NotListeningError.
        """
        made = self._socket(found)
        try:
            await asyncio.get_running_loop().sock_connect(made, (found.host, found.port))
            require_still(found, self._pids())
        except BaseException:
            made.close()
            raise
        return made

    def _socket(self, found: Listener) -> socket.socket:
        """A socket in the network in which that one listens."""
        family = socket.AF_INET6 if ":" in found.host else socket.AF_INET
        if network_of(found.pid) == network_of(os.getpid()):
            made = socket.socket(family, socket.SOCK_STREAM)
        else:
            try:
                made = self._maker.make(found.pid, family)
            except OSError as error:
                raise StreamRefusedError(
                    StreamCode.UNREACHABLE, f"the network of the job's container cannot be entered: {error}"
                ) from error
        made.setblocking(False)
        return made

    def _pids(self) -> list[int]:
        """The job's processes."""
        return job_processes(self._cgroup, self._starter, os.getpid())


def job_processes(cgroup: str, starter: int, helper: int) -> list[int]:
    """The processes of a control group, or else those below the starter that are not below `helper`."""
    if not cgroup:
        own = {helper, *descendants_of(helper)}
        return [pid for pid in descendants_of(starter) if pid not in own]
    found: list[int] = []
    for directory, _, files in os.walk(cgroup):
        if _PROCS in files:
            with open(f"{directory}/{_PROCS}", encoding="ascii") as file:  # noqa: PTH123 - short
                found += [int(pid) for pid in file.read().split()]
    return found
