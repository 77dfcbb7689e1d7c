"""The pool as the negotiator sees it: the newest ads, less what it has given away since they were made."""

from collections.abc import Iterable

import msgspec

from kettle.classad import ClassAd
from kettle.matchmaking import Demand, Request, Slot
from kettle.wire.ads import Ad
from kettle.wire.ads.daemon import SlotSecret, SubmitterAd
from kettle.wire.subjects import key as encoded


class Given(msgspec.Struct):
    """What was matched to a slot since its last ad; believed until `until` (the caller's clock)."""

    taken: list[tuple[Request, int]]
    until: float


class Pool:
    """Ads by the key that their name has in the bucket; an ad that comes replaces what was assumed about its slot."""

    def __init__(self) -> None:
        self.slots: dict[str, Ad] = {}
        self.secrets: dict[str, SlotSecret] = {}
        self.submitters: dict[str, SubmitterAd] = {}
        self._given: dict[str, Given] = {}
        self._promised: dict[tuple[str, int], tuple[int, float]] = {}

    # -- what is told ------------------------------------------------------------------------------------------------

    def slot(self, key: str, ad: Ad | None) -> None:
        """A slot's ad came, or went."""
        self._given.pop(key, None)
        if ad is None:
            self.slots.pop(key, None)
        else:
            self.slots[key] = ad

    def secret(self, key: str, secret: SlotSecret | None) -> None:
        """A slot's private ad came, or went."""
        if secret is None:
            self.secrets.pop(key, None)
        else:
            self.secrets[key] = secret

    def capability(self, slot: Slot) -> str:
        """What proves to the slot's startd that it was matched."""
        return self.secrets[encoded(slot.name)].capability

    def submitter(self, key: str, ad: SubmitterAd | None) -> None:
        """A submitter's ad came, or went: it counts in what its schedd is doing with matches already."""
        for promised in [p for p in self._promised if p[0] == key]:
            del self._promised[promised]
        if ad is None:
            self.submitters.pop(key, None)
        else:
            self.submitters[key] = ad

    # -- what is offered and asked -----------------------------------------------------------------------------------

    def offers(self, now: float) -> list[Slot]:
        """Slots that may be matched, in the order of their names, without what was given away."""
        offered: list[Slot] = []
        for key in sorted(self.slots):
            ad, secret = self.slots[key], self.secrets.get(key)
            if secret is None or ad.get("State") != "Unclaimed":
                continue
            slot = Slot(str(ad.get("Name", "")), secret.startd, ad)
            given = self._given.get(key)
            if given is not None and given.until > now:
                for request, count in given.taken:
                    slot.take(request, count)
            offered.append(slot)
        return offered

    def machines(self) -> list[Slot]:
        """All slots that are not carved out of others, busy or not: what the pool could do."""
        ads = (self.slots[key] for key in sorted(self.slots))
        return [Slot(str(ad.get("Name", "")), "", ad) for ad in ads if ad.get("DynamicSlot") is not True]

    def demands(self, now: float) -> list[Demand]:
        """Open demand, submitters in the order of their names, each one's requests in its own order."""
        demands: list[Demand] = []
        for key in sorted(self.submitters):
            ad = self.submitters[key]
            for request in ad.requests:
                count = request.count - self._promise(key, request.autocluster, now)
                if count > 0:
                    demands.append(
                        Demand(
                            submitter=ad.name,
                            schedd=ad.schedd,
                            autocluster=request.autocluster,
                            count=count,
                            job=ClassAd.from_wire(request.ad),
                        )
                    )
        return demands

    def _promise(self, key: str, autocluster: int, now: float) -> int:
        count, until = self._promised.get((key, autocluster), (0, 0.0))
        return count if until > now else 0

    def give(self, key: str, demand: Demand, slot: Slot, count: int, until: float) -> None:
        """Remember a match until the ads show it, or until it is clear that nothing came of it."""
        given = self._given.setdefault(encoded(slot.name), Given([], until))
        given.taken.append((Request(demand.job), count))
        given.until = until
        before, _ = self._promised.get((key, demand.autocluster), (0, 0.0))
        self._promised[key, demand.autocluster] = (before + count, until)

    @property
    def idle(self) -> int:
        """Idle jobs in the pool."""
        return sum(ad.idle for ad in self.submitters.values())


def keys_of(submitters: Iterable[tuple[str, SubmitterAd]]) -> dict[tuple[str, str], str]:
    """(submitter, schedd) -> the key of its ad."""
    return {(ad.name, ad.schedd): key for key, ad in submitters}
