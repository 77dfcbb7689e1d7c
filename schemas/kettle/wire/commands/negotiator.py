"""What a negotiator is asked."""

import msgspec

from kettle.wire.endpoint import Endpoint
from kettle.wire.events.cycle import Match, Rejection


class Why(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the last negotiation said of an autocluster."""

    submitter: str
    schedd: str
    autocluster: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """From the record: the last cycle that gave or refused something to this autocluster; None: none has yet."""

    cycle: int | None
    at: float
    rejection: Rejection | None = None
    matches: list[Match] = []


WHY = Endpoint("negotiator", "why", Why, Verdict)

ENDPOINTS = (WHY,)
