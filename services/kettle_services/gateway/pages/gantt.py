"""
The time line of a job as a drawing: a row for its waiting, and one for each attempt.

Pure: times in, places in thousandths of the width out.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from kettle_services.gateway.pages.wording import clock, span
from kettle_wire.rest.past import Phase

_WIDTH: Final = 1000.0
_LEAST: Final = 2.0
"""So wide is a bar at least, so that it is seen."""
_TICKS: Final = 6
_STEPS: Final = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000,
)  # fmt: skip
"""Seconds between ticks."""
_ENDS: Final = frozenset({"completed", "removed"})


class Bar(msgspec.Struct, frozen=True):
    """A state over some time."""

    state: str
    start: float
    width: float
    says: str


class Lane(msgspec.Struct, frozen=True):
    """A row."""

    title: str
    bars: Sequence[Bar]


class Tick(msgspec.Struct, frozen=True):
    """A time on the axis."""

    place: float
    says: str


class Gantt(msgspec.Struct, frozen=True):
    """The drawing."""

    lanes: Sequence[Lane]
    ticks: Sequence[Tick]
    lasts: str


def drawn(phases: Sequence[Phase], now: datetime) -> Gantt | None:
    """What these phases look like at a time; None: there is nothing to see."""
    if not phases:
        return None
    begin = phases[0].since
    end = phases[-1].since if phases[-1].state in _ENDS else now
    length = max((end - begin).total_seconds(), 0.001)

    def bar(phase: Phase) -> Bar:
        until = min(phase.until or end, end)
        start = _WIDTH * (phase.since - begin).total_seconds() / length
        width = max(_WIDTH * (until - phase.since).total_seconds() / length, _LEAST)
        start = min(start, _WIDTH - _LEAST)
        took = span((until - phase.since).total_seconds())
        where = f" on {phase.slot}" if phase.slot else ""
        return Bar(
            phase.state,
            round(start, 1),
            round(min(width, _WIDTH - start), 1),
            f"{phase.state}{where} for {took}",
        )

    lanes = [Lane("Waiting", [bar(phase) for phase in phases if _waits(phase)])]
    for number, attempt in enumerate(_attempts(phases), 1):
        lanes.append(Lane(f"Run {number}", [bar(phase) for phase in attempt]))
    return Gantt(lanes, list(ticks(begin, end, length)), span(length))


def _waits(phase: Phase) -> bool:
    return phase.state in {"idle", "held"}


def _attempts(phases: Sequence[Phase]) -> Iterator[list[Phase]]:
    """Phases in which it had a slot, those of one run together."""
    run: list[Phase] = []
    for phase in phases:
        if phase.state in _ENDS:
            continue
        if _waits(phase) or (run and run[-1].slot != phase.slot):
            if run:
                yield run
            run = []
        if not _waits(phase):
            run.append(phase)
    if run:
        yield run


def ticks(begin: datetime, end: datetime, length: float) -> Iterator[Tick]:
    """Round times on an axis of so many seconds."""
    step = next((each for each in _STEPS if length / each <= _TICKS), _STEPS[-1])
    first = datetime.fromtimestamp((begin.timestamp() // step + 1) * step, tz=UTC)
    moment = first
    while moment < end:
        place = _WIDTH * (moment - begin).total_seconds() / length
        yield Tick(round(place, 1), clock(moment, end) if step < 86400 else f"{moment:%m-%d}")
        moment += timedelta(seconds=step)
