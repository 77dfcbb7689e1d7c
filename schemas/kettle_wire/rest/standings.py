"""Who may have which part of the pool, who has it, and how that was over time."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.commands.negotiator import GroupStanding
from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import Limit, Page
from kettle_wire.rest.route import Moment, Route

UserKey = Literal[
    "effective", "-effective", "name", "-name", "in_use", "-in_use", "share", "-share", "used", "-used"
]


class ListUsers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List submitters as the accountant knows them, with priorities, usage and jobs; the best effective priority comes first.
    """

    name: list[Name] = []
    """Only these."""
    group: list[Name] = []
    """Only submitters of these accounting groups; `none`: those who are in none."""
    busy: bool = False
    """Only submitters with jobs in a queue or slots in use."""
    sort: UserKey = "effective"
    """A minus sign has the greatest first."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a submitter stands.  Usage counts in slot weights: cores, if nothing else is set."""

    name: str
    group: str = ""
    """The accounting group; absent: none."""
    effective: float
    """Real priority times factor; the smallest is served first."""
    priority: float
    """Real: follows the use of the pool with a half-life."""
    factor: float
    factor_set: bool = False
    """An administrator set the factor; else it follows from the name."""
    share: float
    """What it would get of its group, or of the pool, if all known submitters wanted something; from 0 to 1."""
    part: float
    """What it has of all that is in use; from 0 to 1."""
    slots: float
    """In use now."""
    in_use: float
    """In use now, in slot weights."""
    used: float
    """So far, in hours of slot weights."""
    begun: Moment | None = None
    """When it first used something."""
    last: Moment | None = None
    """When it last did."""
    floor: float | None = None
    """Served first until this is in use; absent: there is none."""
    ceiling: float | None = None
    """The most that may be in use; absent: as much as there is."""
    idle: int = 0
    """Jobs in the queues of all access points."""
    running: int = 0
    held: int = 0


class Users(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of submitters."""

    at: Moment
    """When the accountant said so."""
    half_life: float
    """Seconds in which half of what was used is forgotten."""
    users: list[User]
    count: int
    """How many there are on all pages."""
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""


class GetFairshare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get the tree of accounting groups with quotas and what is used, and the shares of all submitters."""


class ShareGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An accounting group in the tree."""

    parent: str | None = None
    """The group above; absent: it is at the top."""
    standing: GroupStanding


class Share(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a submitter may have and has; from 0 to 1."""

    name: str
    group: str = ""
    share: float
    """Of its group, or of the pool, if all known submitters wanted something."""
    part: float
    """Of all that is in use."""
    in_use: float
    """Slot weights."""
    effective: float


class Fairshare(msgspec.Struct, frozen=True, kw_only=True):
    """How the pool is shared now."""

    at: Moment
    half_life: float
    """Seconds."""
    groups: list[ShareGroup]
    """A group comes behind the one above it; none: the pool has no groups."""
    shares: list[Share]
    """By group, the largest share first."""


class GetFairshareHistory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get how many jobs owners had idle, running and held at moments of a span of time; recorded for 90 days.
    """

    owner: Annotated[list[Name], msgspec.Meta(max_length=50)] = []
    """None: the ten who ran most in this time."""
    since: Moment | None = None
    """Else a day before `until`."""
    until: Moment | None = None
    """Else now."""
    points: Annotated[int, msgspec.Meta(ge=2, le=500)] = 120
    """Moments, evenly spread."""


class OwnerHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one owner, one number for each moment."""

    owner: str
    idle: list[int]
    running: list[int]
    held: list[int]


class FairshareHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs over time."""

    times: list[Moment]
    owners: list[OwnerHistory]
    """Who ran most comes first."""


LIST_USERS = Route("GET", "/users", "list_users", parameters=ListUsers, reply=Users)
GET_FAIRSHARE = Route("GET", "/fairshare", "get_fairshare", parameters=GetFairshare, reply=Fairshare)
GET_FAIRSHARE_HISTORY = Route(
    "GET",
    "/fairshare/history",
    "get_fairshare_history",
    parameters=GetFairshareHistory,
    reply=FairshareHistory,
)
