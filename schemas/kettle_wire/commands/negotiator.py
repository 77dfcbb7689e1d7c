"""What a negotiator is asked."""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.events.cycle import Match, Rejection
from kettle_wire.events.principal import Setting

PrincipalName = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern=r"^[!-~]+$")]


class Why(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the last negotiation said of an autocluster."""

    submitter: str
    schedd: str
    autocluster: int
    changes: Annotated[Ad, msgspec.Meta(max_length=100)] = {}
    """What the analysis is of: the jobs, if they had these attributes instead."""


class Remedy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What would become of the jobs if they asked for something else, and for all else as they do."""

    attribute: str
    """Of the job, as RequestMemory."""
    asked: float
    most: float
    """The largest amount below that with which at least one slot would match that does not now."""
    slots: int
    """So many slots would match if that was asked for."""
    least: float
    """With this `least_slots` would match: all that another amount alone can gain."""
    least_slots: int


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """What slots say of an attribute that a clause asks for."""

    attribute: str
    values: list[tuple[str, int]]
    """The most frequent values as text, with how many slots have each; `undefined`: they say nothing."""
    others: int = 0
    """How many slots have other values."""


class Tried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A clause that was tried on all slots."""

    side: str
    """
    `job` or `slot`: whose Requirements it stands in; a request of the job that has no room is a clause of it too.
    """
    text: str
    asked: int
    """How many slots it concerns: one of a slot's own only those that have it."""
    passes: int
    only: int = 0
    """
    How many slots it alone keeps the jobs from: they would match without it, or if less was asked of what it is about.
    """
    present: list[Present] = []
    """What slots say that it refuses: those that are `waiting`, or that it refuses `only`, if there are any."""
    without: int = 0
    """How many slots more would match if a job's Requirements did not have it, and all else was as it is."""
    waiting: int = 0
    """How many slots that may match later refuse by it now, and will not when what changes by itself is otherwise."""


class SuggestedEdit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Attributes of the job that could be edited together."""

    dropped: list[str] = []
    """Clauses that are left out of its Requirements,"""
    requirements: str = ""
    """and what is left of these; empty: they stay as they are."""
    requests: dict[str, float] = {}
    """What it would ask for instead, by attribute."""
    slots: int
    """How many slots would match then."""


class UsedUp(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of which too little is left for one more such job, in slots that could run it."""

    resource: str
    """As in the job's request: Memory of RequestMemory."""
    slots: int
    """In so many of them."""
    asked: float
    """The least that is asked of one of them, as ads count it: cores, MiB, KiB, pieces."""
    left: int
    """The most that is left in one of them."""


class Analysis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The jobs of an autocluster against all machines as they are now, as if nothing ran there."""

    slots: int
    able: int
    """How many pass all clauses together."""
    clauses: list[Tried]
    """Those that refuse most slots first; `more` others are left out."""
    more: int = 0
    remedies: list[Remedy] = []
    """Requests that could be smaller, the one that gains most first."""
    free: int = 0
    """How many of the able have room for one at this moment."""
    used_up: list[UsedUp] = []
    """Where none has: of what too little is left in the able ones that are divided among jobs, the one that most lack first."""
    later: int = 0
    """How many others would match when what changes by itself was otherwise: their owner's presence, the load, the time."""
    edits: list[SuggestedEdit] = []
    """Changes of its Requirements after which more slots match, the one that gains most first."""
    for_later: bool = False
    """After the remedies and edits no slot would match now, but so many when what changes by itself was otherwise."""
    together: list[str] = []
    """Where no clause refuses alone: the fewest that do so together somewhere,"""
    together_slots: int = 0
    """and in how many slots just these do."""
    fault: str = ""
    """Why the job can match nothing, whatever slots say."""


class RecordedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """
    From the record: the last cycle that gave or refused something to this autocluster; None: none has yet.
    """

    cycle: int | None
    at: float
    rejection: Rejection | None = None
    matches: list[Match] = []


class Verdict(RecordedVerdict, frozen=True, kw_only=True):
    """What is on record, and how it is now."""

    analysis: Analysis | None = None
    """The present state, if there are such jobs still waiting."""


class QueryPriorities(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How submitters stand with the accountant."""

    names: list[PrincipalName] = []
    """Of these alone; empty: of all who are known."""


class Priority(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one submitter stands. Times in seconds since the epoch, 0: never; usage in seconds."""

    name: str
    effective: float
    """Real priority times factor; smaller is better."""
    priority: float
    factor: float
    factor_set: bool = False
    """An administrator set the factor; else it follows from the name."""
    slots: float = 0.0
    """In use now."""
    weight: float = 0.0
    """What these count for, by SLOT_WEIGHT: cores, if nothing else is set."""
    accumulated: float = 0.0
    weighted_accumulated: float = 0.0
    begun: float = 0.0
    last: float = 0.0
    floor: float = 0.0
    ceiling: float = -1.0
    group: str = ""
    """The accounting group that it is in; empty: none."""


class GroupStanding(msgspec.Struct, frozen=True, kw_only=True):
    """
    How an accounting group stands since the last cycle, in slot weights; `<none>` is who is in no other.
    """

    name: str
    config_quota: float
    """As it is configured: an amount, or a part of its parent's (`dynamic`)."""
    dynamic: bool
    quota: float
    """What is for its own submitters."""
    subtree_quota: float
    """What is for these and the groups below."""
    accept_surplus: bool
    autoregroup: bool
    requested: float
    """What its submitters had and wanted."""
    allotted: float
    """What they may have, with what others leave."""
    used: float
    subtree_used: float
    sort_key: float
    """The smallest is served first."""
    standing: Priority | None = None
    """Priority and usage of the group with the groups below it, under the name `<group>`."""


class Priorities(msgspec.Struct, frozen=True, kw_only=True):
    """Who stands how, the best first."""

    at: float
    half_life: float
    submitters: list[Priority]
    groups: list[GroupStanding] = []
    """All accounting groups, if nobody in particular was asked about."""
    concurrency_limits: dict[str, float] = {}
    """Of what there is only so much, by the names that jobs use, if nobody in particular was asked about."""
    concurrency_limit_defaults: dict[str, float] = {}
    """How much there is of each `prefix.name` that has no limit, by prefix."""
    concurrency_limit_default: float = 0.0
    """How much there is of what has no limit otherwise; 0: that was not asked about."""


class SetPrincipal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Set something of a submitter, who need not be known yet."""

    id: CommandId
    name: PrincipalName
    setting: Setting
    value: float


class ResetUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Set accumulated usage to nothing; priorities and factors stay."""

    id: CommandId
    name: PrincipalName | None
    """None: everybody's."""


class DeletePrincipal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Forget a submitter: priority, usage, factor, floor and ceiling."""

    id: CommandId
    name: PrincipalName


class Administered(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded, of so many submitters."""

    submitters: int
    position: Position


WHY = Endpoint("negotiator", "why", Why, Verdict, callers=(Caller.USER, Caller.SESSIONS), repeat=Repeat.QUERY)
QUERY_PRIORITIES = Endpoint(
    "negotiator",
    "query_priorities",
    QueryPriorities,
    Priorities,
    callers=(Caller.USER, Caller.GATEWAY, Caller.SCALER),
    repeat=Repeat.QUERY,
)
SET_PRINCIPAL = Endpoint(
    "negotiator",
    "set_principal",
    SetPrincipal,
    Administered,
    callers=(Caller.ADMINISTRATOR,),
    repeat=Repeat.FIRST_ANSWER,
)
RESET_USAGE = Endpoint(
    "negotiator",
    "reset_usage",
    ResetUsage,
    Administered,
    callers=(Caller.ADMINISTRATOR,),
    repeat=Repeat.FIRST_ANSWER,
)
DELETE_PRINCIPAL = Endpoint(
    "negotiator",
    "delete_principal",
    DeletePrincipal,
    Administered,
    callers=(Caller.ADMINISTRATOR,),
    repeat=Repeat.FIRST_ANSWER,
)
