"""What happened, to a job or to the pool, as sentences."""

from collections.abc import Iterable, Iterator

import msgspec

from kettle.client import JobEvent
from kettle.client.events.sentences import sentence
from kettle_wire.events import Event, JobStarted


class TimelineEntry(msgspec.Struct, frozen=True):
    """
    One event: when, seconds after the one before, its short name, its sentence, and its meaning for colours.
    """

    at: float
    after: float
    name: str
    sentence: str
    style: str


def lines(events: Iterable[JobEvent]) -> Iterator[TimelineEntry]:
    """The events of one job, in order."""
    before: float | None = None
    started: float | None = None
    for event in events:
        told = event.event
        name = _name(told)
        said, style = sentence(told, since_start=None if started is None else event.at - started)
        yield TimelineEntry(event.at, 0.0 if before is None else event.at - before, name, said, style)
        before = event.at
        started = event.at if isinstance(told, JobStarted) else started


def _name(event: Event) -> str:
    tag = str(type(event).__struct_config__.tag)
    return tag.partition("/")[0].partition(".")[2]
