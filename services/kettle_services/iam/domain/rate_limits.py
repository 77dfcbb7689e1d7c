"""How many refusals are recorded one by one."""

from typing import Final

from kettle.http.rate_limits import Buckets


class Alarms:
    """
    Which refusals are recorded one by one, so that nobody can fill the log: of the others only their number
    is.
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        self._all: Final = Buckets(rate=rate, burst=burst)
        self._more = 0

    def record(self, *, now: float, count: int = 1) -> int | None:
        """
        How many came before this one without being recorded; None: neither is this one, which stands for `count`.
        """
        if self._all.take("", now=now):
            self._more += count
            return None
        more, self._more = self._more, 0
        return more
