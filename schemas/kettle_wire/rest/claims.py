"""What runs on which slot, since when, and whose it is."""

from typing import Literal

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import GroupCount, Limit, Page
from kettle_wire.rest.route import Moment, Route

ClaimKey = Literal[
    "granted",
    "-granted",
    "ended",
    "-ended",
    "submitter",
    "-submitter",
    "machine",
    "-machine",
    "slot",
    "-slot",
]
ClaimGroup = Literal["submitter", "machine", "schedd"]


class ListClaims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List claims of slots, the last granted first; those that ended are kept for 90 days."""

    state: list[Literal["held", "ended"]] = []
    """None: `held`. With `as_of`: as they were then."""
    submitter: list[Name] = []
    schedd: list[Name] = []
    machine: list[Name] = []
    """The names of startds, as claims have them."""
    slot: list[Name] = []
    since: Moment | None = None
    """Only claims that were granted then or later."""
    until: Moment | None = None
    """Only claims that were granted before then."""
    sort: ClaimKey = "-granted"
    """A minus sign has the greatest first; claims that are held have no end and come last."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""
    group_by: list[ClaimGroup] = []
    """Instead of claims, how many there are of each combination."""
    as_of: Moment | None = None
    """The claims as they were then, with what ran on them."""


class RunningJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job on a slot."""

    id: str
    """`CLUSTER.PROC@SCHEDD`."""
    owner: str
    slot: str
    since: Moment
    """When this attempt was begun."""
    attempt: int
    """Counts the runs of the job from 1."""


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A slot that an access point has for the jobs of somebody."""

    id: str
    """Its public id; nobody can use the slot with it."""
    schedd: str
    machine: str
    slot: str
    submitter: str
    lease: float
    """Seconds without renewal after which the machine ends it."""
    granted: Moment
    ended: Moment | None = None
    """Absent: it is held."""
    reason: str | None = None
    """Why it ended."""
    job: RunningJob | None = None
    """What runs on it; absent: nothing, or it is over."""


class Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of claims, or counts of them."""

    claims: list[Claim] | msgspec.UnsetType = msgspec.UNSET
    """Absent with `group_by`."""
    groups: list[GroupCount] | msgspec.UnsetType = msgspec.UNSET
    """With `group_by`, the largest first; absent without."""
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""
    frames: dict[str, int] = {}
    """How far each queue has been read: the number of its last frame in this answer."""


LIST_CLAIMS = Route(
    "GET", "/claims", "list_claims", parameters=ListClaims, reply=Claims, headers=("If-None-Match",)
)
