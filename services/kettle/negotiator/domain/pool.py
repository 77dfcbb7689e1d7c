"""The pool as the negotiator sees it: the newest ads, less what it has given away since they were made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kettle.classad import ClassAd
from kettle.classad.columnar import Table
from kettle.matchmaking import Amounts, Demand, Grant, Offer
from kettle.wire.ads.daemon import SlotSecret, SubmitterAd

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from kettle.wire.ads import Ad

_PULSE: Final = frozenset({"MyCurrentTime", "LastHeardFrom", "UpdateSequenceNumber"})
"""What differs in every ad of a slot in which nothing has changed."""


class Given(msgspec.Struct):
    """What was matched to a slot since its last ad; believed until `until` (the caller's clock)."""

    taken: list[tuple[Amounts, int]]
    until: float


class Pool:
    """
    Ads by the key under which they came; an ad that comes replaces what was assumed about its slot.

    `stirred` is whether a match may be possible that was not when somebody last set it to false.
    """

    def __init__(self) -> None:
        self.slots = Table(quiet=_PULSE)
        self.secrets: dict[str, SlotSecret] = {}
        self.submitters: dict[str, SubmitterAd] = {}
        self._given: dict[str, Given] = {}
        self._promised: dict[tuple[str, int], tuple[int, float]] = {}
        self.stirred = True

    # -- what is told ------------------------------------------------------------------------------------------------

    def slot(self, key: str, ad: Ad | None) -> None:
        """A slot's ad came, or went."""
        self.stirred |= self._given.pop(key, None) is not None
        before = self.slots.news
        if ad is not None:
            self.slots.put(key, ad)
        elif key in self.slots:
            self.slots.remove(key)
        self.stirred |= self.slots.news != before

    def secret(self, key: str, secret: SlotSecret | None) -> None:
        """A slot's private ad came, or went."""
        before = self.secrets.pop(key, None)
        if secret is not None:
            self.secrets[key] = secret
        self.stirred |= secret != before

    def secret_of(self, row: int) -> SlotSecret:
        """Which startd a slot belongs to, and what proves to it that it was matched."""
        return self.secrets[self.slots.keys[row]]

    def name_of(self, row: int) -> str:
        """What a slot calls itself."""
        name = self.slots.value(row, "Name")
        return name if isinstance(name, str) else self.slots.keys[row]

    def submitter(self, key: str, ad: SubmitterAd | None) -> None:
        """A submitter's ad came, or went: it counts in what its schedd is doing with matches already."""
        before = self.submitters.pop(key, None)
        if ad is not None:
            self.submitters[key] = ad
        self.stirred |= self._asks_more(key, before, ad)
        for promised in [p for p in self._promised if p[0] == key]:
            del self._promised[promised]

    def _asks_more(self, key: str, before: SubmitterAd | None, ad: SubmitterAd | None) -> bool:
        """Whether there is demand in an ad that was not there before, or had been promised a match."""
        if ad is None:
            return False
        if before is None or (before.name, before.schedd) != (ad.name, ad.schedd):
            return bool(ad.requests)
        known = {request.autocluster: request for request in before.requests}
        for request in ad.requests:
            old = known.get(request.autocluster)
            promised, _ = self._promised.get((key, request.autocluster), (0, 0.0))
            if old is None or old.ad != request.ad or request.count > old.count - promised:
                return True
        return False

    # -- what is offered and asked -----------------------------------------------------------------------------------

    def offer(self) -> Offer:
        """
        Slots that may be matched, without what was given away.

        `State` is the startd's word, so it is taken as it stands: an expression there could make every cycle slow.
        """
        known = np.fromiter((key in self.secrets for key in self.slots.keys), np.bool_, len(self.slots))
        offer = Offer(self.slots, np.flatnonzero(known & self.slots.says("State", "Unclaimed")))
        for key, given in self._given.items():
            for amounts, count in given.taken:
                offer.take(self.slots.row(key), amounts, count)
        return offer

    def preemptible(self) -> Offer | None:
        """
        Slots whose job may have to make room for one that the slot ranks higher; None if there are none.

        Their startds say so with a secret for them, which only those have that rank jobs at all.
        """
        claimed = np.flatnonzero(self.slots.says("State", "Claimed"))
        keys = self.slots.keys
        rows = [row for row in claimed.tolist() if keys[row] in self.secrets and keys[row] not in self._given]
        return Offer(self.slots, np.array(rows, np.int64), occupied=True) if rows else None

    def machines(self) -> npt.NDArray[np.int64]:
        """The rows of all slots that are not carved out of others, busy or not: what the pool could do."""
        return np.flatnonzero(~self.slots.truths("DynamicSlot"))

    def demands(self) -> list[Demand]:
        """Open demand, that of submitters who have least first, each one's requests in its own order."""
        demands: list[Demand] = []
        for key in self._by_need():
            ad = self.submitters[key]
            for request in ad.requests:
                promised, _ = self._promised.get((key, request.autocluster), (0, 0.0))
                count = request.count - promised
                if count > 0:
                    demands.append(
                        Demand(
                            submitter=ad.name,
                            schedd=ad.schedd,
                            autocluster=request.autocluster,
                            count=count,
                            job=ClassAd.from_wire(request.ad),
                            key=key,
                        )
                    )
        return demands

    def _by_need(self) -> list[str]:
        """
        Keys of submitters' ads, those of whom fewest jobs run or are about to run first, then those of schedds alike.

        Who comes first gets what cannot be divided, so an order that is always the same would let the last starve.
        """
        own = {key: ad.running for key, ad in self.submitters.items()}
        for (key, _), (count, _) in self._promised.items():
            own[key] += count
        whole: Counter[str] = Counter()
        for key, ad in self.submitters.items():
            whole[ad.name] += own[key]
        return sorted(own, key=lambda key: (whole[self.submitters[key].name], own[key], key))

    def give(self, grant: Grant, until: float) -> None:
        """Remember a match until the ads show it, or until it is clear that nothing came of it."""
        given = self._given.setdefault(self.slots.keys[grant.row], Given([], until))
        given.taken.append((grant.amounts, grant.count))
        given.until = until
        key, autocluster = grant.demand.key, grant.demand.autocluster
        before, _ = self._promised.get((key, autocluster), (0, 0.0))
        self._promised[key, autocluster] = (before + grant.count, until)

    def jobs(self) -> dict[tuple[str, str, int], Ad]:
        """(submitter, schedd, autocluster) -> the job that stands for it."""
        return {
            (ad.name, ad.schedd, request.autocluster): request.ad
            for ad in self.submitters.values()
            for request in ad.requests
        }

    def expire(self, now: float) -> None:
        """Forget what was assumed about matches that showed no effect in time."""
        self._given = {key: given for key, given in self._given.items() if given.until > now}
        self._promised = {key: promise for key, promise in self._promised.items() if promise[1] > now}

    def expires(self) -> float | None:
        """When the first of the assumptions about matches runs out."""
        return min(self._untils(), default=None)

    def _untils(self) -> Iterator[float]:
        yield from (given.until for given in self._given.values())
        yield from (until for _, until in self._promised.values())

    @property
    def idle(self) -> int:
        """Idle jobs in the pool."""
        return sum(ad.idle for ad in self.submitters.values())
