"""
How many updates of each ad came, and how many did not; daemons number them from their start on (COLLECTOR_DAEMON_STATS).

Each collector counts what it has seen itself, from its own start on.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kettle_wire.ads.types import Ad, Scalar

ADDED: Final = frozenset({"updatestotal", "updatessequenced", "updateslost", "updateshistory"})
"""Attributes that the collector alone sets, in lower case."""
HISTORY: Final = 128
"""The number of updates in `UpdatesHistory` (COLLECTOR_DAEMON_HISTORY_SIZE)."""
MOST_LOST: Final = 1_000_000
"""
A larger jump means that the sender has restarted its count: so many updates are not sent in the lifetime of an ad.
"""
SWEEP_S: Final = 2 * 86400.0
"""Seconds after the last update when an ad's counts are forgotten (COLLECTOR_STATS_SWEEP)."""
_SWEEPS: Final = 8
"""Sweeps in that time."""


class _Count(msgspec.Struct):
    """What is known of one ad's updates."""

    total: int = 0
    sequenced: int = 0
    lost: int = 0
    history: int = 0
    started: float | None = None
    number: int | None = None
    at: float = 0.0

    def heard(self, started: float | None, number: int | None) -> None:
        if number is None or started is None:
            self._came()
        elif self.started != started or self.number is None or not self._follows(number):
            self._came()  # the first of a daemon: earlier ones are unknown
        elif number > self.number:
            missed = number - self.number - 1
            self.lost += missed
            self.sequenced += missed + 1
            self._note(missed, bits=1)
            self._came()
        else:
            return  # a repeat: the whole bucket is listed after a reconnection
        self.started, self.number = started, number

    def _follows(self, number: int) -> bool:
        return self.number is not None and self.number <= number <= self.number + MOST_LOST

    def _came(self) -> None:
        self.total += 1
        self._note(1, bits=0)

    def _note(self, count: int, *, bits: int) -> None:
        """The most significant bit is the newest update; 1 is a lost one."""
        count = min(count, HISTORY)
        self.history >>= count
        if bits:
            self.history |= ((1 << count) - 1) << (HISTORY - count)


class Updates:
    """
    The counts of all ads; they outlive the ads, because what is missing between two of them was lost too.
    """

    def __init__(self, keep: float = SWEEP_S) -> None:
        self._keep = keep
        self._counts: dict[str, _Count] = {}
        self._swept = 0.0

    def heard(self, key: str, folded: Mapping[str, Scalar], now: float) -> Ad:
        """An update came; its attributes by lower-case name.  What the collector adds to the ad."""
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = _Count()
        count.heard(_time(folded.get("daemonstarttime")), _number(folded.get("updatesequencenumber")))
        count.at = now
        return {
            "UpdatesTotal": count.total,
            "UpdatesSequenced": count.sequenced,
            "UpdatesLost": count.lost,
            "UpdatesHistory": f"0x{count.history:0{HISTORY // 4}x}",
        }

    def sweep(self, now: float) -> None:
        """Delete ads that have not been received for long."""
        if now >= self._swept + self._keep / _SWEEPS:
            self._swept = now
            for key in [key for key, count in self._counts.items() if now > count.at + self._keep]:
                del self._counts[key]


def _time(value: Scalar | None) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: Scalar | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
