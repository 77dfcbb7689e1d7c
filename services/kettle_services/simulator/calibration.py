"""Delays of a simulation fitted to a recorded period, and how wrong it is in the part that was held out."""

import msgspec

from kettle_services.simulator.comparison import Trust, trust
from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.fitting import FittedDelays, FittedDurations, attempts_of, fitted
from kettle_services.simulator.domain.period import Period, really
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.domain.submitter_sums import Sums, Tally
from kettle_services.simulator.garbage import seldom_collected
from kettle_wire.events import Event, JobCompleted


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome; times in seconds."""

    latency: float
    gaps: int
    start: float
    attempts: int
    recorded: Sums
    """Of all submitters together, in the part that was held out."""
    replayed: Sums
    """In a replay of that part with these delays."""
    wait_error: float | None
    """By how much the median of waits is wrong, as a part of it; None: nobody waited."""
    total_wait_error: float | None
    """By how much the sum of all waits is wrong."""
    span_error: float | None
    """By how much the time from the part's beginning to its last end is wrong; None: no job ended."""
    trust: Trust


@seldom_collected()
def calibrate(first: Period, held_out: Period, rules: PoolRules, *, step: int = US) -> Calibration:
    """Fit delays to the first period, and play the second one with them; `step` are microseconds."""
    found = fitted(first)
    real = really(held_out)
    ends: list[int] = []

    def note(at: int, _shard: str, _stream: str, event: Event) -> None:
        if isinstance(event, JobCompleted):
            ends.append(at)

    base = PeriodSimulation(_with(held_out, found), rules, step=step, record=note).run()
    recorded, replayed = _sums(real), _sums(base)
    last = [one.at for one in held_out.happenings if isinstance(one.event, JobCompleted)]
    return Calibration(
        latency=found.latency / US,
        gaps=found.gaps,
        start=found.start / US,
        attempts=found.attempts,
        recorded=recorded,
        replayed=replayed,
        wait_error=_error(replayed.wait_median, recorded.wait_median),
        total_wait_error=_error(_total(replayed), _total(recorded)),
        span_error=_error(max(ends) - held_out.since, max(last) - held_out.since) if ends and last else None,
        trust=trust(real, base),
    )


def _with(period: Period, delays: FittedDelays) -> Period:
    programs = attempts_of(period.happenings)
    works = {
        shard: FittedDurations(durations, programs, delays.start) for shard, durations in period.works.items()
    }
    return msgspec.structs.replace(period, works=works, latency=delays.latency)


def _sums(tally: Tally) -> Sums:
    return tally.sums({"all": tally.submitters})["all"]


def _total(sums: Sums) -> float | None:
    return None if sums.wait_mean is None else sums.wait_mean * sums.begun


def _error(found: float | None, real: float | None) -> float | None:
    return found / real - 1.0 if found is not None and real else None
