"""Slots as matchmaking sees them: an ad, and how much of a partitionable one is left."""

from collections.abc import Mapping
from typing import Final

from kettle.classad import ClassAd, evaluate_attribute
from kettle.wire.ads import Ad, Scalar

RESOURCES: Final = ("Cpus", "Memory", "Disk")
QUANTA: Final[Mapping[str, int]] = {"Cpus": 1, "Memory": 128, "Disk": 1024}
"""A startd rounds a request up to these (MODIFY_REQUEST_EXPR_REQUEST*): cores, MiB, KiB."""
_DEFAULT: Final[Mapping[str, int]] = {"Cpus": 1, "Memory": 128, "Disk": 1024}


def number(value: Scalar | None, default: float = 0.0) -> float:
    """A number from an ad; anything else is the default."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default


class Request:
    """What one job of an autocluster asks of a slot."""

    def __init__(self, job: ClassAd) -> None:
        self.amounts = {name: _asked(job, name) for name in RESOURCES}

    def quantized(self, name: str) -> float:
        """The amount that a startd would carve out."""
        quantum = QUANTA[name]
        return -(-self.amounts[name] // quantum) * quantum


def _asked(job: ClassAd, resource: str) -> float:
    value = evaluate_attribute(f"Request{resource}", job)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _DEFAULT[resource]


class Slot:
    """One slot that is offered; taking from a partitionable one changes what is left in its ad."""

    def __init__(self, name: str, startd: str, ad: Ad) -> None:
        self.name = name
        self.startd = startd
        self.wire = dict(ad)
        self.partitionable = ad.get("PartitionableSlot") is True
        self.free = {resource: number(ad.get(resource)) for resource in RESOURCES}
        self._ad: ClassAd | None = None

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
        totals: Ad = {
            name: total
            for name in RESOURCES
            if isinstance(total := self.wire.get(f"TotalSlot{name}"), int | float)
        }
        return ClassAd.from_wire({**self.wire, **totals})

    @property
    def weight(self) -> float:
        """What the slot counts for in fair shares: its free cores."""
        return self.free["Cpus"]

    def room(self, request: Request) -> int:
        """How many of these requests fit into what is left."""
        if not self.partitionable:
            return 1
        return int(min(self._times(request, name) for name in RESOURCES))

    def _times(self, request: Request, name: str) -> float:
        quantized = request.quantized(name)
        if quantized <= 0:
            return float(2**31)
        times = self.free[name] // quantized
        # One raw request may fit where the rounded one does not; a startd tries both.
        return times or float(request.amounts[name] <= self.free[name])

    def take(self, request: Request, count: int) -> None:
        """Count so many requests as gone from the slot."""
        for name in RESOURCES:
            taken = request.quantized(name) * count if self.partitionable else self.free[name]
            self.free[name] = max(0.0, self.free[name] - taken)
        self._ad = None
