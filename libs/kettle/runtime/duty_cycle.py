"""How busy a service is: of what a daemon's ad says to people and to the `htcondor` command."""

import time
from collections.abc import Callable

from kettle_wire.ads.types import Ad


class DutyCycle:
    """
    The share of its time in which a service works: what its event loop and it have used of a core between two ads.

    HTCondor's daemons call it RecentDaemonCoreDutyCycle; at 0.95 and above a daemon does not keep up.
    """

    def __init__(
        self,
        used: Callable[[], float] = time.process_time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._used = used
        self._now = now
        self._before = used(), now()
        self._share = 0.0

    def facts(self) -> Ad:
        """The attribute of the service's ad that its health is judged by."""
        used, now = self._used(), self._now()
        if (passed := now - self._before[1]) >= 1.0:  # shorter ones say nothing
            self._share = min(max((used - self._before[0]) / passed, 0.0), 1.0)
            self._before = used, now
        return {"RecentDaemonCoreDutyCycle": round(self._share, 4)}
