"""What leases that are over have cost on this day, by pool; a day begins at midnight UTC."""

from kettle_services.scaler.domain.planning.bounds import day_of
from kettle_wire.events.lease import LeaseGone


class Spending:
    """It is added up from the events of a day, and forgotten with it."""

    def __init__(self) -> None:
        self._day = 0.0
        self._spent: dict[str, float] = {}

    def add(self, lease: str, event: LeaseGone, at: float) -> None:
        """
        A lease ended at a time in seconds since the epoch: the part of its cost counts that is of this day.
        """
        self._turn(at)
        if event.seconds > 0:
            pool = pool_of(lease)
            today = min(event.seconds, at - self._day)
            self._spent[pool] = self._spent.get(pool, 0.0) + event.cost * today / event.seconds

    def on(self, now: float) -> dict[str, float]:
        """What was spent until now."""
        self._turn(now)
        return dict(self._spent)

    def _turn(self, now: float) -> None:
        if (day := day_of(now)) > self._day:
            self._day, self._spent = day, {}


def pool_of(lease: str) -> str:
    """The pool of a lease, by its id."""
    return lease.rsplit("-", 2)[0]
