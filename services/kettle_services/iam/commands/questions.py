"""Who somebody is, what he may do, and what is on the record."""

import time
from collections.abc import Callable, Collection
from typing import Any, Final

from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.refusals import Denied
from kettle_services.iam.domain.rights import Known, on_the_bus, whoami
from kettle_services.iam.record import Record
from kettle_wire.commands import iam
from kettle_wire.identity import Identity


class Questions:
    """Answers questions, and changes nothing."""

    def __init__(self, record: Record, *, administrators: Callable[[], Collection[str]]) -> None:
        self._record: Final = record
        self._administrators = administrators

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.query(iam.QUERY_AUDIT, self.query_audit),
            pipeline.query(iam.WHO_AM_I, self.who_am_i),
        ]

    def _person(self, caller: Identity) -> Known:
        return on_the_bus(caller.name, self._administrators())

    async def query_audit(self, request: iam.QueryAudit, caller: Identity) -> iam.AuditEntries:
        """The newest entries of the record that match."""
        return await self._record.audit(request)

    async def who_am_i(self, request: iam.WhoAmI, caller: Identity) -> iam.Whoami:
        """Who the pool takes the caller for."""
        person = self._person(caller)
        return whoami(person, self.ban_of(person))

    def ban_of(self, known: Known) -> str:
        """Why somebody is banned; empty: he is not."""
        try:
            require_welcome(self._record.register, *known.names, now=time.time())
        except Denied as ban:
            return str(ban)
        return ""
