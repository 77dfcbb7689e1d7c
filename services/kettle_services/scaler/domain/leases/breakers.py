"""
Offers, templates and providers that are not used for a while, because what was asked of them did not work.

A pause ends with a single machine, to see; if that one works too, all is as before. A template of which no machine has become
ready yet is tried with a single machine as well.
"""

from typing import Final

import msgspec

from kettle_services.scaler.domain.leases.timers import Timers, doubled, jittered
from kettle_wire.events.lease import (
    OfferClosed,
    OfferMeasured,
    OfferOpened,
    ProviderClosed,
    ProviderFrozen,
    ProviderOpened,
    ProviderThawed,
    TemplateClosed,
    TemplateOpened,
)
from kettle_wire.examination import Examination
from kettle_wire.leases import ErrorClass
from kettle_wire.worker_pools import Offer

OFFER: Final = "offer"
TEMPLATE: Final = "template"
PROVIDER: Final = "provider"

_BOOTS: Final = 20
"""So many boots are remembered of an offer."""
_IN_A_ROW: Final = 3
"""After so many failures in a row an offer is closed, even if its provider says nothing; a new template is given up."""
_HALF_LIFE_S: Final = 3600.0
_PRIOR: Final = 3.0
_PRIOR_SUCCESS: Final = 0.8


class Closure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why and until when something is not used."""

    words: str
    until: float
    """Seconds since the epoch; 0: until somebody opens it."""
    times: int
    error: ErrorClass | None = None

    def is_over(self, now: float) -> bool:
        """Whether one machine may be tried."""
        return 0 < self.until <= now


class OfferRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the machines of an offer came out."""

    closed: Closure | None = None
    boots: list[float] = []
    """Seconds, of those that became ready last."""
    failures: int = 0
    """In a row."""
    times: int = 0
    """How often it was closed since one became ready."""
    good: float = 0.0
    """Machines that became ready, of which an older one counts less."""
    bad: float = 0.0
    at: float = 0.0
    """When that was counted."""

    def success(self, now: float) -> float:
        """
        Which part of the machines is expected to become ready; what was never tried is expected to work rather than not.
        """
        weight = _decayed(1.0, now - self.at)
        good, bad = self.good * weight, self.bad * weight
        return (good + _PRIOR * _PRIOR_SUCCESS) / (good + bad + _PRIOR)


class TemplateRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether what machines are made from is known to work."""

    proven: bool = False
    closed: Closure | None = None
    times: int = 0


class ProviderRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a provider is used."""

    closed: Closure | None = None
    times: int = 0
    frozen: float = 0.0
    """Until then nothing of it is given up; 0: it is believed."""


def template_of(pool: str, offer: Offer) -> str:
    """
    The key of a template: offers of a pool that differ in size, price or place alone share one, and another image is another.
    """
    import hashlib

    parts: list[object] = [
        offer.provider,
        offer.template,
        sorted(offer.options.items()),
        offer.start,
        sorted(offer.attributes.items()),
    ]
    if offer.examination != Examination():  # what passed no examination has still passed none
        parts.append(offer.examination)
    said = msgspec.msgpack.encode(parts)
    return f"{pool}.{hashlib.sha256(said).hexdigest()[:16]}"


def fold_offer(
    before: OfferRecord | None, event: OfferClosed | OfferOpened | OfferMeasured, at: float
) -> OfferRecord:
    """The offer after an event."""
    record = before or OfferRecord()
    match event:
        case OfferClosed():
            closed = Closure(event.words, event.until, event.times, event.error)
            return msgspec.structs.replace(record, closed=closed, times=event.times, failures=0)
        case OfferOpened():
            return msgspec.structs.replace(record, closed=None)
        case OfferMeasured(boot=boot):
            weight = _decayed(1.0, at - record.at)
            good, bad = record.good * weight, record.bad * weight
            if boot > 0:
                return msgspec.structs.replace(
                    record,
                    boots=[*record.boots, boot][-_BOOTS:],
                    failures=0,
                    times=0,
                    good=good + 1,
                    bad=bad,
                    at=at,
                )
            return msgspec.structs.replace(
                record, failures=record.failures + 1, good=good, bad=bad + 1, at=at
            )


def fold_template(
    before: TemplateRecord | None, event: TemplateClosed | TemplateOpened, at: float
) -> TemplateRecord:
    """The template after an event."""
    del at, before
    match event:
        case TemplateClosed():
            return TemplateRecord(
                closed=Closure(event.words, event.until, event.times, event.error), times=event.times
            )
        case TemplateOpened():
            return TemplateRecord(proven=True)


def fold_provider(
    before: ProviderRecord | None,
    event: ProviderClosed | ProviderOpened | ProviderFrozen | ProviderThawed,
    at: float,
) -> ProviderRecord:
    """The provider after an event."""
    del at
    record = before or ProviderRecord()
    match event:
        case ProviderClosed():
            closed = Closure(event.words, event.until, event.times, event.error)
            return msgspec.structs.replace(record, closed=closed, times=event.times)
        case ProviderOpened():
            return msgspec.structs.replace(record, closed=None, times=0)
        case ProviderFrozen(until=until):
            return msgspec.structs.replace(record, frozen=until)
        case ProviderThawed():
            return msgspec.structs.replace(record, frozen=0.0)


def _decayed(weight: float, seconds: float) -> float:
    part: float = 0.5 ** (max(0.0, seconds) / _HALF_LIFE_S)
    return weight * part


def pause_end(times: int, name: str, now: float, timers: Timers) -> float:
    """Until when something is closed for the `times`-th time in a row."""
    return now + jittered(doubled(timers.pause, timers.longest_pause, times), name)


def template_trial_end(times: int, name: str, now: float, timers: Timers) -> float:
    """Until when a template is closed that has never worked: after a few trials it is given up."""
    return 0.0 if times >= _IN_A_ROW else pause_end(times, name, now, timers)


def fails_in_a_row(record: OfferRecord | None, more: int) -> bool:
    """Whether so many more failures close an offer; one that was closed needs a single one."""
    known = record or OfferRecord()
    return known.closed is not None or known.failures + more >= _IN_A_ROW
