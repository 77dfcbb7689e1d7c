"""How submitters stood over time, from the recorded charges by the accountant's own fold."""

import bisect
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle_services.cli.errors import CommandError
from kettle_services.cli.log.databases import places
from kettle_services.cli.log.folds import CyclesThen
from kettle_services.cli.output.progress_bars import Bar
from kettle_wire.events import Event, UnknownEventError, decode
from kettle_wire.frames import Frame

_NEGOTIATOR: Final = "negotiator"
_OFTEN: Final = 256


class SubmitterSample(msgspec.Struct, frozen=True, kw_only=True):
    """How a submitter stood at a moment."""

    priority: float
    """Real priority."""
    factor: float | None
    """As an administrator had set it."""
    weight: float
    """In use, in slot weights, by the last charge."""
    accumulated: float
    """Weighted, in seconds."""


class Samples:
    """Standings at given moments, rising, seconds since the epoch; of accounting groups under `<group>`."""

    def __init__(self, moments: Sequence[float]) -> None:
        self.moments = moments
        self.stood: list[dict[str, SubmitterSample]] = []
        """One for each moment that is over."""
        self._then = CyclesThen(_NEGOTIATOR)

    def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """Fold the next frame; what is before it is over."""
        self._pass(bisect.bisect_left(self.moments, frame.at / 1e6))
        self._then.feed(frame, events)

    def end(self) -> None:
        """Nothing more is recorded."""
        self._pass(len(self.moments))

    def _pass(self, until: int) -> None:
        while len(self.stood) < until:
            real = self._then.priorities(self.moments[len(self.stood)])
            self.stood.append(
                {
                    name: SubmitterSample(
                        priority=real.get(name, one.priority),
                        factor=one.factor,
                        weight=one.weight,
                        accumulated=one.weighted_accumulated,
                    )
                    for name, one in self._then.principals.items()
                }
            )


async def sampled(home: Path, moments: Sequence[float], *, patience: float, bar: Bar) -> Samples:
    """
    From the log of a pool.

    Raises:
        CommandError: the database does not answer, or holds an event that cannot be read.
        UsageError: there is no negotiator's shard.
    """
    samples = Samples(moments)
    async with places(home, patience=patience) as found:
        (place,) = found.named([_NEGOTIATOR])
        async for frame in place.log.read(place.shard, until=place.tenure.frame):
            try:
                samples.feed(frame, [decode(entry.data) for entry in frame.entries])
            except UnknownEventError as error:
                raise CommandError(f"{place.shard}, frame {frame.number}: {error}") from error
            if frame.number % _OFTEN == 0:
                bar(place.shard, frame.number, place.tenure.frame)
    samples.end()
    return samples
