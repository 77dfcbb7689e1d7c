"""Slots as matchmaking sees them: an ad, and how much of a partitionable one is left."""

from kettle.classad import ClassAd
from kettle.matchmaking.request import RESOURCES, Amounts, amount
from kettle.wire.ads import Ad, Expr, Scalar


def number(value: Scalar | None) -> float:
    """An amount from an ad; nothing for whatever is none."""
    return 0.0 if isinstance(value, Expr) else amount(value) or 0.0


class Slot:
    """
    One slot that is offered; taking from a partitionable one changes what is left in its ad.

    `key` is what tells it from all others: names are what the ads say, and two may say the same.
    """

    def __init__(self, name: str, startd: str, ad: Ad, *, key: str | None = None) -> None:
        self.name = name
        self.key = name if key is None else key
        self.startd = startd
        self.wire = dict(ad)
        self.partitionable = ad.get("PartitionableSlot") is True
        self.free = {resource: number(ad.get(resource)) for resource in RESOURCES}
        self._ad: ClassAd | None = None
        self._whole: ClassAd | None = None

    @property
    def ad(self) -> ClassAd:
        """The ad with what is left."""
        if self._ad is None:
            self._ad = ClassAd.from_wire(
                {**self.wire, **{name: int(left) for name, left in self.free.items()}}
            )
        return self._ad

    @property
    def whole(self) -> ClassAd:
        """The ad as it would be if nothing ran: what the machine could do."""
        if self._whole is None:
            totals: Ad = {
                name: total
                for name in RESOURCES
                if isinstance(total := self.wire.get(f"TotalSlot{name}"), int | float)
            }
            self._whole = ClassAd.from_wire({**self.wire, **totals})
        return self._whole

    @property
    def weight(self) -> float:
        """What the slot counts for in fair shares: its free cores."""
        return self.free["Cpus"]

    def room(self, amounts: Amounts) -> int:
        """How many times these amounts fit into what is left."""
        if not self.partitionable:
            return 1
        return int(min(self._times(amounts, name) for name in RESOURCES))

    def _times(self, amounts: Amounts, name: str) -> float:
        quantized = amounts.quantized(name)
        if quantized <= 0:
            return float(2**31)
        times = self.free[name] // quantized
        # One raw request may fit where the rounded one does not; a startd tries both.
        return times or float(amounts.asked[name] <= self.free[name])

    def take(self, amounts: Amounts, count: int) -> None:
        """Count these amounts as gone from the slot, so many times."""
        for name in RESOURCES:
            taken = amounts.quantized(name) * count if self.partitionable else self.free[name]
            self.free[name] = max(0.0, self.free[name] - taken)
        self._ad = None
