"""What people ask and order about single leases."""

import asyncio
import hashlib
import time
from collections.abc import Collection
from typing import Any, Final

from kettle.bus.ports import Bus, NoResponderError, RefusedError, Rep, Req, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.command_pipeline import Decision as Decided
from kettle_services.scaler.commands.worker_pools import PoolCommands
from kettle_services.scaler.domain.leases import lease as leases
from kettle_services.scaler.domain.leases.ending import terminate
from kettle_services.scaler.domain.leases.lease import LEAVING, Lease
from kettle_services.scaler.domain.leases.wishes import drain
from kettle_services.scaler.domain.pools import PoolRefused, require_growing
from kettle_services.scaler.lease_views import LeaseLog, shown
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.record import Record
from kettle_services.scaler.settings import ScalerSettings
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import provisioner
from kettle_wire.commands import worker_pools as wire
from kettle_wire.commands.iam import Recorded
from kettle_wire.commands.worker_pools import LeaseShown, OfferFault
from kettle_wire.endpoint import Endpoint
from kettle_wire.events.lease import LeaseRequested
from kettle_wire.identity import Identity
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import Offer, PoolKind

_OVER: Final = frozenset({LeaseState.GONE, LeaseState.FAILED})
_UNASKED_S: Final = 600.0
"""A machine that a person orders is given up when its provider could not be asked for so long."""


class LeaseCommands:
    """Answers people."""

    def __init__(
        self,
        record: Record,
        log: LeaseLog,
        pools: PoolCommands,
        provisioning: Provisioning,
        bus: Bus,
        settings: ScalerSettings,
    ) -> None:
        self._record: Final = record
        self._log: Final = log
        self._pools: Final = pools
        self._provisioning: Final = provisioning
        self._bus: Final = bus
        self._provisioner: Final = settings.provisioner

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.command(wire.ORDER_LEASE, self.order),
            pipeline.command(wire.GIVE_UP_LEASE, self.give_up),
            pipeline.query(wire.LIST_LEASES, self.list),
            pipeline.query(wire.LEASE_TIMELINE, self.timeline),
            pipeline.query(wire.LEASE_CONSOLE, self.console),
            pipeline.query(wire.REPORT_POOL, self.report),
            pipeline.query(wire.CHECK_OFFERS, self.check),
        ]

    async def order(self, request: wire.OrderLease, caller: Identity) -> Decided[wire.LeaseOrdered]:
        """One machine more; `not_found`, `refused`: there may be no more."""
        state, now = self._pools.require(request.pool), time.time()
        offer = next((each for each in state.pool.offers if each.name == request.offer), None)
        if offer is None:
            known = ", ".join(each.name for each in state.pool.offers)
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"the pool {request.pool} has no offer {request.offer}; it has: {known}",
            )
        try:
            require_growing(state)
        except PoolRefused as refused:
            raise RefusedError(RefusalCode.REFUSED, str(refused)) from refused
        if state.pool.kind is PoolKind.STATIC:
            raise RefusedError(
                RefusalCode.REFUSED,
                f"the pool {request.pool} is static: its machines are there, and none is made; see kettle pool show {request.pool}",
            )
        there = [lease for lease in self._leases() if lease.requested.pool == request.pool]
        of_offer = sum(lease.offer.name == offer.name for lease in there)
        if len(there) >= state.pool.max or (offer.max and of_offer >= offer.max):
            raise RefusedError(
                RefusalCode.REFUSED,
                f"the pool {request.pool} has as many machines as it may have; see kettle pool leases {request.pool}",
            )
        name = f"{request.pool}-by-{hashlib.sha256(request.id.encode()).hexdigest()[:10]}"
        event = LeaseRequested(
            lease=name,
            pool=request.pool,
            offer=offer,
            life=min(state.pool.life, offer.life or state.pool.life),
            until=now + _UNASKED_S,
            owner=state.pool.owners[0] if len(state.pool.owners) == 1 else "",
            groups=state.pool.groups,
            by=caller.name,
        )
        return Decided(
            lambda position: wire.LeaseOrdered(lease=name, position=position),
            [(f"{leases.KIND}/{name}", event)],
        )

    async def give_up(self, request: wire.GiveUpLease, caller: Identity) -> Decided[Recorded]:
        """Have one machine go; `not_found`: there is none, or it is over."""
        lease = self._record.state.leases.states.get(request.lease)
        if lease is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"there is no lease {request.lease}, or it is over: kettle pool leases shows those that there are",
            )
        decision = self._provisioning.decision()
        why = f"{caller.name} gave it up{f': {request.reason}' if request.reason else ''}"
        if request.force and lease.handle and lease.state is not LeaseState.TERMINATING:
            terminate(decision, lease, why)
        elif lease.state not in LEAVING:
            drain(decision, lease, why, lease.ends)
        return Decided(
            lambda position: Recorded(position=position),
            decision.changes,
            effect=lambda: self._provisioning.act(decision.acts),
        )

    async def list(self, request: wire.ListLeases, caller: Identity) -> wire.Leases:
        """
        Those in some states, the newest first; those that are over are read from the log if they are asked for. `not_found`: there is no
        such pool.
        """
        if request.pool:
            self._pools.require(request.pool)
        now = time.time()
        wanted = frozenset(request.states)
        found = [
            shown(lease, now=now)
            for lease in self._leases()
            if request.pool in {"", lease.requested.pool} and (not wanted or lease.state in wanted)
        ]
        if wanted & _OVER:
            over, _ = await self._log.over(request.pool, since=0.0, head=self._record.shard.frame)
            found += [lease for lease in over if lease.state in wanted]
        found.sort(key=lambda each: (-each.requested, each.lease))
        return wire.Leases(leases=found[: request.limit], more=max(0, len(found) - request.limit))

    async def timeline(self, request: wire.LeaseTimeline, caller: Identity) -> wire.LeaseHistory:
        """Everything about one; `not_found`."""
        lease, moments = await self._log.timeline(request.lease)
        if lease is None:
            raise _unknown(request.lease)
        return wire.LeaseHistory(lease=lease, moments=moments)

    async def console(self, request: wire.ReadConsole, caller: Identity) -> wire.Console:
        """What it wrote; that of one that failed is kept where the scaler ran.  `not_found`, `refused`."""
        lease = self._record.state.leases.states.get(request.lease)
        if lease is None or lease.console or not lease.handle:
            return wire.Console(text=await self._kept_console(request.lease))
        asked = provisioner.FetchConsole(provider=lease.provider, handle=lease.handle)
        read = await self._ask(provisioner.READ_CONSOLE, asked)
        if read.trouble is not None:
            raise RefusedError(
                RefusalCode.REFUSED, f"its provider {lease.provider} does not say: {read.trouble.words}"
            )
        return wire.Console(text=read.text)

    async def report(self, request: wire.ReportPool, caller: Identity) -> wire.PoolReport:
        """The machines of a pool, by their ends; `not_found`."""
        self._pools.require(request.pool)
        over, since = await self._log.over(request.pool, since=request.since, head=self._record.shard.frame)
        now = time.time()
        there = [shown(lease, now=now) for lease in self._leases() if lease.requested.pool == request.pool]
        found: list[LeaseShown] = [*over, *sorted(there, key=lambda each: each.requested)]
        return wire.PoolReport(leases=found[-wire.MOST_LEASES :], since=since)

    async def check(self, request: wire.CheckOffers, caller: Identity) -> wire.OffersChecked:
        """What providers say of offers."""
        by_provider: dict[str, list[Offer]] = {}
        for offer in request.offers:
            by_provider.setdefault(offer.provider, []).append(offer)
        faults: list[OfferFault] = []
        for provider, offers in by_provider.items():
            asked = provisioner.AskAboutOffers(provider=provider, offers=offers)
            answer = await self._ask(provisioner.CHECK_OFFERS, asked)
            if (trouble := answer.trouble) is not None:
                faults += [
                    OfferFault(offer=offer.name, sentence=trouble.words, unanswered=trouble.error is None)
                    for offer in offers
                ]
            faults += [
                OfferFault(offer=offer.name, sentence=sentence)
                for offer in offers
                for sentence in answer.faults.get(offer.name, ())
            ]
        return wire.OffersChecked(faults=faults)

    async def _ask(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        """What a provisioner answers; raises RefusedError."""
        try:
            return await self._bus.call(endpoint, self._provisioner, request, deadline=provisioner.ANSWER_S)
        except NoResponderError as error:
            raise RefusedError(
                RefusalCode.REFUSED,
                f"no provisioner {self._provisioner} answers, so no provider can be asked: is provisioner in daemon_list?",
            ) from error

    def _leases(self) -> Collection[Lease]:
        return self._record.state.leases.states.values()

    async def _kept_console(self, lease: str) -> str:
        """What is kept of a machine's words; raises RefusedError (`not_found`)."""
        if not await self._log.known(lease):
            raise _unknown(lease)
        return await asyncio.to_thread(self._provisioning.consoles.read, lease) or ""


def _unknown(lease: str) -> RefusedError:
    return RefusedError(
        RefusalCode.NOT_FOUND, f"there never was a lease {lease}: kettle pool leases lists them"
    )
