"""
What people ask the scaler about pools of workers and their leases; administrators' commands are refused to others with a
`CommandRefusedError`.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from kettle.bus.ports import NoResponderError, Rep, Req
from kettle.client.connections.transport import Requests, new_id
from kettle.client.errors import ClientError, CommandRefusedError, PoolUnreachableError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import worker_pools as wire
from kettle_wire.commands.accounting import REPORT_USAGE, ReportUsage, UsageRow
from kettle_wire.endpoint import Endpoint
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import WorkerPool

PATIENCE_S: Final = 10.0
"""A pool need not have a scaler: it is not waited for as long as for others."""
_NOBODY_S: Final = 1.0
"""After so long without anybody who answers who does not want to wait is told that there is no scaler."""
_PROVIDER_S: Final = 90.0
"""After how long an answer is believed to be lost for which a provider is asked."""


class NoScalerError(ClientError):
    """The pool has no scaler; the message says what to add."""

    def __init__(self) -> None:
        super().__init__(
            "this pool has no scaler, or it does not answer: pools of workers need iam, scaler and provisioner in daemon_list of "
            "[master] in kettle.toml, see docs/how-to/grow-and-shrink-the-pool.md"
        )


class PoolUse(msgspec.Struct, frozen=True, kw_only=True):
    """The machines of a pool over some time, and what ran on them."""

    report: wire.PoolReport
    used: list[UsageRow]
    """By machine, and by owner or job."""


class WorkerPools:
    """Asks the scaler.  Every method raises NoScalerError where there is none."""

    def __init__(self, requests: Requests, *, waits: bool = True) -> None:
        """`waits`: for a scaler that is being started again, too."""
        self._requests = requests
        self._waits = waits

    def without_waiting(self) -> "WorkerPools":
        """Ask for a caller that wants to know at once that nobody answers for the scaler."""
        return WorkerPools(self._requests, waits=False)

    async def apply(self, pool: WorkerPool) -> wire.PoolApplied:
        """Have a pool be as its file says."""
        return await self.ask(wire.APPLY_POOL, wire.ApplyPool(id=new_id(), pool=pool))

    async def check(self, pool: WorkerPool) -> list[wire.OfferFault]:
        """
        What providers say is wrong with the offers of a pool; nothing is made.  They are asked for machines that live as long as those of
        the pool: a batch system may have none.
        """
        lives = [min(pool.life, offer.life or pool.life) for offer in pool.offers]
        offers = [
            msgspec.structs.replace(offer, life=life) for offer, life in zip(pool.offers, lives, strict=True)
        ]
        request = wire.CheckOffers(offers=offers)
        return (await self.ask(wire.CHECK_OFFERS, request, deadline=_PROVIDER_S)).faults

    async def list(self) -> Sequence[wire.PoolSummary]:
        """All pools of workers."""
        return (await self.ask(wire.LIST_POOLS, wire.ListPools())).pools

    async def show(self, pool: str) -> wire.PoolShown:
        """One of them."""
        return await self.ask(wire.SHOW_POOL, wire.ShowPool(pool=pool))

    async def over_time(
        self, pool: str, *, since: float, until: float, points: int = 200
    ) -> wire.MachinesOverTime:
        """How many machines a pool had and wanted at moments between two."""
        request = wire.AskMachinesOverTime(pool=pool, since=since, until=until, points=points)
        return await self.ask(wire.MACHINES_OVER_TIME, request)

    async def find(self, pool: str) -> wire.PoolShown | None:
        """One of them, if there is one of this name."""
        try:
            return await self.show(pool)
        except CommandRefusedError as error:
            if error.code != RefusalCode.NOT_FOUND:
                raise
            return None

    async def explain(self, pool: str, *, dry_run: bool = False, at: float = 0.0) -> wire.PlanExplained:
        """
        The last plan, the one that was in force at a moment, or one that is made for the question and not carried out.
        """
        return await self.ask(wire.EXPLAIN_PLAN, wire.ExplainPlan(pool=pool, dry_run=dry_run, at=at))

    async def pause(self, pool: str, *, reason: str = "", drain: bool = False) -> None:
        """Make no more machines; with `drain` have those go that there are."""
        await self.ask(wire.PAUSE_POOL, wire.PausePool(id=new_id(), pool=pool, reason=reason, drain=drain))

    async def resume(self, pool: str) -> None:
        """Make machines again, and try closed offers at once."""
        await self.ask(wire.RESUME_POOL, wire.ResumePool(id=new_id(), pool=pool))

    async def retire(self, pool: str) -> None:
        """Give a pool up."""
        await self.ask(wire.RETIRE_POOL, wire.RetirePool(id=new_id(), pool=pool))

    async def leases(
        self, pool: str = "", *, states: Sequence[LeaseState] = (), limit: int = wire.MOST_LEASES
    ) -> wire.Leases:
        """Leases, the newest first; without `states` those that are not over."""
        request = wire.ListLeases(pool=pool, states=list(states), limit=limit)
        return await self.ask(wire.LIST_LEASES, request)

    async def timeline(self, lease: str) -> wire.LeaseHistory:
        """What happened to a lease."""
        return await self.ask(wire.LEASE_TIMELINE, wire.LeaseTimeline(lease=lease))

    async def console(self, lease: str) -> str:
        """What a machine wrote while it started."""
        request = wire.ReadConsole(lease=lease)
        return (await self.ask(wire.LEASE_CONSOLE, request, deadline=_PROVIDER_S)).text

    async def order(self, pool: str, offer: str) -> str:
        """Have one machine more; its lease."""
        return (await self.ask(wire.ORDER_LEASE, wire.OrderLease(id=new_id(), pool=pool, offer=offer))).lease

    async def give_up(self, lease: str, *, reason: str = "", force: bool = False) -> None:
        """Have one machine go."""
        request = wire.GiveUpLease(id=new_id(), lease=lease, reason=reason, force=force)
        await self.ask(wire.GIVE_UP_LEASE, request)

    async def report(
        self, pool: str, *, since: float, now: float, by: Literal["owner", "job"] = "owner"
    ) -> PoolUse:
        """
        The machines that a pool had from one moment to another, and what ran on them; `by`: whose, or which job.
        """
        report = await self.ask(wire.REPORT_POOL, wire.ReportPool(pool=pool, since=since))
        if not report.leases:
            return PoolUse(report=report, used=[])
        usage = ReportUsage(
            by=["machine", by],
            cuts=[report.since, now],
            machines=[lease.lease for lease in report.leases],
        )
        return PoolUse(report=report, used=(await self._requests.ask(REPORT_USAGE, usage)).rows)

    async def ask(
        self,
        endpoint: Endpoint[Req, Rep],
        request: Req,
        *,
        deadline: float = 0.0,
    ) -> Rep:
        """What the scaler answers; for who makes the ids of commands.  Raises NoScalerError."""
        patience = min(self._requests.transport.patience, PATIENCE_S)
        if not self._waits:
            try:
                return await self._requests.ask(endpoint, request, patience=_NOBODY_S)
            except PoolUnreachableError as error:
                if isinstance(error.__cause__, NoResponderError):
                    raise NoScalerError from error
                # There is one, which has much to do: it is asked again, and gets the time that it needs.
        try:
            if deadline:
                return await self._requests.ask(endpoint, request, patience=deadline, deadline=deadline)
            return await self._requests.ask(endpoint, request, patience=patience)
        except PoolUnreachableError as error:
            raise NoScalerError from error
