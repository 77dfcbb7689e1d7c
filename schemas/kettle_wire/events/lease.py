"""
What happens to leases of workers, on the stream `lease/<id>`, and to what they are made from: offers, on
`offer/<pool>.<offer>`, templates, on `template/<pool>.<key>`, and providers, on `provider/<name>`.

`until` is the deadline of the state that a lease comes into, in seconds since the epoch: what happens at it is recorded as well.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from kettle_wire.events.base import Event
from kettle_wire.leases import ErrorClass, Handle, LeaseId, MachineState, Words
from kettle_wire.worker_pools import Name, Offer, Seconds, Word


class Shape(StrEnum):
    """What a machine is planned for."""

    SHARED = "shared"
    """Several jobs."""
    DEDICATED = "dedicated"
    """One job that needs most of it."""


class Demand(msgspec.Struct, frozen=True, array_like=True):
    """Jobs because of which a machine is planned: those of one autocluster."""

    submitter: str
    schedd: str
    autocluster: str
    jobs: int


class LeaseRequested(Event, frozen=True, tag="lease.requested/1"):
    """A machine is planned. No provider has been asked."""

    lease: LeaseId
    pool: Name
    offer: Offer
    life: Seconds
    """After so long it ends itself, whatever happens."""
    until: float
    """It is given up if it could not be asked for by then."""
    plan: int = 0
    """The plan that it belongs to; 0: a person asked for it."""
    by: str = ""
    """That person."""
    ordinal: int = 0
    shape: Shape = Shape.SHARED
    demand: list[Demand] = []
    owner: str = ""
    """Whose jobs alone it will run."""
    groups: list[str] = []
    """Accounting groups whose jobs alone."""
    gang: str = ""
    """Machines of one gang are all there, or none is kept."""
    gang_size: int = 0
    gang_deadline: float = 0.0
    """By then they are all there, seconds since the epoch."""
    attributes: dict[str, str] = {}
    """ClassAd expressions of its ad, besides those of the offer."""
    start: str = ""
    """START of its slot."""


class LeaseSubmitting(Event, frozen=True, tag="lease.submitting/1"):
    """Its provider is about to be asked. That is done once for each attempt, and after a crash not again."""

    attempt: int
    """Counts from 1."""
    until: float
    """When there is no answer by then, the attempt is in doubt."""


class LeaseInDoubt(Event, frozen=True, tag="lease.in_doubt/1"):
    """Its provider was asked, and nobody knows the answer: it is looked for."""

    attempt: int
    until: float
    """By then it has been found, or is given up as never made."""
    words: Words = ""


class LeaseDeferred(Event, frozen=True, tag="lease.deferred/1"):
    """Its provider refused for a moment, and made nothing: it is asked again, with the next attempt."""

    attempt: int
    error: ErrorClass
    words: Words
    again: float
    """Not before this moment, seconds since the epoch."""
    until: float


class LeaseAccepted(Event, frozen=True, tag="lease.accepted/1"):
    """Its provider has a name for it."""

    handle: Handle
    until: float
    """By then it has become ready or told how far it is."""
    found: bool = False
    """It was found, after nobody had heard the answer."""


class LeaseBooting(Event, frozen=True, tag="lease.booting/1"):
    """Its provider says that it runs."""

    until: float


class LeaseJoining(Event, frozen=True, tag="lease.joining/1"):
    """The worker's program runs, and joins."""

    until: float


class LeaseValidating(Event, frozen=True, tag="lease.validating/1"):
    """It has joined, and examines itself."""

    until: float


class LeaseExtended(Event, frozen=True, tag="lease.extended/1"):
    """It told that it goes on in the phase that it is in, which gives it more time, a few times."""

    progress: Word
    until: float


class LeaseReady(Event, frozen=True, tag="lease.ready/1"):
    """It takes jobs, and none runs on it."""

    until: float
    """The end of its life."""


class LeaseBusy(Event, frozen=True, tag="lease.busy/1"):
    """Jobs run on it."""

    until: float


class LeaseQuarantined(Event, frozen=True, tag="lease.quarantined/1"):
    """It fails, or what runs on it does: it takes no jobs, and is removed."""

    words: Words
    until: float


class LeaseDraining(Event, frozen=True, tag="lease.draining/1"):
    """It takes no more jobs. At its deadline it is removed with what runs on it."""

    why: Words
    until: float


class LeaseUnwanted(Event, frozen=True, tag="lease.unwanted/1"):
    """
    Nobody wants it any more, but whether there is a machine is not known yet: if one is found, it is removed.
    """

    why: Words


class LeaseTerminating(Event, frozen=True, tag="lease.terminating/1"):
    """Its provider is about to be asked to remove it, again and again until it is proven that it is gone."""

    why: Words
    removal: int
    """Counts from 1."""
    until: float
    """Then it is asked again."""
    failed: bool = False
    """It is removed because it did not come up, or does not work."""


class LeaseDuplicated(Event, frozen=True, tag="lease.duplicated/1"):
    """Another machine carries its name, and is about to be removed; the lease keeps the first."""

    handle: Handle
    removal: int
    until: float
    """Then it is asked again."""


class LeaseDuplicateGone(Event, frozen=True, tag="lease.duplicate_gone/1"):
    """The other machine is gone, which its provider has proven."""

    handle: Handle


class LeaseConsole(Event, frozen=True, tag="lease.console/1"):
    """
    The end of what a machine wrote that never became ready is kept by the scaler: everybody may follow events, and nobody knows what a
    machine writes.
    """

    size: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Characters; 0: not said."""


class LeaseLost(Event, frozen=True, tag="lease.lost/1"):
    """It was not removed by us, and is gone: nothing is heard of it, and its provider proved it."""

    words: Words
    until: float


class LeaseFailed(Event, frozen=True, tag="lease.failed/1"):
    """There is no machine and there never was one. Nothing more is recorded about it."""

    words: Words
    error: ErrorClass | None = None
    """None: it was given up before its provider was asked, or its request was lost."""


class LeaseGone(Event, frozen=True, tag="lease.gone/1"):
    """Its machine is gone, which its provider has proven. Nothing more is recorded about it."""

    words: Words
    """The proof."""
    seconds: float
    """So long it was there, as far as we know."""
    cost: float = 0.0
    currency: str = ""
    boot: float = 0.0
    """Seconds from the answer of its provider until it was ready; 0: it never was."""


class OrphanFound(Event, frozen=True, tag="orphan.found/1"):
    """
    A machine of ours that no lease wants, on the stream `orphan/<provider>.<digest of its handle>.<second>`: it is removed when the
    time is over.
    """

    provider: Name
    handle: Handle
    lease: str
    """The lease that it says it was made for."""
    state: MachineState
    until: float


class OrphanRemoving(Event, frozen=True, tag="orphan.removing/1"):
    """Its provider is about to be asked to remove it."""

    removal: int
    until: float
    """Then it is asked again."""


class OrphanGone(Event, frozen=True, tag="orphan.gone/1"):
    """It is gone, or it belongs to a lease after all. Nothing more is recorded about it."""

    words: Words


class OfferClosed(Event, frozen=True, tag="offer.closed/1"):
    """Nothing is made from it until the time is over; then one machine is, to see."""

    words: Words
    until: float
    """0: until somebody opens it."""
    times: int
    """How often in a row; each pause is longer than the one before."""
    error: ErrorClass | None = None
    """None: its machines fail without the provider's saying anything."""


class OfferOpened(Event, frozen=True, tag="offer.opened/1"):
    """It is used again."""

    why: Words


class OfferMeasured(Event, frozen=True, tag="offer.measured/1"):
    """How a machine made from it came out."""

    lease: LeaseId
    boot: float = 0.0
    """Seconds until it was ready; 0: it failed."""


class TemplateClosed(Event, frozen=True, tag="template.closed/1"):
    """What machines are made from does not work, in any offer."""

    words: Words
    until: float
    """0: until somebody opens it, or applies another."""
    times: int
    error: ErrorClass | None = None


class TemplateOpened(Event, frozen=True, tag="template.opened/1"):
    """A machine made from it became ready, or somebody said that it works: as many are made as are wanted."""

    why: Words


class ProviderClosed(Event, frozen=True, tag="provider.closed/1"):
    """Nothing is made there until the time is over; then one machine is, to see."""

    error: ErrorClass
    words: Words
    until: float
    """0: until somebody opens it, or it answers again to our credential."""
    times: int


class ProviderOpened(Event, frozen=True, tag="provider.opened/1"):
    """It is used again."""

    why: Words


class ProviderFrozen(Event, frozen=True, tag="provider.frozen/1"):
    """
    So many of its machines seem to be lost at the same time that none is given up, until it is clear why.
    """

    missing: int
    of: int
    until: float
    """Then what is proven is believed."""


class ProviderThawed(Event, frozen=True, tag="provider.thawed/1"):
    """It is believed again."""

    why: Words


LeaseEvent = (
    LeaseRequested
    | LeaseSubmitting
    | LeaseInDoubt
    | LeaseDeferred
    | LeaseAccepted
    | LeaseBooting
    | LeaseJoining
    | LeaseValidating
    | LeaseExtended
    | LeaseReady
    | LeaseBusy
    | LeaseQuarantined
    | LeaseDraining
    | LeaseUnwanted
    | LeaseTerminating
    | LeaseDuplicated
    | LeaseDuplicateGone
    | LeaseConsole
    | LeaseLost
    | LeaseFailed
    | LeaseGone
)
OrphanEvent = OrphanFound | OrphanRemoving | OrphanGone
BreakerEvent = (
    OfferClosed
    | OfferOpened
    | OfferMeasured
    | TemplateClosed
    | TemplateOpened
    | ProviderClosed
    | ProviderOpened
    | ProviderFrozen
    | ProviderThawed
)
