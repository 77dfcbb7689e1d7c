"""What administrators have the hosts of a pool do: switch their daemons, and empty their machines."""

import socket
import uuid
from collections.abc import Callable
from typing import Literal

from kettle.bus.ports import Asks
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.retry import Rep, Req, Waiting, ask_with_retry
from kettle_wire.commands import master, startd
from kettle_wire.commands.master import Control, Controlled, Daemons, QueryDaemons
from kettle_wire.commands.startd import CancelDrain, Drain
from kettle_wire.endpoint import Endpoint

Speed = Literal["graceful", "quick", "fast"]
"""How much time the jobs of a machine have that is emptied."""


class Hosts:
    """The hosts of a pool, only for administrators: others are refused, with a `CommandRefusedError`."""

    def __init__(
        self, asks: Asks, pool: PoolFile, *, patience: float, waiting: Callable[[], Waiting | None]
    ) -> None:
        self._asks = asks
        self._pool = pool
        self._patience = patience
        self._waiting = waiting

    async def drain(
        self,
        machine: str,
        *,
        speed: Speed = "graceful",
        reason: str = "",
        check: str = "",
        start: str = "",
        resume: bool = False,
    ) -> str:
        """
        Empty a machine, as its administrator; the id of the request.

        `graceful` lets jobs have their retirement time, `quick` only their time to end, `fast` kills them. `check` has to
        be true of all its slots; `start` says what may begin meanwhile; with `resume` the empty machine takes work again.
        """
        request = Drain(
            id=uuid.uuid4().hex, speed=speed, reason=reason, check=check, start=start, resume=resume
        )
        await self._ask(startd.DRAIN, machine, request)
        return request.id

    async def cancel_drain(self, machine: str, request: str = "") -> None:
        """Have a machine take work again; with `request` only if it is that one which drains it."""
        cancel = CancelDrain(request=request)
        await self._ask(startd.CANCEL_DRAIN, machine, cancel)

    async def control(self, request: Control, *, host: str = "") -> Controlled:
        """
        Switch daemons of a host, by the name of its master (default: this host's); for administrators alone.
        """
        return await self._ask(master.CONTROL, self._master(host), request)

    async def daemons(self, *, host: str = "") -> Daemons:
        """How the daemons of a host are, by its master's own word; for administrators alone."""
        return await self._ask(master.QUERY_DAEMONS, self._master(host), QueryDaemons())

    def _master(self, host: str) -> str:
        return host or self._pool.master or socket.gethostname()

    async def _ask(self, endpoint: Endpoint[Req, Rep], name: str, request: Req) -> Rep:
        return await ask_with_retry(
            self._asks, endpoint, name, request, patience=self._patience, waiting=self._waiting()
        )
