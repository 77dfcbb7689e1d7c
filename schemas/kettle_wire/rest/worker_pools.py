"""Pools of workers and their leases over HTTP: everybody may look, administrators change."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.commands.worker_pools import MOST_LEASES
from kettle_wire.events.plan import PlannedMachines, PlannedSleep, PlannedWake, Removal, WaitingJobs
from kettle_wire.leases import LeaseId, LeaseState
from kettle_wire.rest.route import Moment, Route
from kettle_wire.worker_pools import HostState, Name, WorkerPool

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
    machines: dict[str, int] = {}
    """
    `wanted`, `coming`, `ready`, `leaving`; wanted are those that come and are ready, and those that a bound keeps the last plan from
    asking for.
    """
    hosts: dict[str, int] = {}
    """Of a static pool that hibernates: how many machines there are, by state."""
    waiting: int = 0
    """Idle jobs for which machines of it come, and those that are left over and could run on some."""
    planned: list[PlannedMachines] = []
    """What the last plan asks for, or would ask for if it could."""
    closed_offers: int = 0
    next_try: Moment | None = None
    """When the first of the closed offers is tried again; absent: none is, by itself."""
    spent: float = 0.0
    """On this day (UTC), with what its machines have cost until now."""
    budget: float = 0.0
    """Of a day; absent: without limit."""
    currency: str = ""
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


class StaticMachineAtAGlance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine that is there, whether it sleeps or not."""

    machine: str
    offer: str
    state: HostState
    since: Moment | None = None
    """Absent: nothing was ever done about it."""
    deadline: Moment | None = None
    """When something is done about it if it does not follow."""
    again: Moment | None = None
    """It is not tried before."""
    failures: int = 0
    """So often in a row it was not woken."""
    words: str = ""
    """Why it is as it is."""


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool."""

    summary: PoolAtAGlance
    pool: WorkerPool
    offers: list[OfferStanding]
    hosts: list[StaticMachineAtAGlance] = []
    """The machines of a static pool that hibernates."""


class GetPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get the last plan: which jobs wait, which machines are ordered for them, what bound their number, and what is in the way.
    """

    pool: Name
    dry_run: bool = False
    """Make a plan of what waits now, and do not carry it out."""
    at: Moment | None = None
    """The plan that was in force at this moment."""


class GetMachinesOverTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get how many machines a pool had and wanted, at moments that are equally far from each other; usually those of the last day.
    """

    pool: Name
    since: Moment | None = None
    until: Moment | None = None
    points: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200


class MachinesOverTime(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The series are as long as `times`."""

    times: list[Moment]
    wanted: list[int]
    coming: list[int]
    ready: list[int]
    complete_since: Moment | None = None
    """Machines of leases that were made before are missing; absent: none is missing."""


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
    wakes: list[PlannedWake] = []
    sleeps: list[PlannedSleep] = []


class GetReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get what the machines of a pool were used for and what they cost: those that ended in a span of time, and those that are there.
    """

    pool: Name
    since: Moment | None = None
    """Else a day ago."""
    by: Literal["owner", "job"] = "owner"


class ReportShare(msgspec.Struct, frozen=True, kw_only=True):
    """
    What one owner, or one job, used.  A machine costs its price for as long as its provider has it: who has used a part of its core
    time has claimed that part of the cost, and what was idle is shared among those who used the machine, in proportion.
    """

    name: str
    """Empty: of machines that ran no job at all."""
    jobs: int
    used: float
    """Core-seconds, by attempts that ended."""
    lost: float
    claimed: float
    """The price of what was used."""
    cost: float
    """With the part of what was idle on the same machines."""


class ReportDay(msgspec.Struct, frozen=True):
    """What the machines cost on one day (UTC)."""

    day: str
    cost: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Times in core-seconds; money in `currency`."""

    since: Moment
    """From when on none of the machines is missing."""
    machines: int
    failed: int
    provided: float
    used: float
    idle: float
    ratio: float
    """Provided for each core-second used; 0: nothing was used."""
    boot: float
    """Seconds in which half of the machines were ready; 0: none was."""
    cost: float
    currency: str
    shares: list[ReportShare]
    days: list[ReportDay]


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
GET_MACHINES_OVER_TIME = Route(
    "GET",
    "/pools/{pool}/machines",
    "get_pool_machines",
    parameters=GetMachinesOverTime,
    reply=MachinesOverTime,
    errors=(404, 422),
)
GET_REPORT = Route(
    "GET", "/pools/{pool}/report", "get_pool_report", parameters=GetReport, reply=Report, errors=(404, 413)
)
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
