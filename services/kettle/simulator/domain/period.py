"""A stretch of the recorded past: how all stood when it began, and what happened until it was over."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kettle.negotiator.domain.principals import Principal
from kettle.schedd.domain.queue import Queue
from kettle.simulator.domain.machines import Machine
from kettle.simulator.domain.tally import Arrivals, Tally
from kettle.simulator.domain.works import Works
from kettle.wire.events import Event


class Happening(msgspec.Struct, frozen=True):
    """A recorded event."""

    at: int
    shard: str
    stream: str
    event: Event


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """Times in microseconds since the epoch. Whoever plays it changes nothing in it."""

    since: int
    until: int
    queues: Callable[[], Mapping[str, Queue]]
    """By shard, how the queues were when it began; new ones at each call."""
    arrivals: Mapping[str, Arrivals]
    works: Mapping[str, Works]
    machines: Mapping[str, Machine]
    """All that were there at some time, by name."""
    there: Sequence[str]
    """Those that were there when it began."""
    principals: Mapping[str, Principal]
    """How submitters stood with the accountant, by what was recorded until then."""
    happenings: Sequence[Happening]
    """All that is recorded, in the order of time."""


def really(period: Period) -> Tally:
    """What became of all who had jobs, by what is recorded."""
    tally, queues = Tally(period.since, period.until), period.queues()
    for queue in queues.values():
        for claim in queue.claims.values():
            tally.held(claim.granted, claim.at)
    for one in period.happenings:
        queue = queues.get(one.shard)
        if queue is not None:
            tally.note(queue, period.arrivals[one.shard], one.stream, one.event, one.at)
            queue.apply(one.stream, one.event, one.at)
    tally.close(queues.values())
    return tally
