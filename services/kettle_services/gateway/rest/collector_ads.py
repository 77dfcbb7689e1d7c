"""All ads of a kind that the collector has now."""

from collections.abc import Sequence

import msgspec

from kettle.bus.ports import Bus
from kettle_wire.ads.types import Ad
from kettle_wire.commands.collector import QUERY_ADS, QueryAds


async def all_ads(
    bus: Bus, collector: str, kind: str, constraint: str = "", fields: Sequence[str] = ()
) -> list[Ad]:
    """Those that meet a constraint, by name; `fields`: the attributes that they are to have, none: all."""
    request = QueryAds(type=kind, constraint=constraint, projection=["Name", *fields] if fields else [])
    page = await bus.call(QUERY_ADS, collector, request)
    found = list(page.ads)
    while page.rest is not None:
        page = await bus.call(QUERY_ADS, collector, msgspec.structs.replace(request, after=page.rest))
        found += page.ads
    return found
