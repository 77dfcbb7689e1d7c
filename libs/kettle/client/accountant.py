"""The requests of people to the accountant, and the commands of administrators."""

from collections.abc import Iterable
from typing import Final

from kettle.client.connections.transport import Requests, new_id
from kettle_wire.commands import accounting, negotiator
from kettle_wire.commands.accounting import ReportUsage, UsageRow
from kettle_wire.commands.negotiator import (
    Administered,
    DeletePrincipal,
    Priorities,
    QueryPriorities,
    ResetUsage,
    SetPrincipal,
)
from kettle_wire.events.principal import Setting

REPORT_S: Final = 90.0
"""Some more than accounting takes for a report before it refuses (its setting `report_time`)."""


class Accountant:
    """
    Priorities, factors and usage of submitters. Only administrators may change any: others are refused, `denied`.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def priorities(self, names: Iterable[str] = ()) -> Priorities:
        """How these submitters stand, or all who are known; the best first."""
        return await self._requests.ask(negotiator.QUERY_PRIORITIES, QueryPriorities(names=list(names)))

    async def report(self, wanted: ReportUsage) -> list[UsageRow]:
        """What attempts have used, by one or two things, between moments."""
        patience = max(self._requests.transport.patience, REPORT_S)
        answer = await self._requests.ask(
            accounting.REPORT_USAGE, wanted, patience=patience, deadline=REPORT_S
        )
        return answer.rows

    async def set(self, name: str, setting: Setting, value: float) -> Administered:
        """Set priority, factor, accumulated usage (seconds), times, floor or ceiling of a submitter."""
        request = SetPrincipal(id=new_id(), name=name, setting=setting, value=value)
        return await self._requests.ask(negotiator.SET_PRINCIPAL, request)

    async def reset_usage(self, name: str | None) -> Administered:
        """Set the accumulated usage of a submitter, or of everybody (None), to nothing."""
        return await self._requests.ask(negotiator.RESET_USAGE, ResetUsage(id=new_id(), name=name))

    async def delete(self, name: str) -> Administered:
        """Forget a submitter."""
        return await self._requests.ask(negotiator.DELETE_PRINCIPAL, DeletePrincipal(id=new_id(), name=name))
