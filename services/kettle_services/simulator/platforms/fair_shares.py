"""
How flows share links: max-min fairness, by progressive filling (Bertsekas and Gallager, "Data Networks", section 6.5.2).

All flows grow together, each in proportion to its weight, until a link is full or a flow has reached its own limit; those that this
concerns stay as they are, and the others go on.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

NO_LIMIT: Final = float("inf")


class Flow(msgspec.Struct, frozen=True):
    """One transfer, as far as sharing is concerned."""

    links: tuple[int, ...]
    """Numbers of the links that it crosses, each once."""
    weight: float = 1.0
    """How fast it grows beside others."""
    limit: float = NO_LIMIT
    """The most that it takes, in the unit of the capacities."""


def fair_shares(flows: Mapping[int, Flow], capacities: Sequence[float]) -> dict[int, float]:
    """What each flow gets, in the unit of the capacities; one without links or limit gets infinity."""
    shares: dict[int, float] = {}
    links: dict[int, _Filling] = {}
    for key, flow in flows.items():
        for link in flow.links:
            links.setdefault(link, _Filling(capacities[link])).add(key, flow.weight)
    by_limit = sorted(flows, key=lambda key: flows[key].limit / flows[key].weight, reverse=True)
    while len(shares) < len(flows):
        while by_limit[-1] in shares:
            by_limit.pop()
        limited = by_limit[-1]
        full = min(links.values(), key=_Filling.level, default=None)
        level = flows[limited].limit / flows[limited].weight
        if full is None or level <= full.level():
            stopping = [limited]
        else:
            level = full.level()
            stopping = [key for key in full.flows if key not in shares]
        for key in stopping:
            flow = flows[key]
            shares[key] = level * flow.weight
            for link in flow.links:
                filling = links[link]
                filling.stop(shares[key], flow.weight)
                if not filling.growing:
                    del links[link]
    return shares


class _Filling:
    """A link with flows that still grow."""

    __slots__ = ("flows", "growing", "left", "weight")

    def __init__(self, capacity: float) -> None:
        self.left = capacity
        self.weight = 0.0
        self.growing = 0
        self.flows: list[int] = []

    def add(self, flow: int, weight: float) -> None:
        self.flows.append(flow)
        self.weight += weight
        self.growing += 1

    def stop(self, share: float, weight: float) -> None:
        self.left -= share
        self.weight -= weight
        self.growing -= 1

    def level(self) -> float:
        """How far all its flows together can grow."""
        return max(self.left, 0.0) / self.weight if self.weight > 0.0 else NO_LIMIT
