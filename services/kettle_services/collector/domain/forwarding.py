"""
Which ads are to be sent to another pool, and when: those at once of which an attribute changed that is watched, and all
others each interval (COLLECTOR_FORWARD_WATCH_LIST, COLLECTOR_FORWARD_INTERVAL).

However long the other pool is away, not more is kept than one entry for each ad: what is sent is the ad as it is then.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from kettle_wire.ads.types import Scalar

_OFTENER: Final = 3
"""Times in its lifetime that an ad is sent again, if the interval is longer."""

Watched = tuple[Scalar | None, ...]


class ForwardingQueue:
    """
    What one other pool is to be sent.

    `interval`: seconds. `watch`: names of attributes; none: each update of an ad is sent at once.
    """

    def __init__(self, *, interval: float, watch: Sequence[str]) -> None:
        self._interval = interval
        self._watch = [name.lower() for name in watch]
        self._there: dict[str, Watched] = {}
        """The ads that may stand there, with the watched attributes as they were sent."""
        self._now: dict[str, None] = {}
        self._due: dict[str, float] = {}
        self._line: list[tuple[float, str]] = []
        self._lined: set[str] = set()
        """The keys in `_line`, each once; it may stand there for an earlier time than is due."""

    def changed(self, key: str, ad: Mapping[str, Scalar]) -> None:
        """An ad came, or came again; its attributes by lower-case name."""
        if not self._watch or self._there.get(key) != self._watched(ad):
            self._now[key] = None

    def gone(self, key: str) -> None:
        """An ad is not there any more."""
        if key in self._there or key in self._now:
            self._now[key] = None

    def again(self, keys: Iterable[str]) -> None:
        """
        The state of the other bucket is unknown: everything has to be sent, and removed ads have to be withdrawn.
        """
        self._now = dict.fromkeys((*self._there, *keys))

    def take(self, now: float, most: int) -> list[str]:
        """
        Ads to send now, or to withdraw if they were removed; call `sent` or `removed` for each when it is done.
        """
        while self._line and self._line[0][0] <= now:
            _, key = heapq.heappop(self._line)
            due = self._due.get(key)
            if due is not None and due > now:
                heapq.heappush(self._line, (due, key))
                continue
            self._lined.discard(key)
            if due is not None:
                del self._due[key]
                self._now[key] = None
        some = list(islice(self._now, most))
        for key in some:
            del self._now[key]
        return some

    def sent(self, key: str, ad: Mapping[str, Scalar], now: float) -> None:
        """It was sent as it is in `ad`."""
        folded = {name.lower(): value for name, value in ad.items()}
        self._there[key] = self._watched(folded)
        lifetime = folded.get("classadlifetime")
        oftener = (
            lifetime / _OFTENER if isinstance(lifetime, int | float) and lifetime > 0 else self._interval
        )
        self._due[key] = now + min(self._interval, oftener)
        if key not in self._lined:
            self._lined.add(key)
            heapq.heappush(self._line, (self._due[key], key))

    def removed(self, key: str) -> None:
        """It was taken away there."""
        self._there.pop(key, None)
        self._due.pop(key, None)

    def idle(self, now: float) -> float:
        """Seconds until there may be something to send."""
        if self._now:
            return 0.0
        return max(0.0, self._line[0][0] - now) if self._line else self._interval

    def _watched(self, ad: Mapping[str, Scalar]) -> Watched:
        return tuple(ad.get(name) for name in self._watch)
