"""The ads of the pool, and which of them a query selects."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.classad import FOREIGN_STEPS, ClassAd, Context, EvaluationFailed, Node, evaluate, is_true
from kettle.wire.ads.daemon import SubmitterAd
from kettle.wire.ads.types import Ad

SUBMITTER: Final = "Submitter"

_PRIVATE: Final = frozenset(
    {"claimid", "claimids", "claimidlist", "childclaimids", "capability", "transferkey"}
)
_PRIVATE_PREFIX: Final = "_condor_priv"

_LATE: Final = 1.5
"""Times its lifetime after which an ad is dropped even if the bus does not say so."""

_decode_ad: Final = msgspec.msgpack.Decoder(Ad).decode
_decode_submitter: Final = msgspec.msgpack.Decoder(SubmitterAd).decode


class Advert:
    """One ad as it was last heard of, at `heard` seconds since the epoch."""

    __slots__ = ("_ticks", "ad", "heard", "key", "lifetime", "name")

    def __init__(self, key: str, ad: ClassAd, heard: float, lifetime: float) -> None:
        self.key = key
        self.ad = ad
        self.heard = heard
        self.name = _text(ad, "name") or key
        said = ad.find("classadlifetime")
        self.lifetime = min(lifetime, said) if isinstance(said, int | float) else lifetime
        self._ticks = "MyCurrentTime" not in ad

    def at(self, now: float) -> ClassAd:
        """The ad as it is shown now: a sender that states its own time is believed."""
        if self._ticks:
            self.ad["MyCurrentTime"] = int(now)
        return self.ad


class Adverts:
    """
    All ads by type and key.

    `lifetime`: seconds after which the bus ends an ad; an ad may say that it lives shorter.
    """

    def __init__(self, lifetime: float) -> None:
        self._lifetime = lifetime
        self._types: dict[str, dict[str, Advert]] = {}

    def put(self, key: str, value: bytes, now: float) -> Advert:
        """Take in an entry of the bucket. Raises msgspec.MsgspecError if it is no ad; the last one then stays."""
        kind = type_of(key)
        wire = _submitter(value) if kind == SUBMITTER else _public(_decode_ad(value))
        ad = ClassAd.from_wire(wire)
        if "MyType" not in ad:
            ad["MyType"] = kind
        if "LastHeardFrom" not in ad:
            ad["LastHeardFrom"] = int(now)
        advert = Advert(key, ad, now, self._lifetime)
        self._types.setdefault(kind.lower(), {})[key] = advert
        return advert

    def drop(self, key: str) -> Advert | None:
        """Take an entry out; returns what was there."""
        return self._types.get(type_of(key).lower(), {}).pop(key, None)

    def known(self) -> list[str]:
        """The keys of all ads."""
        return [key for adverts in self._types.values() for key in adverts]

    def stale(self, now: float) -> list[str]:
        """Ads that the bus should have ended long ago: it lost them together with the news of their end."""
        return [
            key
            for adverts in self._types.values()
            for key, advert in adverts.items()
            if now > advert.heard + advert.lifetime * _LATE
        ]

    def of_type(self, kind: str) -> list[Advert]:
        """By name; an empty type is every type."""
        if kind:
            found = list(self._types.get(kind.lower(), {}).values())
        else:
            found = [advert for adverts in self._types.values() for advert in adverts.values()]
        return sorted(found, key=lambda advert: (advert.name, advert.key))


def type_of(key: str) -> str:
    """The type of ad that stands under a key of the bucket."""
    return key.partition(".")[0]


def select(
    adverts: Sequence[Advert], constraint: Node | None, projection: Sequence[str], now: float
) -> Iterator[Ad]:
    """
    The ads that meet the constraint, each cut down to the attributes that it has of `projection` (empty: all).

    The candidate is both MY and TARGET: tools write conditions on it either way.  Undefined and error select nothing.
    """
    context = Context(now=lambda: int(now), max_steps=FOREIGN_STEPS)
    wanted = frozenset(name.lower() for name in (*projection, "MyType")) if projection else None
    for advert in adverts:
        ad = advert.at(now)
        if constraint is None or _meets(ad, constraint, context):
            wire = ad.to_wire()
            yield wire if wanted is None else {n: v for n, v in wire.items() if n.lower() in wanted}


def _meets(ad: ClassAd, constraint: Node, context: Context) -> bool:
    try:
        return is_true(evaluate(constraint, ad, ad, context))
    except EvaluationFailed:
        return False


def _public(ad: Ad) -> Ad:
    return {
        name: value
        for name, value in ad.items()
        if not ((folded := name.lower()) in _PRIVATE or folded.startswith(_PRIVATE_PREFIX))
    }


def _submitter(value: bytes) -> Ad:
    demand = _decode_submitter(value)
    return {
        "MyType": SUBMITTER,
        "Name": demand.name,
        "ScheddName": demand.schedd,
        "IdleJobs": demand.idle,
        "RunningJobs": demand.running,
        "HeldJobs": demand.held,
    }


def _text(ad: ClassAd, key: str) -> str:
    value = ad.find(key)
    return value if isinstance(value, str) else ""
