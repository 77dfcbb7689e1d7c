"""What a collector is asked."""

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.jobs import Number


class QueryAds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ads of one type (`Machine`, `Scheduler`, `Submitter`, …; empty: any) that meet a constraint."""

    type: str = ""
    constraint: str = ""
    projection: list[str] = []
    limit: Number = 0
    after: tuple[str, str] | None = None
    """From where on: the `rest` of the page before."""
    forwarded: bool = False
    """Those too that other pools forward; they have `ForwardedFrom`."""


class Ads(msgspec.Struct, frozen=True, kw_only=True):
    """A page of ads, in the order of their names."""

    ads: list[Ad]
    rest: tuple[str, str] | None = None
    """Ask again from here on, there may be more; None: there are no more."""


QUERY_ADS = Endpoint(
    "collector",
    "query_ads",
    QueryAds,
    Ads,
    callers=(Caller.USER, Caller.JOB, Caller.SHADOW, Caller.GATEWAY, Caller.IAM),
    repeat=Repeat.QUERY,
)
