"""
The use of concurrency limits in the pool: as reported by the schedds, and by matches that they have not reported yet.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.events import Match

SETTLES: Final = 30.0
"""Seconds after which matches that a schedd has not reported count as unused: it requests claims at once."""
_EXACTLY: Final = 1e-9


class Pending(msgspec.Struct, frozen=True):
    """Matches of a cycle that their schedd has not reported; `until` is on the caller's clock."""

    submitter: str
    schedd: str
    cycle: int
    uses: dict[str, float]
    until: float


class Pendings:
    """
    What was given, until the schedd to which it was given says how it stands.

    A schedd's ad says which cycle's matches are counted in it, so no match is counted twice and none is missed, whatever
    the order in which ads and matches pass each other.
    """

    def __init__(self) -> None:
        self._all: list[Pending] = []

    def add(self, matches: Iterable[Match], cycle: int, until: float) -> None:
        """A cycle gave these."""
        self._all += [
            Pending(
                one.submitter, one.schedd, cycle, {k: n * one.count for k, n in one.limits.items()}, until
            )
            for one in matches
            if one.limits
        ]

    def settle(self, ads: Iterable[SubmitterAd], now: float) -> None:
        """Forget what the schedds speak of by now, and what came to nothing."""
        if not self._all:
            return
        spoken = {(ad.name, ad.schedd): ad.cycle for ad in ads}
        self._all = [
            one
            for one in self._all
            if one.until > now and spoken.get((one.submitter, one.schedd), 0) < one.cycle
        ]

    def freed(self, before: SubmitterAd | None, ad: SubmitterAd) -> bool:
        """
        Whether less is in use now than with the ad before, and with the matches of which this one is the first to speak.
        """
        same = before is not None and (before.name, before.schedd) == (ad.name, ad.schedd)
        spoken = before.cycle if same and before is not None else 0
        used = dict(before.limits) if before is not None else {}
        for one in self._all:
            if (one.submitter, one.schedd) == (ad.name, ad.schedd) and spoken < one.cycle <= ad.cycle:
                for name, number in one.uses.items():
                    used[name] = used.get(name, 0.0) + number
        return any(number > ad.limits.get(name, 0.0) + _EXACTLY for name, number in used.items())

    def in_use(self, ads: Iterable[SubmitterAd]) -> dict[str, float]:
        """What the whole pool uses, by name; `settle` first."""
        sums: dict[str, float] = {}
        uses: list[Mapping[str, float]] = [*(ad.limits for ad in ads), *(one.uses for one in self._all)]
        for each in uses:
            for name, number in each.items():
                sums[name] = sums.get(name, 0.0) + number
        return sums

    def ends(self) -> Iterable[float]:
        """When each runs out by itself."""
        return (one.until for one in self._all)
