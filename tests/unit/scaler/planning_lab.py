"""A planner with pools, leases and jobs that a test makes up; all of it goes through the real matcher."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from kettle.classad import Context
from kettle.classad.columnar import Table
from kettle_services.scaler.domain.hosts.host import Host
from kettle_services.scaler.domain.leases.book import Book
from kettle_services.scaler.domain.leases.breakers import OfferRecord, TemplateRecord, template_of
from kettle_services.scaler.domain.leases.lease import Lease, fold
from kettle_services.scaler.domain.planning.demand import Patience
from kettle_services.scaler.domain.planning.inputs import Inputs, Room, gathered
from kettle_services.scaler.domain.planning.matching import Rights
from kettle_services.scaler.domain.planning.planning import Plan
from kettle_services.scaler.domain.planning.snapshot import Snapshot
from kettle_services.scaler.domain.pools import Paused, PoolState
from kettle_wire.ads import Ad, Expr
from kettle_wire.ads.daemon import ResourceRequest, SubmitterAd
from kettle_wire.events.lease import (
    LeaseAccepted,
    LeaseBusy,
    LeaseEvent,
    LeaseReady,
    LeaseSubmitting,
)
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import Offer, WorkerPool

NOW: Final = 1_790_000_000.0
REQUIREMENTS: Final = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk)'
    " && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && (TARGET.HasFileTransfer)"
)


def offer(name: str = "small", cpus: int = 8, memory: int = 16_384, **more: Any) -> Offer:
    return Offer(name=name, provider=more.pop("provider", "local"), cpus=cpus, memory=memory, **more)


def pool(name: str = "p", offers: Iterable[Offer] | None = None, **more: Any) -> WorkerPool:
    said: dict[str, Any] = {"waits": 0.0, "max": 100, **more}
    return WorkerPool(name=name, offers=list(offers or [offer()]), **said)


def job(cpus: int = 1, memory: int = 1024, **more: Any) -> Ad:
    return {
        "Owner": "ann",
        "ClusterId": 1,
        "ProcId": 0,
        "JobUniverse": 5,
        "RequestCpus": cpus,
        "RequestMemory": memory,
        "RequestDisk": 1024,
        "Requirements": Expr(REQUIREMENTS),
        **more,
    }


def machine_slot(name: str, cpus: int, memory: int, **more: Any) -> Ad:
    """A slot that is there and free."""
    return {
        "Name": f"slot1@{name}",
        "Machine": name,
        "State": "Unclaimed",
        "Activity": "Idle",
        "PartitionableSlot": True,
        "Arch": "X86_64",
        "OpSys": "LINUX",
        "HasFileTransfer": True,
        "Cpus": cpus,
        "TotalSlotCpus": cpus,
        "Memory": memory,
        "TotalSlotMemory": memory,
        "Disk": 10**9,
        "SlotWeight": cpus,
        "Requirements": Expr("START"),
        "Start": True,
        **more,
    }


class Lab:
    """One pool, or several, and what is in the queue."""

    def __init__(self, *pools: WorkerPool, proven: bool = True) -> None:
        """`proven`: machines of every template have become ready before."""
        self.now = NOW
        self.number = 0
        self.pools = {
            each.name: PoolState(pool=each, digest="", version=1, by="root", at=0.0) for each in pools
        }
        self.leases: dict[str, Lease] = {}
        self.offers: dict[str, OfferRecord] = {}
        self.templates = {
            template_of(each.name, one): TemplateRecord(proven=proven)
            for each in pools
            for one in each.offers
        }
        self.hosts: dict[str, Host] = {}
        self.idle: dict[str, float] = {}
        self.rooms: dict[str, Room] = {}
        self.spent: dict[str, float] = {}
        self.slots: dict[str, Ad] = {}
        self.requests: dict[str, list[ResourceRequest]] = {}
        self.rights = Rights()
        self.patience = Patience()
        self.max_actions = 1000
        self.sound = True
        self.settles = 0.0
        self.sparse: dict[str, float] = {}
        self.learned: Mapping[str, Ad] = {}

    def queue(self, count: int, ad: Ad | None = None, *, submitter: str = "ann", nodes: int = 1) -> int:
        """So many jobs wait; the number of their autocluster."""
        requests = self.requests.setdefault(submitter, [])
        number = 100 * len(self.requests) + len(requests)
        requests.append(ResourceRequest(autocluster=number, count=count, ad=ad or job(), nodes=nodes))
        return number

    def set_queue(self, count: int, ad: Ad | None = None, *, submitter: str = "ann") -> None:
        """Just these wait, and nothing else of this submitter."""
        self.requests[submitter] = []
        if count:
            self.queue(count, ad, submitter=submitter)

    def book(self) -> Book:
        return Book(self.leases, {}, self.offers, self.templates, {})

    def inputs(self) -> Inputs:
        return gathered(
            self.book(),
            self.pools,
            now=self.now,
            number=self.number,
            rooms=self.rooms,
            spent=self.spent,
            max_actions=self.max_actions,
            sound=self.sound,
            settles=self.settles,
            sparse=self.sparse,
            hosts=self.hosts,
            idle=self.idle,
        )

    def snapshot(self) -> Snapshot:
        table = Table()
        table.put_many(self.slots.items())
        submitters = [
            (
                name,
                SubmitterAd(name=name, schedd="s", idle=0, running=0, held=0, requests=requests),
            )
            for name, requests in sorted(self.requests.items())
        ]
        return Snapshot(table, submitters, self.rights, self.learned)

    def plan(self) -> Plan:
        """What is planned now, which nothing is done about yet."""
        self.number += 1
        context = Context(now=lambda: int(self.now))
        plan = self.snapshot().plan(self.inputs(), self.patience, context)
        self.sparse = {lease: self.sparse.get(lease, self.now) for lease in plan.sparse}
        return plan

    def act(self, plan: Plan) -> list[str]:
        """Record what was planned; the leases that it asks for."""
        for lease in plan.leases:
            self.record(lease.lease, lease)
        for removal in plan.made.removals:
            self.leases.pop(removal.lease, None)
            for key in [key for key in self.slots if key.startswith(f"{removal.lease}.")]:
                del self.slots[key]
        return [lease.lease for lease in plan.leases]

    def cycle(self, seconds: float = 2.0) -> Plan:
        """A plan, what follows from it, and time passes."""
        plan = self.plan()
        self.act(plan)
        self.now += seconds
        return plan

    def record(self, lease: str, event: LeaseEvent) -> None:
        after = fold(self.leases.get(lease), event, self.now)
        if after is None:
            del self.leases[lease]
        else:
            self.leases[lease] = after

    def accept(self, *leases: str) -> None:
        """Their provider has made them."""
        for lease in leases:
            self.record(lease, LeaseSubmitting(attempt=1, until=self.now + 100))
            self.record(lease, LeaseAccepted(handle=lease, until=self.now + 1000))

    def ready(self, *leases: str) -> None:
        """They are there, and their slots are."""
        for lease in leases:
            if self.leases[lease].state is LeaseState.REQUESTED:
                self.accept(lease)
            self.record(lease, LeaseReady(until=self.now + 10_000))
            one = self.leases[lease]
            self.slots[f"{lease}.slot1"] = machine_slot(
                lease, one.offer.cpus, one.offer.memory, Start=Expr(one.requested.start or "true"), TimeToLive=86_000,
                PartitionableSlot=one.requested.shape.value == "shared",
            )  # fmt: skip

    def busy(self, *leases: str) -> None:
        """They are full of jobs."""
        for lease in leases:
            self.record(lease, LeaseBusy(until=self.now + 10_000))
            self.slots.pop(f"{lease}.slot1", None)

    def runs(self, lease: str, *jobs: tuple[int, int]) -> None:
        """It runs jobs of so many cores and so much memory."""
        one = self.leases[lease]
        self.record(lease, LeaseBusy(until=self.now + 10_000))
        for key in [key for key in self.slots if key.startswith(f"{lease}.")]:
            del self.slots[key]
        left = (
            one.offer.cpus - sum(each for each, _ in jobs),
            one.offer.memory - sum(each for _, each in jobs),
        )
        self.slots[f"{lease}.slot1"] = machine_slot(lease, *left, KettlePool=one.requested.pool)
        for number, (cpus, memory) in enumerate(jobs, 1):
            self.slots[f"{lease}.slot1_{number}"] = machine_slot(
                lease, cpus, memory, State="Claimed", PartitionableSlot=False, DynamicSlot=True,
                KettlePool=one.requested.pool,
            )  # fmt: skip

    def pause(self, name: str, *, drain: bool = False) -> None:
        state = self.pools[name]
        paused = Paused(by="root", at=self.now, reason="", drain=drain)
        self.pools[name] = msgspec.structs.replace(state, paused=paused)

    def apply(self, changed: WorkerPool) -> None:
        """Another file of a pool."""
        self.pools[changed.name] = msgspec.structs.replace(self.pools[changed.name], pool=changed)
        for one in changed.offers:
            self.templates.setdefault(template_of(changed.name, one), TemplateRecord(proven=True))


def machines(plan: Plan) -> dict[str, int]:
    """How many of each offer are asked for."""
    found: dict[str, int] = {}
    for lease in plan.leases:
        found[lease.offer.name] = found.get(lease.offer.name, 0) + 1
    return found
