"""Who is let in no more."""

import logging
import time
from typing import Any, Final

import msgspec

from kettle.bus.ports import BusError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle_services.iam.commands.deciding import recorded, refusing
from kettle_services.iam.domain import bans
from kettle_services.iam.domain.state import Ban
from kettle_services.iam.people.local_accounts import SaidBans
from kettle_services.iam.record import Record
from kettle_wire.commands import iam
from kettle_wire.events.iam import BanSet
from kettle_wire.identity import Identity

_log: Final = logging.getLogger(__name__)


class BanCommands:
    """Sets and lifts bans."""

    def __init__(self, record: Record, said: SaidBans | None = None) -> None:
        """`said`: has services know of it before the answer."""
        self._record: Final = record
        self._said = said

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            self._then_said(pipeline.command(iam.SET_BAN, self.set_ban)),
            self._then_said(pipeline.command(iam.LIFT_BAN, self.lift_ban)),
            pipeline.query(iam.LIST_BANS, self.list_bans),
        ]

    def _then_said(self, served: Served[Any, Any]) -> Served[Any, Any]:
        said = self._said
        if said is None:
            return served

        async def handler(request: Any, caller: Identity) -> Any:
            answer = await served.handler(request, caller)
            try:
                await said.say()
            except BusError as error:  # it is recorded, and said when the bus is back
                _log.warning("services hear later who is banned: %s", error)
            return answer

        return Served(served.endpoint, handler, served.administrators)

    async def set_ban(self, request: iam.SetBan, caller: Identity) -> Decision[iam.Recorded]:
        """Let somebody in no more."""
        now = time.time()
        until = now + request.lifetime if request.lifetime else 0.0
        event = BanSet(whom=request.whom, reason=request.reason, until=until, by=caller.name, at=now)
        return recorded(bans.banned(self._record.register, event))

    async def lift_ban(self, request: iam.LiftBan, caller: Identity) -> Decision[iam.Recorded]:
        """Let somebody in again; `not_found`."""
        with refusing():
            return recorded(bans.lifted(self._record.register, request.whom, by=caller.name, now=time.time()))

    async def list_bans(self, request: iam.ListBans, caller: Identity) -> iam.Bans:
        """Who is banned."""
        now = time.time()
        banned = sorted(self._record.register.all(Ban), key=lambda each: each.whom)
        return iam.Bans(
            bans=[
                iam.BanShown(**msgspec.structs.asdict(each))
                for each in banned
                if not each.until or now < each.until
            ]
        )
