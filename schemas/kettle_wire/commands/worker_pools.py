"""
What people ask the scaler about pools of workers and their leases; administrators change them, and everybody may look.
"""

from typing import Annotated, Final, Literal

import msgspec

from kettle_wire.commands.iam import Recorded
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.events.plan import PlanMade, PlannedMachines
from kettle_wire.leases import ErrorClass, LeaseId, LeaseState
from kettle_wire.worker_pools import HostState, Name, Offer, WorkerPool

MOST_LEASES: Final = 1000
"""Leases in one answer."""

Reason = Annotated[str, msgspec.Meta(max_length=512)]


class ApplyPool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have a pool be as its file says; one that is so already is not changed."""

    id: CommandId
    pool: WorkerPool


class PoolApplied(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded."""

    version: int
    """How many files that said something new there have been."""
    changes: list[str]
    """What is different now; none: it was so already."""
    position: Position


class CheckOffers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask the providers of some offers whether they could make such machines; nothing is made."""

    offers: Annotated[list[Offer], msgspec.Meta(min_length=1, max_length=256)]


class OfferFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something is wrong with an offer, as its provider says."""

    offer: str
    sentence: str
    unanswered: bool = False
    """The provider could not be asked, so that nothing is known of it."""


class OffersChecked(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong; nothing, if it is empty."""

    faults: list[OfferFault]


class ListPools(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pools of workers."""


PoolStanding = Literal["active", "paused", "draining", "retiring", "retired"]
"""
`paused`: no machine is made; `draining`: those that there are go, too; `retiring`: it is given up and still has machines.
"""


class PoolSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pool at a glance."""

    name: str
    kind: str
    standing: PoolStanding
    by: str = ""
    """Who paused or retired it."""
    reason: str = ""
    min: int
    max: int
    leases: dict[str, int] = {}
    """How many there are, by state; those that are over are not counted."""
    machines: dict[str, int] = {}
    """
    `wanted`, `coming`, `ready`, `leaving`; wanted are those that come and are ready, and those that a bound keeps the last plan from
    asking for.
    """
    waiting: int = 0
    """Idle jobs for which machines of it come, and those that are left over and could run on some."""
    hosts: dict[str, int] = {}
    """Of a static pool that hibernates: how many machines there are, by `HostState`."""
    planned: list[PlannedMachines] = []
    """What the last plan asks for, or would ask for if it could."""
    closed: int = 0
    """Offers of which no machine is ordered now."""
    next_try: float = 0.0
    """When the first of them is tried again, seconds since the epoch; 0: none is, by itself."""
    spent: float = 0.0
    """In `currency`, on this day (UTC), with what its machines have cost until now."""
    budget: float = 0.0
    """Of a day; 0: without limit."""
    currency: str = ""
    version: int
    changed: float
    """Seconds since the epoch."""


class Pools(msgspec.Struct, frozen=True, kw_only=True):
    """All pools, by name."""

    pools: list[PoolSummary]


class ShowPool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pool; `not_found`."""

    pool: Name


class OfferStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an offer does."""

    offer: str
    provider: str
    leases: int = 0
    """Machines of it that are not gone."""
    closed_until: float = 0.0
    """No machine of it is ordered before, seconds since the epoch; 0: it is open, -1: until somebody opens it."""
    error: ErrorClass | None = None
    words: str = ""
    """What its provider said."""
    boot: float = 0.0
    """Seconds in which machines were ready; 0: none has been."""
    success: float = 0.0
    """Which part of the orders is expected to end as a machine that works."""


class HostShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine of a static pool; times are seconds since the epoch, 0: there is none."""

    machine: str
    offer: str
    state: HostState
    since: float = 0.0
    """0: nothing was ever done about it."""
    deadline: float = 0.0
    """When something is done about it if it does not follow."""
    again: float = 0.0
    """It is not tried before."""
    failures: int = 0
    """So often in a row it was not woken."""
    words: str = ""
    """Why it is as it is."""


class PoolShown(msgspec.Struct, frozen=True, kw_only=True):
    """A pool, what it has, and how its offers do."""

    summary: PoolSummary
    pool: WorkerPool
    digest: str
    applied_by: str
    offers: list[OfferStanding]
    hosts: list[HostShown] = []
    """Machines of a static pool that hibernate."""


class ExplainPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the last plan was made of, and what it came to; `not_found`."""

    pool: Name
    dry_run: bool = False
    """Make a plan of what waits now, and do not carry it out."""
    at: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """The plan that was in force at this moment, seconds since the epoch; 0: the last."""


class PlanExplained(msgspec.Struct, frozen=True, kw_only=True):
    """A plan; it is for all pools together, because a job may run in several of them."""

    plan: PlanMade
    at: float
    """When it was made, seconds since the epoch."""
    carried_out: bool
    """False: it was only made for the question."""


class AskMachinesOverTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many machines a pool had and wanted; `not_found`."""

    pool: Name
    since: float
    """Seconds since the epoch."""
    until: float
    points: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200


class MachinesOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """What was true at moments that are equally far from each other; the series are as long as `times`."""

    times: list[float]
    """Seconds since the epoch."""
    wanted: list[int]
    coming: list[int]
    ready: list[int]
    complete_since: float
    """Machines of leases that were made before are missing."""


class PausePool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Make no more machines for a pool, until it is resumed; `drain`: and remove those that it has, when their jobs have ended.
    """

    id: CommandId
    pool: Name
    reason: Reason = ""
    drain: bool = False


class ResumePool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let a pool have machines again, and try its closed offers at once."""

    id: CommandId
    pool: Name


class RetirePool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give a pool up: its machines go when their jobs have ended, and none comes."""

    id: CommandId
    pool: Name


class ListLeases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Leases, the newest first."""

    pool: Annotated[str, msgspec.Meta(max_length=32)] = ""
    states: list[LeaseState] = []
    """Only in these; none: all that are not over."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_LEASES)] = MOST_LEASES


class LeaseShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One lease; times are seconds since the epoch, 0: it has not come to that."""

    lease: str
    pool: str
    offer: str
    provider: str
    state: LeaseState
    since: float
    deadline: float = 0.0
    """When something is done about it if nothing is heard; 0: there is none."""
    requested: float
    accepted: float = 0.0
    """When its provider had a name for it: from then on it costs."""
    ready: float = 0.0
    ended: float = 0.0
    cost: float = 0.0
    """In `currency`; of one that is not over, so far."""
    expected: float = 0.0
    """When it is expected to be ready; 0: it is, or was."""
    handle: str = ""
    owner: str = ""
    """Whose jobs alone it runs."""
    attempt: int = 0
    cpus: int
    price: float = 0.0
    currency: str = ""
    error: ErrorClass | None = None
    words: str = ""
    """Why it is as it is."""


class Leases(msgspec.Struct, frozen=True, kw_only=True):
    """The newest of those that were asked for."""

    leases: list[LeaseShown]
    more: int = 0
    """So many are left out."""


class LeaseTimeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that was recorded of a lease; `not_found`."""

    lease: LeaseId


class LeaseMoment(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a lease."""

    at: float
    """Seconds since the epoch."""
    data: bytes
    """The event, as it is in the log."""


class LeaseHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, in order, and where it stands."""

    lease: LeaseShown
    moments: list[LeaseMoment]


class ReadConsole(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a machine wrote while it started; `not_found`, `refused`: its provider does not say."""

    lease: LeaseId


class Console(msgspec.Struct, frozen=True, kw_only=True):
    """The end of it."""

    text: str


class OrderLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Have one machine more of an offer, whether a job waits for it or not; within the bounds of its pool, or `refused`.
    """

    id: CommandId
    pool: Name
    offer: Name


class LeaseOrdered(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded, and its provider will be asked."""

    lease: str
    position: Position


class GiveUpLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have one machine go, when its jobs have ended; `not_found`."""

    id: CommandId
    lease: LeaseId
    reason: Reason = ""
    force: bool = False
    """Do not wait for its jobs, which run again elsewhere."""


class ReportPool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machines that a pool had since some moment; `not_found`."""

    pool: Name
    since: float = 0.0
    """Seconds since the epoch; 0: as far back as the scaler remembers."""


class PoolReport(msgspec.Struct, frozen=True, kw_only=True):
    """Machines, by the end of each; those that are there now are among them."""

    leases: list[LeaseShown]
    since: float
    """From when on none is missing."""


_ADMINISTRATOR: Final = (Caller.ADMINISTRATOR,)
_USER: Final = (Caller.USER,)

APPLY_POOL = Endpoint(
    "scaler", "apply_pool", ApplyPool, PoolApplied, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
CHECK_OFFERS = Endpoint(
    "scaler", "check_offers", CheckOffers, OffersChecked, callers=_ADMINISTRATOR, repeat=Repeat.QUERY
)
LIST_POOLS = Endpoint("scaler", "list_pools", ListPools, Pools, callers=_USER, repeat=Repeat.QUERY)
SHOW_POOL = Endpoint("scaler", "show_pool", ShowPool, PoolShown, callers=_USER, repeat=Repeat.QUERY)
PAUSE_POOL = Endpoint(
    "scaler", "pause_pool", PausePool, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
RESUME_POOL = Endpoint(
    "scaler", "resume_pool", ResumePool, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
RETIRE_POOL = Endpoint(
    "scaler", "retire_pool", RetirePool, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
EXPLAIN_PLAN = Endpoint(
    "scaler", "explain_plan", ExplainPlan, PlanExplained, callers=_USER, repeat=Repeat.QUERY
)
MACHINES_OVER_TIME = Endpoint(
    "scaler",
    "machines_over_time",
    AskMachinesOverTime,
    MachinesOverTime,
    callers=_USER,
    repeat=Repeat.QUERY,
)
LIST_LEASES = Endpoint("scaler", "list_leases", ListLeases, Leases, callers=_USER, repeat=Repeat.QUERY)
LEASE_TIMELINE = Endpoint(
    "scaler", "lease_timeline", LeaseTimeline, LeaseHistory, callers=_USER, repeat=Repeat.QUERY
)
LEASE_CONSOLE = Endpoint(
    "scaler", "lease_console", ReadConsole, Console, callers=_ADMINISTRATOR, repeat=Repeat.QUERY
)
ORDER_LEASE = Endpoint(
    "scaler", "order_lease", OrderLease, LeaseOrdered, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
GIVE_UP_LEASE = Endpoint(
    "scaler", "give_up_lease", GiveUpLease, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
REPORT_POOL = Endpoint("scaler", "report_pool", ReportPool, PoolReport, callers=_USER, repeat=Repeat.QUERY)
