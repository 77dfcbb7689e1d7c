"""What other services report: what their administrators had them do, and whom they have refused."""

from typing import Any

from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.commands.deciding import recorded
from kettle_wire.commands.deeds import REPORT_DEED, ReportDeed
from kettle_wire.commands.iam import Recorded
from kettle_wire.events.iam import AccessDenied, AdministratorActed
from kettle_wire.identity import Identity


class ReportedDeeds:
    """Decides `report_deed`."""

    def __init__(self, denials: DenialRecord) -> None:
        self._denials = denials

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoint with its handler."""
        return [pipeline.command(REPORT_DEED, self.report)]

    async def report(self, request: ReportDeed, caller: Identity) -> Decision[Recorded]:
        """
        Record a deed; of refusals no more than somebody can read, the others are counted.  What was done in iam itself has an
        event of its own already.
        """
        if request.denied:
            event = AccessDenied(
                who=request.who,
                action=f"{request.action} at {request.where}",
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
