"""When claims are renewed: those with a short lease more often, and of no startd twice at a time."""

from collections.abc import Mapping


class RenewalSchedule:
    """
    Of all startds, in seconds: `interval` for those whose claims have the usual `lease`, and in proportion for shorter ones;
    one that did not answer is asked again after `reconnect`.

    A startd may take long to answer, or not answer: it is asked nothing more until it has, or has not in time, and nobody
    else waits for that.
    """

    def __init__(self, *, interval: float, lease: float, reconnect: float) -> None:
        self._interval = interval
        self._lease = lease
        self._reconnect = reconnect
        self._all_due = 0.0
        self._due: dict[str, float] = {}
        """When startds with short leases are asked before the others."""
        self._again: dict[str, float] = {}
        """When startds are asked again that did not answer."""
        self._soon: set[str] = set()
        self._under_way: set[str] = set()

    def soon(self, startd: str) -> None:
        """A startd has granted claims, and waits for their first renewal."""
        self._soon.add(startd)

    def due(self, shortest: Mapping[str, float], now: float) -> set[str]:
        """
        The startds that are asked now, with their shortest leases; they are not asked again before their time.
        """
        quick = {
            startd: self._interval * lease / self._lease
            for startd, lease in shortest.items()
            if lease < self._lease
        }
        everybody = now >= self._all_due
        asked = (
            set(shortest) if everybody else {startd for startd in quick if now >= self._due.get(startd, 0.0)}
        )
        if everybody:
            self._all_due = now + self._interval
        self._due = {
            startd: now + pace if startd in asked else self._due[startd] for startd, pace in quick.items()
        }
        asked |= {startd for startd, at in self._again.items() if now >= at} & shortest.keys()
        asked |= self._soon & shortest.keys()
        asked -= self._under_way
        self._soon &= self._under_way  # what is under way does not name what was granted since
        self._again = {
            startd: at for startd, at in self._again.items() if startd in shortest and startd not in asked
        }
        self._under_way |= asked
        return asked

    def over(self, startd: str, now: float, *, answered: bool) -> bool:
        """
        It has answered, or has not in time. Whether it is due again already: it has granted claims meanwhile.
        """
        self._under_way.discard(startd)
        if not answered:
            self._again[startd] = now + self._reconnect
        return startd in self._soon

    def pause(self, now: float) -> float:
        """Until somebody is due, or may be: who is asked now and does not answer."""
        times = [self._all_due, *self._due.values(), *self._again.values()]
        if self._under_way:
            times.append(now + self._reconnect)
        return max(0.0, min(times) - now)
