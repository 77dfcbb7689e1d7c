"""How many machines a pool had and wanted over time, from what was recorded."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kettle_services.scaler.domain.figures import Phase, kept_back, phase_of
from kettle_services.scaler.domain.leases import lease as leases
from kettle_services.scaler.domain.leases.lease import Lease
from kettle_wire.events import Event
from kettle_wire.events.lease import LeaseRequested
from kettle_wire.events.plan import PlannedMachines


class MachineHistory:
    """It is told what happened, in its order, and remembers how it was at some moments."""

    def __init__(self, pool: str, times: Sequence[float]) -> None:
        """`times`: the moments, in order, seconds since the epoch."""
        self._pool: Final = pool
        self._times: Final = times
        self._leases: dict[str, Lease] = {}
        self._kept_back = 0
        self.series: Final[dict[Phase, list[int]]] = {"wanted": [], "coming": [], "ready": []}

    def goes_on(self, at: float) -> None:
        """Nothing more is told of what was before `at`, seconds since the epoch."""
        told = self.series["ready"]
        if len(told) == len(self._times) or self._times[len(told)] >= at:
            return
        counts = Counter(phase_of(lease) for lease in self._leases.values())
        while len(told) < len(self._times) and self._times[len(told)] < at:
            self.series["wanted"].append(counts["coming"] + counts["ready"] + self._kept_back)
            self.series["coming"].append(counts["coming"])
            told.append(counts["ready"])

    def planned(self, machines: Sequence[PlannedMachines]) -> None:
        """What a plan has asked for, and would have asked for if it could."""
        self._kept_back = kept_back(self._pool, machines)

    def lease(self, stream: str, event: Event, at: float) -> None:
        """Something has happened to a lease, and was recorded at `at`."""
        before = self._leases.get(stream)
        if before is None and not (isinstance(event, LeaseRequested) and event.pool == self._pool):
            return  # of another pool, or requested before the first event that is told
        after = leases.fold(before, event, at)  # type: ignore[arg-type]  # its stream has no others
        if after is None:
            del self._leases[stream]
        else:
            self._leases[stream] = after


def moments(since: float, until: float, points: int) -> list[float]:
    """So many moments, the first and the last included; one of them is the first."""
    step = (until - since) / max(1, points - 1)
    return [since + number * step for number in range(points)]
