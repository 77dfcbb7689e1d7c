"""
What a scaler has planned, on the stream `plan/made`: for all pools together, because a job may run in several of them.

The version of the event is the number of the plan.  The leases that it asks for are recorded in the same frame, each on its own
stream, with ids `<pool>-<number of the plan>-<ordinal>`.
"""

from enum import StrEnum

import msgspec

from kettle_wire.events.base import Event
from kettle_wire.events.lease import Demand, Shape


class Bound(StrEnum):
    """Why no more machines of an offer are asked for."""

    NEED = "need"
    """No more are needed."""
    POOL_MAX = "pool max"
    OFFER_MAX = "offer max"
    OWNER_MAX = "owner max"
    """As many as the pool may have for the jobs of one person."""
    ROOM = "provider room"
    """The provider does not let us have more."""
    BUDGET = "budget"
    """What the pool may spend on this day (UTC)."""
    CANARY = "canary"
    """A template that has not made a worker yet is tried with one machine."""
    RAMP = "ramp"
    """Machines of this offer failed lately: at most twice as many are made as have become ready."""
    ACTIONS = "actions"
    """The rest comes with the next plan."""
    GANG = "gang"
    """There is not room for all machines of a job, so none is made."""
    AWAKE = "all awake"
    """Of a static pool: none of its machines is asleep any more that could be woken."""
    WAKING = "waking"
    """Of a static pool: as many are being woken as may be at the same time."""


class Obstacle(StrEnum):
    """Why an offer is nothing for a group of jobs."""

    CLAUSE = "clause"
    """A requirement is not met, of the job or of the machine; the words are the expression."""
    LIFE = "life"
    """Its machines do not live long enough."""
    OWNER = "owner"
    """The pool is for others."""
    SCALING = "scaling"
    """
    The jobs ask for machines of another shape, or for none, or do not wait until one is ready; the words are what they ask for, or why.
    """
    CLOSED = "closed"
    """It failed, and is tried again later."""
    PAUSED = "paused"
    """Somebody has paused the pool."""
    BOUND = "bound"
    """It would do, and there may be no more of it; the words are a `Bound`."""


class OfferObstacle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why one offer is nothing for a group of jobs."""

    pool: str
    offer: str
    obstacle: Obstacle
    words: str = ""
    until: float = 0.0
    """When it is tried again, seconds since the epoch; 0: nobody knows."""


class WaitingJobs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Idle jobs that nothing in the pool can tell apart (an autocluster), and what is planned for them."""

    submitter: str
    schedd: str
    autocluster: int
    example: str = ""
    """The id of one of them."""
    jobs: int
    """How many wait."""
    cpus: float = 0.0
    memory: float = 0.0
    """MiB that each asks for."""
    shape: Shape = Shape.SHARED
    nodes: int = 1
    """Slots that each needs at the same time."""
    free: int = 0
    """For so many there is room now."""
    coming: int = 0
    """For so many machines are on their way, those of earlier plans."""
    planned: int = 0
    """For so many this plan asks for machines."""
    limited: int = 0
    """So many may not run, however many machines there were: their submitter or group has what it may have."""
    young: int = 0
    """So many have not waited long enough to be a reason for new machines."""
    fault: str = ""
    """What is wrong with the jobs themselves."""
    obstacles: list[OfferObstacle] = []
    """If some are left: what is the matter with each offer."""
    leases: list[str] = []
    """The leases that are asked for on their behalf, some of them if they are many."""


class PlannedMachines(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Machines of one offer that this plan asks for, or that it would ask for if it could."""

    pool: str
    offer: str
    shape: Shape
    machines: int
    wanted: int
    bound: Bound = Bound.NEED
    """Why it is not more."""
    price: float = 0.0
    """Of a machine for an hour."""
    score: float = 0.0
    """Its price, with what is added for slow boots and likely failures, and less for what is liked: the least is taken."""


class RemovalCause(StrEnum):
    """Why a machine is to go."""

    UNNEEDED = "unneeded"
    """There is no machine yet, and what it was for is gone."""
    IDLE = "idle"
    """It had no job for as long as its pool lets it, and none would run there."""
    PATIENCE = "patience"
    """It was not ready or had no job for as long as the jobs that it is made for wait for one machine."""
    SPARSE = "sparse"
    """It has few jobs, and others have room for them."""
    MAX = "max"
    """Its pool is to be smaller."""
    BUDGET = "budget"
    """Its pool has spent what it may on this day."""
    GANG = "gang"
    """Others of its gang did not come in time."""
    POOL = "pool"
    """Its pool is given up, or paused with all that it has."""


class Removal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lease that is to end."""

    pool: str
    lease: str
    cause: RemovalCause
    force: bool = False
    """With what runs there; else it takes no more jobs, and goes when nothing is claimed."""


class PlannedWake(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine of a static pool that is to be woken."""

    pool: str
    machine: str
    demand: list[Demand] = []
    """Because of whom."""


class PlannedSleep(msgspec.Struct, frozen=True, kw_only=True):
    """
    A machine of a static pool that is to sleep: it had no job for as long as its pool lets it, and none would run there.
    """

    pool: str
    machine: str


class PlanMade(Event, frozen=True, tag="plan.made/1"):
    """The scaler has looked at the demand, and something is different from the plan before."""

    number: int
    inputs: str
    """SHA-256 of everything that it follows from, in hexadecimal: the same inputs give the same plan."""
    slots: int
    """Slots that were looked at: those that are there, and those of leases on their way."""
    leases: int
    """Leases that are not over."""
    waiting: list[WaitingJobs] = []
    """In the order in which they are served."""
    machines: list[PlannedMachines] = []
    removals: list[Removal] = []
    wakes: list[PlannedWake] = []
    sleeps: list[PlannedSleep] = []
    took: float = 0.0
    """Seconds that it took to be made."""
