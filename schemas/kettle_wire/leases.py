"""
Leases of workers: one lease is one machine that a provider makes and removes (a process, a virtual machine, a pod, a pilot).

The id of a lease is the name of its machine in the pool, and is embedded wherever a provider lets us: so a machine that was
made by a call whose answer was lost is found again, and never made twice.
"""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from kettle_wire.worker_pools import Offer

LIVES_ENOUGH: Final = "(TARGET.AllowedExecuteDuration ?: (TARGET.AllowedJobDuration ?: 0)) <= MY.TimeToLive"
"""What START of a machine with a lease says of jobs besides: it is there for as long as they may run."""

PRICE: Final = "KettlePrice"
CURRENCY: Final = "KettleCurrency"
"""Attributes of machines that cost something: what a core costs in an hour, and in which money."""

LeaseId = Annotated[str, msgspec.Meta(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9-]*$")]
"""`<pool>-<number of the plan>-<ordinal>`; also a host name (RFC 1123 label)."""
Handle = Annotated[str, msgspec.Meta(max_length=1024)]
"""The provider's own name of a machine."""
Words = Annotated[str, msgspec.Meta(max_length=4096)]
"""What a provider said, without secrets, cut."""


class LeaseState(StrEnum):
    """How far a lease is. Every state but the last two has a deadline, which people are shown."""

    REQUESTED = "requested"
    """Planned; no provider has been asked. It can be withdrawn without a call."""
    SUBMITTING = "submitting"
    """The provider is being asked."""
    IN_DOUBT = "in-doubt"
    """It was asked, and nobody knows the answer: it is looked for, never asked again."""
    ACCEPTED = "accepted"
    """The provider has a name for it."""
    BOOTING = "booting"
    JOINING = "joining"
    """The worker's program runs, and joins the pool."""
    VALIDATING = "validating"
    """It has joined, and examines itself."""
    READY = "ready"
    BUSY = "busy"
    """Jobs run on it."""
    QUARANTINED = "quarantined"
    """Jobs fail on it, or it fails its own examination: it takes none, and is removed."""
    DRAINING = "draining"
    """It takes no more jobs."""
    TERMINATING = "terminating"
    """The provider is asked to remove it, as often as it takes."""
    LOST = "lost"
    """It is not heard of any more, and its provider says that it is gone; what ran there is over."""
    FAILED = "failed"
    """There never was a machine, which is proven."""
    GONE = "gone"
    """There was one, and the provider proved that it is not there any more."""


class ErrorClass(StrEnum):
    """What is wrong when a provider refuses, by what is to be done about it."""

    CAPACITY = "capacity"
    """It has no machine of this kind now: another offer is tried."""
    QUOTA = "quota"
    """We may not have more."""
    IMAGE = "image"
    """The template cannot be used."""
    REQUEST = "request"
    """It cannot be asked for so: the offer is wrong."""
    AUTH = "auth"
    """Our credential is not accepted; it is not tried again."""
    RATE = "rate"
    """Too many questions."""
    TRANSIENT = "transient"
    """It may work in a moment; nothing was made."""
    CONFIG = "config"
    """The provider is not set up here: an extra is missing, or a setting."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A machine to be made."""

    lease: LeaseId
    attempt: int
    """Counts from 1; the same attempt is never made twice."""
    offer: Offer
    life: float
    """Seconds after which it ends itself, whatever happens."""
    pool: str = ""
    """The pool of workers that it belongs to."""
    owner: str = ""
    """Whose jobs alone it will run."""
    group: str = ""
    """The accounting group whose jobs alone, with the groups below it."""
    attributes: dict[str, str] = {}
    """ClassAd expressions of its ad, besides those of the offer."""
    start: str = ""
    """START of its slot, besides that of the offer."""
    whole: bool = False
    """Each job gets all of the machine."""


class MachineState(StrEnum):
    """What a provider says of a machine."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    BROKEN = "broken"
    """It is there and will never work; it may still cost something."""
    GONE = "gone"


class MachineFound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine as its provider shows it."""

    handle: Handle
    state: MachineState
    lease: str = ""
    """The lease that it was made for; empty: it does not say."""
    deployment: str = ""
    """Whose it is: two installations on one account leave each other alone."""
    words: Words = ""
    """Why it is as it is, in the provider's words."""
    error: ErrorClass | None = None
    """Of a broken one."""
    created: float = 0.0
    """Seconds since the epoch, as the provider says; 0: it does not."""
    proven: bool = False
    """
    Of one that is gone: nothing more has to be asked, since the provider has looked at what the machine consists of, and not at a list.
    """


def price_of(offer: Offer) -> dict[str, float | str]:
    """What slots of a machine of an offer say of its price; nothing, if it costs nothing."""
    if not offer.price:
        return {}
    return {PRICE: offer.price / offer.cpus, CURRENCY: offer.currency}
