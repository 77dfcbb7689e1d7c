"""How often claims are renewed: those with a short lease more often than the others."""

from collections.abc import Mapping


class RenewalSchedule:
    """
    Of all startds, in seconds: `interval` for those whose claims have the usual `lease`, and in proportion for shorter ones.
    """

    def __init__(self, *, interval: float, lease: float) -> None:
        self._interval = interval
        self._lease = lease
        self._all_due = 0.0
        self._due: dict[str, float] = {}
        """When startds with short leases are asked before the others."""
        self._soon: set[str] = set()

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
        asked |= self._soon & shortest.keys()
        self._soon.clear()
        return asked

    def pause(self, now: float) -> float:
        """Until somebody is due."""
        return max(0.0, min((self._all_due, *self._due.values())) - now)
