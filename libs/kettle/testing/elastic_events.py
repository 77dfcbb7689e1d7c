"""An example of each event of pools of workers, with its stream."""

from typing import Final

from kettle_wire.events.codec import Recorded
from kettle_wire.events.host import (
    HostAsleep,
    HostAwake,
    HostBroken,
    HostFenced,
    HostForgotten,
    HostHibernating,
    HostMended,
    HostNotWoken,
    HostWaking,
)
from kettle_wire.events.lease import (
    Demand,
    LeaseAccepted,
    LeaseBooting,
    LeaseBusy,
    LeaseConsole,
    LeaseDeferred,
    LeaseDraining,
    LeaseDuplicated,
    LeaseDuplicateGone,
    LeaseExtended,
    LeaseFailed,
    LeaseGone,
    LeaseInDoubt,
    LeaseJoining,
    LeaseLost,
    LeaseQuarantined,
    LeaseReady,
    LeaseRequested,
    LeaseSubmitting,
    LeaseTerminating,
    LeaseUnwanted,
    LeaseValidating,
    OfferClosed,
    OfferMeasured,
    OfferOpened,
    OrphanFound,
    OrphanGone,
    OrphanRemoving,
    ProviderClosed,
    ProviderFrozen,
    ProviderOpened,
    ProviderThawed,
    TemplateClosed,
    TemplateOpened,
)
from kettle_wire.events.plan import PlanMade
from kettle_wire.events.pool import PoolChanged, PoolPaused, PoolResumed, PoolRetired
from kettle_wire.leases import ErrorClass, MachineState
from kettle_wire.worker_pools import Hibernation, Offer, WorkerPool

_UNTIL: Final = 1_700_000_600.0
_OFFER: Final = Offer(
    name="small", provider="cloud", flavour="m5.large", cpus=2, memory=8192, price=0.1, currency="EUR"
)
_LEASE: Final = "lease/lab-7-1"
_TEMPLATE: Final = "template/lab.0f1e2d3c4b5a6978"
_HOST: Final = "host/desk1"
_ORPHAN: Final = "orphan/cloud.4b5a.1700000000"
_FULL: Final = "InsufficientInstanceCapacity"

ELASTIC: Final[list[tuple[str, Recorded]]] = [
    (
        "pool/lab",
        PoolChanged(pool=WorkerPool(name="lab", offers=[_OFFER]), digest="9c73", by="grace", at=1.0),
    ),
    ("pool/lab", PoolPaused(reason="the cloud is maintained", by="grace", at=2.0)),
    ("pool/lab", PoolResumed(by="grace", at=3.0)),
    ("pool/lab", PoolRetired(by="grace", at=4.0)),
    ("plan/made", PlanMade(number=7, inputs="ab12", slots=4, leases=1)),
    (
        _LEASE,
        LeaseRequested(
            lease="lab-7-1",
            pool="lab",
            offer=_OFFER,
            life=86_400.0,
            until=_UNTIL,
            plan=7,
            ordinal=1,
            demand=[Demand("alice", "ap1", "3", 2)],
        ),
    ),
    (_LEASE, LeaseSubmitting(attempt=1, until=_UNTIL)),
    (_LEASE, LeaseInDoubt(attempt=1, until=_UNTIL, words="no answer of the provisioner")),
    (_LEASE, LeaseDeferred(attempt=1, error=ErrorClass.RATE, words="429", again=_UNTIL, until=_UNTIL)),
    (_LEASE, LeaseAccepted(handle="i-0f1e", until=_UNTIL)),
    (_LEASE, LeaseBooting(until=_UNTIL)),
    (_LEASE, LeaseJoining(until=_UNTIL)),
    (_LEASE, LeaseValidating(until=_UNTIL)),
    (_LEASE, LeaseExtended(progress="image-cache", until=_UNTIL)),
    (_LEASE, LeaseReady(until=_UNTIL)),
    (_LEASE, LeaseBusy(until=_UNTIL)),
    (_LEASE, LeaseQuarantined(words="5 jobs failed at once", until=_UNTIL)),
    (_LEASE, LeaseDraining(why="plan 9: idle", until=_UNTIL)),
    (_LEASE, LeaseUnwanted(why="plan 9: unneeded")),
    (_LEASE, LeaseTerminating(why="plan 9: idle", removal=1, until=_UNTIL)),
    (_LEASE, LeaseDuplicated(handle="i-7788", removal=1, until=_UNTIL)),
    (_LEASE, LeaseDuplicateGone(handle="i-7788")),
    (_LEASE, LeaseConsole(size=16)),
    (_LEASE, LeaseLost(words="i-0f1e does not exist", until=_UNTIL)),
    (_LEASE, LeaseFailed(words=_FULL, error=ErrorClass.CAPACITY)),
    (_LEASE, LeaseGone(words="terminated", seconds=900.0, cost=0.025, currency="EUR", boot=41.5)),
    (
        _ORPHAN,
        OrphanFound(provider="cloud", handle="i-9", lease="", state=MachineState.RUNNING, until=_UNTIL),
    ),
    (_ORPHAN, OrphanRemoving(removal=1, until=_UNTIL)),
    (_ORPHAN, OrphanGone(words="terminated")),
    ("offer/lab.small", OfferClosed(words=_FULL, until=_UNTIL, times=1, error=ErrorClass.CAPACITY)),
    ("offer/lab.small", OfferOpened(why="lab-8-1 is ready")),
    ("offer/lab.small", OfferMeasured(lease="lab-7-1", boot=41.5)),
    (_TEMPLATE, TemplateClosed(words="no such image", until=0.0, times=1, error=ErrorClass.IMAGE)),
    (_TEMPLATE, TemplateOpened(why="grace has opened it")),
    ("provider/cloud", ProviderClosed(error=ErrorClass.AUTH, words="AuthFailure", until=0.0, times=1)),
    ("provider/cloud", ProviderOpened(why="grace has opened it")),
    ("provider/cloud", ProviderFrozen(missing=12, of=30, until=_UNTIL)),
    ("provider/cloud", ProviderThawed(why="they are there again")),
    (
        _HOST,
        HostHibernating(
            machine="desk1",
            pool="desks",
            offer="desk",
            level=Hibernation.S3,
            attempt=1,
            until=_UNTIL,
            why="plan 8: it was idle for as long as its pool lets it",
            slots=[{"Name": "slot1@desk1", "Cpus": 4, "PartitionableSlot": True}],
        ),
    ),
    (_HOST, HostFenced(attempt=1)),
    (_HOST, HostAsleep(machine="desk1", pool="desks", offer="desk")),
    (_HOST, HostWaking(attempt=2, until=_UNTIL, demand=[Demand("ann@pool", "schedd", "3", 2)], why="plan 9")),
    (
        _HOST,
        HostNotWoken(words="it did not answer within 180 s after it was woken", failures=1, again=_UNTIL),
    ),
    (_HOST, HostBroken(words="it did not answer within 180 s after it was woken", failures=3)),
    (_HOST, HostMended(by="grace")),
    (_HOST, HostAwake(words="it woke without us")),
    (_HOST, HostForgotten(why="its pool has it no more")),
]
