"""What administrators have the hosts of a pool do: switch their daemons, and empty their machines."""

from collections.abc import Sequence
from typing import Literal

from kettle.client.connections.transport import Requests, new_id
from kettle_wire.commands import master, startd
from kettle_wire.commands.master import Control, ControlAction, Controlled, Daemons, How, QueryDaemons
from kettle_wire.commands.startd import CancelDrain, Drain

Speed = Literal["graceful", "quick", "fast"]
"""How much time the jobs of a machine have that is emptied."""


class Hosts:
    """The hosts of a pool, only for administrators: others are refused, with a `CommandRefusedError`."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

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
        request = Drain(id=new_id(), speed=speed, reason=reason, check=check, start=start, resume=resume)
        await self._requests.ask(startd.DRAIN, request, name=machine)
        return request.id

    async def cancel_drain(self, machine: str, request: str = "") -> None:
        """Have a machine take work again; with `request` only if it is that one which drains it."""
        await self._requests.ask(startd.CANCEL_DRAIN, CancelDrain(request=request), name=machine)

    async def control(
        self,
        action: ControlAction,
        *,
        host: str = "",
        daemons: Sequence[str] = (),
        how: How = "graceful",
    ) -> Controlled:
        """
        Switch daemons of a host, by the name of its master (default: this host's); those that are named, or all.
        """
        request = Control(id=new_id(), action=action, daemons=list(daemons), how=how)
        return await self._requests.ask(master.CONTROL, request, name=host)

    async def daemons(self, *, host: str = "") -> Daemons:
        """How the daemons of a host are, by its master's own word."""
        return await self._requests.ask(master.QUERY_DAEMONS, QueryDaemons(), name=host)
