"""
What other services report: what their administrators had them do, and whom they have refused.

Machines and access points that have joined are other people's: what they say is about themselves, under their name, and no more of
it is recorded than somebody can read.
"""

import time
from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle.http.rate_limits import Buckets
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.commands.deciding import recorded
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.deeds import REPORT_DEED, ReportDeed
from kettle_wire.commands.iam import Recorded
from kettle_wire.events.iam import AccessDenied, AdministratorActed
from kettle_wire.identity import Identity

_RATE: Final = 0.1
_BURST: Final = 50.0
"""Reports of one service of a machine or access point: so many a second, and at once."""


class ReportedDeeds:
    """Decides `report_deed`."""

    def __init__(self, denials: DenialRecord) -> None:
        self._denials = denials
        self._of_others: Final = Buckets(rate=_RATE, burst=_BURST)

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoint with its handler."""
        return [pipeline.command(REPORT_DEED, self.report)]

    async def report(self, request: ReportDeed, caller: Identity) -> Decision[Recorded]:
        """
        Record a deed; of refusals no more than somebody can read, the others are counted.  What was done in iam itself has an
        event of its own already.

        `malformed`: a joined one reports what was asked of another; `busy`: it has reported much.
        """
        joined = caller.access_point or (caller.name if caller.kind == "worker" else "")
        if joined:
            self._require_own(joined, request, caller)
        if request.denied:
            event = AccessDenied(
                who=request.who,
                action=f"{request.action} at {request.where}{f', says {caller.token}' if joined else ''}",
                code=request.denied,
                message=request.sentence,
                address="",
                more=request.more,
                at=request.at,
            )
            return recorded(self._denials.counted(event))
        if request.action.startswith("iam."):
            return recorded([])
        acted = AdministratorActed(
            who=request.who,
            action=request.action,
            where=request.where,
            sentence=request.sentence,
            by=caller.name,
            at=request.at,
        )
        return recorded([(f"deeds/{caller.token}", acted)])

    def _require_own(self, name: str, request: ReportDeed, caller: Identity) -> None:
        if request.where not in {name, f"schedd.{name}"}:  # the second is its log
            raise RefusedError(
                RefusalCode.MALFORMED,
                f"{caller.token} reports what was asked of {request.where}, which is not its own",
            )
        if wait := self._of_others.take(caller.token, now=time.time()):
            raise RefusedError(
                RefusalCode.BUSY,
                f"{caller.token} reports more than is recorded; try again later",
                retry_after_ms=int(wait * 1000) + 1,
            )
