"""
What was matched and no startd shows yet as claimed: it is used all the same, and counts for shares, quotas and ceilings.

An ad of the slot that was matched is no sign of what became of a match, because it may have been made before the claim was
asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from kettle_wire.ads.daemon import SubmitterAd


class UnshownMatch(msgspec.Struct):
    """Claims that one submitter is about to get on one machine."""

    submitter: str
    schedd: str
    cycle: int
    weight: float
    """What one claim counts for, as its SlotWeight will."""
    count: int
    until: float
    """When not even a schedd that is not heard of asks for them any more, on the caller's clock."""


_Waiting: TypeAlias = dict[int, UnshownMatch]
"""By the number that Python gives each."""


class UnshownMatches:
    """
    Matches by machine, each until one of its startd's ads shows a new claim of the submitter, which may be any of those that
    wait for it there.

    Once a schedd has heard of their cycle, they are no more than the claims that it says it has or asks for, less those that
    startds show: so what it was refused, or had for so short a time that nobody saw it, is not used.
    """

    def __init__(self) -> None:
        self._machines: Final[dict[str, _Waiting]] = {}
        self._submitters: Final[dict[str, _Waiting]] = {}

    def add(self, machine: str, match: UnshownMatch) -> None:
        """Something was matched to a machine, by the token of its name."""
        for index, key in ((self._machines, machine), (self._submitters, match.submitter)):
            index.setdefault(key, {})[id(match)] = match

    def awaits(self, machine: str) -> bool:
        """Whether ads of a machine are of interest."""
        return machine in self._machines

    def shown(self, machine: str, submitter: str) -> None:
        """A startd shows a claim that it did not show before."""
        match = next((one for one in self._machines[machine].values() if one.submitter == submitter), None)
        if match is None:
            return
        match.count -= 1
        if not match.count:
            self._forget(machine, match)

    @property
    def names(self) -> Collection[str]:
        """Submitters that wait for claims."""
        return self._submitters.keys()

    def used(self, submitter: str, ads: Iterable[SubmitterAd], shown: float) -> float:
        """
        What these count for of one submitter, of whom slots show so many claims, and whose ads these are, one of each schedd.
        """
        spoken = {ad.schedd: ad for ad in ads}
        # A schedd that says less than nothing would take from what the others have.
        left = max(0.0, sum(max(0, ad.claims) for ad in spoken.values()) - shown)
        weight = 0.0
        for one in self._submitters.get(submitter, {}).values():
            count = float(one.count)
            if (ad := spoken.get(one.schedd)) is not None and one.cycle <= ad.cycle:
                count = min(count, left)
                left -= count
            weight += one.weight * count
        return weight

    def expire(self, now: float) -> None:
        """Forget what came to nothing."""
        over = [
            (machine, one)
            for machine, waiting in self._machines.items()
            for one in waiting.values()
            if one.until <= now
        ]
        for machine, one in over:
            self._forget(machine, one)

    def ends(self) -> Iterator[float]:
        """When each is forgotten by itself."""
        return (one.until for waiting in self._submitters.values() for one in waiting.values())

    def _forget(self, machine: str, match: UnshownMatch) -> None:
        for index, key in ((self._machines, machine), (self._submitters, match.submitter)):
            del index[key][id(match)]
            if not index[key]:
                del index[key]
