"""What a negotiation cycle gave and refused, on the stream `cycle/<n>`."""

import msgspec

from kettle.wire.events.base import Event


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """So many jobs of one autocluster may go to one slot."""

    submitter: str
    schedd: str
    autocluster: int
    slot: str
    startd: str
    count: int


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """One conjunct of a Requirements expression and how many slots it alone refuses."""

    side: str
    """`job` or `slot`: whose Requirements it stands in."""
    text: str
    refuses: int


class Rejection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Jobs of one autocluster that got nothing, or not enough, and why."""

    submitter: str
    schedd: str
    autocluster: int
    count: int
    reason: str
    slots: int
    """How many slots were considered."""
    clauses: list[Clause] = []


class CycleNegotiated(Event, frozen=True, tag="cycle.negotiated/1"):
    """One cycle. Cycles that give nothing and refuse what the last one refused are not recorded."""

    cycle: int
    started: float
    """Seconds since the epoch."""
    duration: float
    """Seconds of matchmaking."""
    slots: int
    idle: int
    matches: list[Match] = []
    rejections: list[Rejection] = []
