"""
What the scaler is asked about jobs that wait: whether machines come for them, and if not, why. It is apart from what else is asked
about pools of workers, because a command that explains a job loads it.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.jobs import Name as ServiceName


class ExplainWait(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is planned for waiting jobs of one kind."""

    submitter: Annotated[str, msgspec.Meta(max_length=1024)]
    schedd: ServiceName
    autocluster: int


class OutlookKind(StrEnum):
    """What comes of it that jobs wait, in one pool of workers."""

    PLANNED = "planned"
    """Machines come, or are there."""
    WAKING = "waking"
    """A machine of it that sleeps is being woken."""
    YOUNG = "young"
    """They have not waited long enough to be a reason for machines."""
    CLOSED = "closed"
    """Offers that could hold them failed, and are tried again later."""
    BUDGET = "budget"
    """Its budget of this day is used up."""
    BOUNDED = "bounded"
    """It may not have more machines; the words are the bound."""
    PAUSED = "paused"
    """Somebody has paused it; the words are who, and the reason."""
    LIMITED = "limited"
    """Their submitter or group has as much as it may have, so that machines would not help."""
    IMPOSSIBLE = "impossible"
    """No offer can hold them; the words are why."""


class PoolOutlook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one pool of workers does about waiting jobs."""

    pool: str
    kind: OutlookKind
    offer: str = ""
    words: str = ""
    leases: list[str] = []
    """The machines that come, some of them if they are many."""
    machines: list[str] = []
    """Of a static pool: the machines that are being woken, some of them if they are many."""
    since: float = 0.0
    """Since when the first of them is being woken, seconds since the epoch."""
    state: str = ""
    """How far the first of them is: the word of a `kettle_wire.leases.LeaseState`."""
    next_try: float = 0.0
    """When a closed offer is tried again, or the first machine is expected to be ready, or has to be awake, seconds since the epoch; 0: it is not known."""


class PoolOutlooks(msgspec.Struct, frozen=True, kw_only=True):
    """What each pool does, the most promising first; none: no plan has looked at these jobs yet."""

    outlooks: list[PoolOutlook]
    plan: int = 0
    """The number of the plan that it is taken from."""


EXPLAIN_WAIT = Endpoint(
    "scaler", "explain_wait", ExplainWait, PoolOutlooks, callers=(Caller.USER,), repeat=Repeat.QUERY
)
