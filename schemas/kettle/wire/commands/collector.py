"""What a collector is asked."""

import msgspec

from kettle.wire.ads.types import Ad
from kettle.wire.endpoint import Endpoint
from kettle.wire.jobs import Number


class QueryAds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ads of one type (`Machine`, `Scheduler`, `Submitter`, …; empty: any) that meet a constraint."""

    type: str = ""
    constraint: str = ""
    projection: list[str] = []
    limit: Number = 0


class Ads(msgspec.Struct, frozen=True, kw_only=True):
    """Ads in the order of their names."""

    ads: list[Ad]


QUERY_ADS = Endpoint("collector", "query_ads", QueryAds, Ads)

ENDPOINTS = (QUERY_ADS,)
