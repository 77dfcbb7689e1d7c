"""What a negotiation cycle gave and refused, on the stream `cycle/<n>`."""

import msgspec

from kettle_wire.events.base import Event


class Match(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """So many jobs of one autocluster may go to one slot."""

    submitter: str
    schedd: str
    autocluster: int
    slot: str
    startd: str
    count: int
    limits: dict[str, float] = {}
    """How much of which concurrency limits each job uses."""


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """One conjunct of a Requirements expression and how many slots it alone refuses."""

    side: str
    """`job` or `slot`: whose Requirements it stands in."""
    text: str
    refuses: int


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """So many slots would suit that others have, and this is why none of these makes room."""

    rule: str
    """
    `off`: NEGOTIATOR_CONSIDER_PREEMPTION is false; `no_rule`: there is no PREEMPTION_REQUIREMENTS; `machine`: the machine lets
    no priorities count; `rank`: it ranks what runs there higher; `requirements`: PREEMPTION_REQUIREMENTS is not true; `share`:
    all that is allowed, but the submitter has its share already, or what its group or a limit lets it have.
    """
    slots: int


class Rejection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    Jobs of one autocluster that got nothing, or not enough, and why.

    What is left out of a record has its default; those that were recorded before `cause` was have only the first ones.
    """

    submitter: str
    schedd: str
    autocluster: int
    count: int
    reason: str
    slots: int
    """How many slots were considered."""
    clauses: list[Clause] = []
    """Those that refuse most slots; `more` others are left out."""
    more: int = 0
    cause: str = ""
    """
    The reason for programs: `fault` (the job's own expressions), `no_slots`, `no_match`, `busy`, `share` (busy, and the
    submitter has its share), `ceiling`, `quota`, `concurrency`.
    """
    asked: int = 0
    """Jobs that wanted a slot when the cycle began: `given` got one, `count` did not."""
    given: int = 0
    able: int = 0
    """How many slots could run such a job if nothing else ran there."""
    limits: list[str] = []
    """The concurrency limits that are reached."""
    share: float = 0.0
    """The submitter's share of the pool, or of what its group may have, in slot weights."""
    used: float = 0.0
    """What the submitter has after the cycle, in slot weights."""
    withheld: list[Withheld] = []
    """Which slots of others would suit too, by what protects them."""


class CycleNegotiated(Event, frozen=True, tag="cycle.negotiated/1"):
    """
    One cycle. Cycles that give nothing and refuse what the last one refused are not recorded.

    An autocluster with matches and no rejection got all that it asked for, as far as its rejection has been worked out.
    """

    cycle: int
    started: float
    """Seconds since the epoch."""
    duration: float
    """Seconds of matchmaking."""
    slots: int
    idle: int
    matches: list[Match] = []
    rejections: list[Rejection] = []
    more: int = 0
    """So many rejections more were news; a later cycle records them."""
