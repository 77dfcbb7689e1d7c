"""
The network of a simulated platform: links with a latency and a bandwidth that transfers share, and how long these take.

The model is the one of flows that SimGrid has (Velho and Legrand, "Accuracy study and improvement of network simulation in the
SimGrid framework", 2009): a transfer waits for the latency of its way, then it has its max-min fair share of each link.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from kettle_services.simulator.platforms.fair_shares import NO_LIMIT, Flow, fair_shares


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What transfers in both directions share."""

    name: str
    bandwidth: Annotated[float, msgspec.Meta(gt=0)] = NO_LIMIT
    """Bytes in a second."""
    latency: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Seconds."""


class Correction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    How a protocol differs from an ideal one; the defaults are the ideal one: max-min sharing and nothing else.
    """

    latency: float = 1.0
    """Factor of the latency of a way."""
    bandwidth: float = 1.0
    """Factor of each bandwidth, and of what a window makes possible."""
    acknowledgements: float = 0.0
    """Bytes that go back over the same links for each byte."""
    window: float = NO_LIMIT
    """Bytes on their way at once: a transfer has at most half of that in each latency of its way."""
    round_trips: float = 0.0
    """
    Bytes: flows share in inverse proportion to the latency of their way plus this over each of its bandwidths. 0: in equal parts.
    """


TCP: Final = Correction(
    latency=13.01, bandwidth=0.97, acknowledgements=0.05, window=4194304.0, round_trips=20537.0
)
"""SimGrid's `LV08`, fitted by its authors to packet simulations of TCP."""


class Network:
    """Transfers on their way; who calls it knows the time (seconds), which never goes back."""

    def __init__(self, links: Sequence[Link], correction: Correction | None = None) -> None:
        self._links = list(links)
        self._correction = correction or Correction()
        factor = self._correction.bandwidth / (1.0 + self._correction.acknowledgements)
        self._capacities = [link.bandwidth * factor for link in links]
        self._waiting: dict[int, float] = {}
        """Transfers whose latency is not over, and when it is."""
        self._flows: dict[int, Flow] = {}
        self._left: dict[int, float] = {}
        self._shares: Mapping[int, float] = {}
        self._at = 0.0
        self._count = 0

    def latency(self, links: Sequence[int]) -> float:
        """Of a way, in seconds, as a message without a size takes it."""
        return sum(self._links[link].latency for link in links) * self._correction.latency

    def begin(self, now: float, links: Sequence[int], size: float) -> int:
        """A transfer of so many bytes over these links (their numbers); its own number."""
        self._advance(now)
        self._count += 1
        ways = [self._links[link] for link in links]
        latency = sum(way.latency for way in ways)
        penalty = latency + sum(self._correction.round_trips / way.bandwidth for way in ways)
        self._flows[self._count] = Flow(
            links=tuple(links),
            weight=1.0 / penalty if self._correction.round_trips and penalty else 1.0,
            limit=self._correction.window * self._correction.bandwidth / (2.0 * latency)
            if latency
            else NO_LIMIT,
        )
        self._left[self._count] = size
        self._waiting[self._count] = now + latency * self._correction.latency
        return self._count

    def next_change(self) -> float | None:
        """When it has to be asked again at the latest: a transfer ends, or its first byte arrives."""
        moments = list(self._waiting.values())
        for transfer, share in self._shares.items():
            left = self._left[transfer]
            moments.append(self._at + (left / share if left and share else 0.0))
        return min(moments, default=None)

    def ended(self, now: float) -> list[int]:
        """The transfers that have ended by now, in the order in which they began."""
        self._advance(now)
        over = [transfer for transfer in self._shares if not self._left[transfer]]
        for transfer in over:
            del self._flows[transfer], self._left[transfer]
        if over:
            self._share()
        return sorted(over)

    def cancel(self, now: float, transfer: int) -> None:
        """It stops before its end."""
        self._advance(now)
        del self._flows[transfer], self._left[transfer]
        self._waiting.pop(transfer, None)
        self._share()

    def _advance(self, now: float) -> None:
        while (change := self._first_byte(now)) is not None:
            self._move(change)
            self._waiting = {transfer: at for transfer, at in self._waiting.items() if at > change}
            self._share()
        self._move(now)

    def _first_byte(self, now: float) -> float | None:
        return min((at for at in self._waiting.values() if at <= now), default=None)

    def _move(self, now: float) -> None:
        elapsed = now - self._at
        for transfer, share in self._shares.items():
            left = self._left[transfer]
            done = share * elapsed
            # What is left for less than a nanosecond is an error of rounding.
            self._left[transfer] = left - done if left - done > share * 1e-9 else 0.0
        self._at = now

    def _share(self) -> None:
        moving = {transfer: flow for transfer, flow in self._flows.items() if transfer not in self._waiting}
        self._shares = fair_shares(moving, self._capacities)
