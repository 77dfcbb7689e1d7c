"""Pools of workers and their leases over HTTP: everybody may look, administrators change."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.commands.worker_pools import MOST_LEASES
from kettle_wire.events.plan import PlannedMachines, Removal, WaitingJobs
from kettle_wire.leases import LeaseId, LeaseState
from kettle_wire.rest.route import Moment, Route
from kettle_wire.worker_pools import Name, WorkerPool

_Reason = Annotated[str, msgspec.Meta(max_length=512)]


class ListPools(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the pools of workers, with how many machines they have in each state."""


class PoolAtAGlance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pool of workers."""

    name: str
    kind: str
    standing: str
    """`active`, `paused` (no machine is made), `draining` (those that there are go, too), `retiring` or `retired`."""
    by: str = ""
    """Who paused it."""
    reason: str = ""
    min: int
    max: int
    leases: dict[str, int] = {}
    """How many there are, by state."""
    closed_offers: int = 0
    version: int
    changed: Moment


class Pools(msgspec.Struct, frozen=True, kw_only=True):
    """By name."""

    pools: list[PoolAtAGlance]


class ApplyPool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Have a pool be as a pool file says (`text/plain`, TOML), or as a body of JSON with times in seconds and sizes in MB.  What is so
    already is not changed.
    """

    dry_run: bool = False
    """Only say what would be different."""


class PoolApplied(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded; with `dry_run`: it would be."""

    pool: str
    version: int
    changes: list[str]
    """What is different; none: it was so already."""


class GetPool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a pool with its offers and how they do."""

    pool: Name


class OfferStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an offer does."""

    offer: str
    provider: str
    leases: int = 0
    closed: bool = False
    """No machine of it is ordered now."""
    closed_until: Moment | None = None
    """Absent of a closed one: until somebody resumes the pool."""
    error: str = ""
    """What is wrong: `capacity`, `quota`, `image`, `request`, `auth`, `rate`, `transient` or `config`."""
    words: str = ""
    boot: float = 0.0
    """Seconds, the median of the last; absent: none was ready yet."""
    success: float = 0.0


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool."""

    summary: PoolAtAGlance
    pool: WorkerPool
    offers: list[OfferStanding]


class GetPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get the last plan: which jobs wait, which machines are ordered for them, what bound their number, and what is in the way.
    """

    pool: Name
    dry_run: bool = False
    """Make a plan of what waits now, and do not carry it out."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan; it is for all pools together, because a job may run in several."""

    number: int
    at: Moment
    carried_out: bool
    slots: int
    leases: int
    waiting: list[WaitingJobs]
    machines: list[PlannedMachines]
    removals: list[Removal]


class OrderPool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Pause a pool (no machine is made), resume it (and try what is closed), drain it (its machines go when their jobs have ended, and
    none is made), or retire it (the same, for good).
    """

    pool: Name
    action: Literal["pause", "resume", "drain", "retire"]


class PoolOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why."""

    reason: _Reason = ""


class ListLeases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List leases, the newest first: those that are not over, or those in some states."""

    pool: Annotated[str, msgspec.Meta(max_length=32)] = ""
    state: list[LeaseState] = []
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_LEASES)] = 100


class Lease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One machine that a provider makes and removes."""

    id: str
    pool: str
    offer: str
    provider: str
    state: str
    since: Moment
    deadline: Moment | None = None
    """When something is done about it if nothing is heard."""
    requested: Moment
    accepted: Moment | None = None
    ready: Moment | None = None
    expected: Moment | None = None
    """When it is expected to be ready."""
    ended: Moment | None = None
    handle: str = ""
    owner: str = ""
    attempt: int = 0
    cpus: int
    cost: float = 0.0
    currency: str = ""
    error: str = ""
    words: str = ""


class Leases(msgspec.Struct, frozen=True, kw_only=True):
    """The newest of those that were asked for."""

    leases: list[Lease]
    more: int
    """So many are left out."""


class OrderLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have one machine more of an offer, within the bounds of its pool, whether a job waits for it or not."""


class LeaseOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of what."""

    pool: Name
    offer: Name


class LeaseOrdered(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded; its provider will be asked."""

    id: str


class GetLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a lease, also one that is over."""

    id: LeaseId


class GiveUpLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have one machine go, when its jobs have ended."""

    id: LeaseId
    force: bool = False
    """Do not wait for its jobs, which run again elsewhere."""
    reason: _Reason = ""


class GetTimeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get everything that happened to a lease, from the plan that asked for it to the proof that it is gone.
    """

    id: LeaseId


class LeaseMoment(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    at: Moment
    type: str
    sentence: str


class LeaseTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, in order."""

    lease: Lease
    moments: list[LeaseMoment]


class GetConsole(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get the end of what a machine wrote while it started, as its provider has it."""

    id: LeaseId


class Console(msgspec.Struct, frozen=True, kw_only=True):
    """It."""

    text: str


_ORDERS = (404, 409, 413, 415, 422)

LIST_POOLS = Route("GET", "/pools", "list_pools", parameters=ListPools, reply=Pools, errors=(404,))
APPLY_POOL = Route(
    "POST",
    "/pools",
    "apply_pool",
    parameters=ApplyPool,
    body=WorkerPool,
    text_body=True,
    reply=PoolApplied,
    level="ADMINISTRATOR",
    errors=_ORDERS,
    headers=("Idempotency-Key",),
)
GET_POOL = Route("GET", "/pools/{pool}", "get_pool", parameters=GetPool, reply=Pool, errors=(404,))
GET_PLAN = Route("GET", "/pools/{pool}/plan", "get_plan", parameters=GetPlan, reply=Plan, errors=(404,))
ORDER_POOL = Route(
    "POST",
    "/pools/{pool}:{action}",
    "order_pool",
    parameters=OrderPool,
    body=PoolOrder,
    reply=PoolAtAGlance,
    level="ADMINISTRATOR",
    errors=_ORDERS,
    headers=("Idempotency-Key",),
)
LIST_LEASES = Route("GET", "/leases", "list_leases", parameters=ListLeases, reply=Leases, errors=(404,))
ORDER_LEASE = Route(
    "POST",
    "/leases",
    "order_lease",
    parameters=OrderLease,
    body=LeaseOrder,
    reply=LeaseOrdered,
    level="ADMINISTRATOR",
    errors=_ORDERS,
    headers=("Idempotency-Key",),
    creates=True,
)
GET_LEASE = Route("GET", "/leases/{id}", "get_lease", parameters=GetLease, reply=Lease, errors=(404,))
GIVE_UP_LEASE = Route(
    "DELETE",
    "/leases/{id}",
    "give_up_lease",
    parameters=GiveUpLease,
    reply=Lease,
    level="ADMINISTRATOR",
    errors=(404, 422),
    headers=("Idempotency-Key",),
)
GET_TIMELINE = Route(
    "GET",
    "/leases/{id}/timeline",
    "get_lease_timeline",
    parameters=GetTimeline,
    reply=LeaseTimeline,
    errors=(404,),
)
GET_CONSOLE = Route(
    "GET",
    "/leases/{id}/console",
    "get_lease_console",
    parameters=GetConsole,
    reply=Console,
    level="ADMINISTRATOR",
    errors=(404,),
)
