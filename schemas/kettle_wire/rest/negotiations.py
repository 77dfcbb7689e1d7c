"""What the negotiator gave and refused, cycle by cycle."""

from typing import Annotated, Any

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import Limit, Page
from kettle_wire.rest.route import Moment, Route

CycleNumber = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class ListNegotiations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List negotiation cycles that gave something or refused something else than the one before, the newest first; kept for 30 days.
    """

    submitter: list[Name] = []
    """Only cycles that gave these something, or refused it."""
    since: Moment | None = None
    """Only cycles that were recorded then or later."""
    until: Moment | None = None
    """Only cycles that were recorded before then."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""
    as_of: Moment | None = None
    """The list as it was then."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A reason, and how many jobs got nothing for it."""

    reason: str
    jobs: int


class Negotiation(msgspec.Struct, frozen=True, kw_only=True):
    """A cycle."""

    cycle: int
    negotiator: str
    recorded: Moment
    started: Moment
    """By the negotiator's clock."""
    duration: float
    """Seconds of matchmaking."""
    slots: int
    """That were considered."""
    idle: int
    """Jobs that asked."""
    matched: int
    """Jobs that got a slot."""
    rejected: int
    """Jobs that got none."""
    submitters: int
    """Who got something or were refused it."""
    refusals: list[Refusal]
    """The most frequent reasons, five at most."""


class Negotiations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of cycles."""

    negotiations: list[Negotiation]
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""
    frames: dict[str, int] = {}
    """How far each negotiator's record has been read."""


class GetNegotiation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get one negotiation cycle, with who got which slots and what was refused to whom, and why."""

    cycle: CycleNumber
    negotiator: Name = "negotiator"
    """Whose; pools mostly have one."""
    submitter: list[Name] = []
    """Only what concerns these."""
    limit: Limit = 500
    """The most matches, and the most rejections."""


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of an autocluster got a slot."""

    submitter: str
    schedd: str
    autocluster: int
    machine: str
    slot: str
    jobs: int


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of an autocluster got nothing."""

    submitter: str
    schedd: str
    autocluster: int
    jobs: int
    reason: str
    slots: int
    """That were considered."""
    clauses: list[dict[str, Any]]
    """Parts of Requirements (`side`, `text`) with how many slots each `refuses`."""


class NegotiationDetail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cycle with all that it decided."""

    negotiation: Negotiation
    matches: list[Matched]
    rejections: list[Rejected]
    cut: bool = False
    """There are more of either than `limit`: name submitters."""


LIST_NEGOTIATIONS = Route(
    "GET",
    "/negotiations",
    "list_negotiations",
    parameters=ListNegotiations,
    reply=Negotiations,
    headers=("If-None-Match",),
)
GET_NEGOTIATION = Route(
    "GET",
    "/negotiations/{cycle}",
    "get_negotiation",
    parameters=GetNegotiation,
    reply=NegotiationDetail,
    errors=(404,),
)
