"""The requests of people to the accountant, and the commands of administrators."""

import uuid
from collections.abc import Callable, Iterable
from typing import Final

from kettle.bus.ports import Asks
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.retry import Rep, Req, Waiting, ask_with_retry
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
from kettle_wire.endpoint import Endpoint
from kettle_wire.events.principal import Setting

REPORT_S: Final = 90.0
"""Some more than accounting takes for a report before it refuses (its setting `report_time`)."""


class Accountant:
    """
    Priorities, factors and usage of submitters. Only administrators may change any: others are refused, `denied`.
    """

    def __init__(
        self, asks: Asks, pool: PoolFile, *, patience: float, waiting: Callable[[], Waiting | None]
    ) -> None:
        self._asks = asks
        self._pool = pool
        self._patience = patience
        self._waiting = waiting

    async def priorities(self, names: Iterable[str] = ()) -> Priorities:
        """How these submitters stand, or all who are known; the best first."""
        return await self._ask(negotiator.QUERY_PRIORITIES, QueryPriorities(names=list(names)))

    async def report(self, wanted: ReportUsage) -> list[UsageRow]:
        """What attempts have used, by one or two things, between moments."""
        name = self._pool.accounting
        answer = await ask_with_retry(
            self._asks,
            accounting.REPORT_USAGE,
            name,
            wanted,
            patience=max(self._patience, REPORT_S),
            deadline=REPORT_S,
            waiting=self._waiting(),
        )
        return answer.rows

    async def set(self, name: str, setting: Setting, value: float) -> Administered:
        """Set priority, factor, accumulated usage (seconds), times, floor or ceiling of a submitter."""
        request = SetPrincipal(id=uuid.uuid4().hex, name=name, setting=setting, value=value)
        return await self._ask(negotiator.SET_PRINCIPAL, request)

    async def reset_usage(self, name: str | None) -> Administered:
        """Set the accumulated usage of a submitter, or of everybody (None), to nothing."""
        return await self._ask(negotiator.RESET_USAGE, ResetUsage(id=uuid.uuid4().hex, name=name))

    async def delete(self, name: str) -> Administered:
        """Forget a submitter."""
        return await self._ask(negotiator.DELETE_PRINCIPAL, DeletePrincipal(id=uuid.uuid4().hex, name=name))

    async def _ask(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        name = self._pool.negotiator
        return await ask_with_retry(
            self._asks, endpoint, name, request, patience=self._patience, waiting=self._waiting()
        )
