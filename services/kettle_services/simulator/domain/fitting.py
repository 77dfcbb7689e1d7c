"""
Delays of a real pool, by what is recorded of a period: what a simulation has to be told of the pool that it stands for.

Differences are taken between times of one clock only: that of the log, or that of the machine on which a job ran.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.period import Durations, Happening, Period, gaps_between_claims
from kettle_wire.ads import Scalar
from kettle_wire.events import JobAssigned, JobCompleted, JobStarted
from kettle_wire.jobs import JobId


class FittedDelays(msgspec.Struct, frozen=True, kw_only=True):
    """In microseconds; 0 where nothing is recorded from which they would follow."""

    latency: int
    """From when a match has become possible until the slot is claimed: the median, since some waited for something else."""
    gaps: int
    """From how many times this follows in which a job waited for a slot that another had."""
    start: int
    """
    How much longer a slot is occupied by a job than the job's program runs: the mean, because all of it is time that others wait.
    """
    attempts: int
    """From how many attempts this follows."""


class Ran(msgspec.Struct, frozen=True):
    """An attempt that ended by itself, in microseconds."""

    occupied: int
    """From when it was given a slot until its end was recorded."""
    program: int
    """From when its program was started until that exited, on the machine's clock."""


def attempts_of(happenings: Iterable[Happening]) -> dict[str, Ran]:
    """By the streams of jobs, the attempts of which both is recorded."""
    given: dict[str, int] = {}
    began: dict[str, float] = {}
    found: dict[str, Ran] = {}
    for one in happenings:
        match one.event:
            case JobAssigned():
                given[one.stream] = one.at
                began.pop(one.stream, None)
            case JobStarted(at=at) if at:
                began[one.stream] = at
            case JobCompleted(exit=left) if left.at and one.stream in began and one.stream in given:
                program = max(0, round((left.at - began[one.stream]) * US))
                found[one.stream] = Ran(one.at - given[one.stream], program)
            case _:
                pass
    return found


def fitted(period: Period) -> FittedDelays:
    """What the period says of its pool's delays."""
    gaps = gaps_between_claims(period.happenings, period.arrivals)
    over = [one.occupied - one.program for one in attempts_of(period.happenings).values()]
    return FittedDelays(latency=_median(gaps), gaps=len(gaps), start=max(0, _mean(over)), attempts=len(over))


def _mean(values: list[int]) -> int:
    return round(sum(values) / len(values)) if values else 0


def _median(values: list[int]) -> int:
    return sorted(values)[(len(values) - 1) // 2] if values else 0


class FittedDurations:
    """
    How long slots are occupied if each job takes so much longer than its program ran, where that is recorded.
    """

    def __init__(self, recorded: Durations, programs: Mapping[str, Ran], start: int) -> None:
        self._recorded, self._programs, self._start = recorded, programs, start
        self.began = recorded.began
        self.estimated = recorded.estimated
        self.endless = recorded.endless

    def of(self, job: JobId, stream: str, ad: Callable[[], Mapping[str, Scalar]], startd: str) -> int | None:
        """See `Durations`."""
        if stream in self._programs and stream not in self.began:
            return self._programs[stream].program + self._start
        return self._recorded.of(job, stream, ad, startd)

    def saved(self, stream: str, elapsed: int) -> int:
        """See `Durations`."""
        return self._recorded.saved(stream, elapsed)
