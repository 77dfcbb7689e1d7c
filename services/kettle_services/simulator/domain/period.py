"""A stretch of the recorded past: how all stood when it began, and what happened until it was over."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from kettle_services.negotiator.domain.principals import Principal
from kettle_services.schedd.domain.queue.fold import Queue, job_of_stream
from kettle_services.simulator.domain.machine import Machine
from kettle_services.simulator.domain.submitter_sums import Arrivals, Tally
from kettle_wire.ads import Scalar
from kettle_wire.events import ClaimEnded, ClaimGranted, Event, JobAssigned
from kettle_wire.jobs import JobId


class Happening(msgspec.Struct, frozen=True):
    """A recorded event."""

    at: int
    shard: str
    stream: str
    event: Event


class Durations(Protocol):
    """For how long jobs of one schedd occupy a slot, in microseconds."""

    began: dict[str, int]
    """When the attempt of each job began that ran when the period began, by the job's stream."""
    estimated: set[str]
    """Jobs that never ran, whose duration was estimated from others on request."""
    endless: set[str]
    """Jobs without any estimate of their duration."""

    def of(self, job: JobId, stream: str, ad: Callable[[], Mapping[str, Scalar]], startd: str) -> int | None:
        """Of a job with an ad on a machine; None: until somebody ends it, or the period is over."""
        ...

    def saved(self, stream: str, elapsed: int) -> int:
        """How much of an attempt that makes room is not lost."""
        ...


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """Times in microseconds since the epoch. A replay changes nothing in it."""

    since: int
    until: int
    queues: Callable[[], Mapping[str, Queue]]
    """By shard, how the queues were when it began; new ones at each call."""
    arrivals: Mapping[str, Arrivals]
    works: Mapping[str, Durations]
    machines: Mapping[str, Machine]
    """All that were there at some time, by name."""
    there: Sequence[str]
    """Those that were there when it began."""
    principals: Mapping[str, Principal]
    """How submitters stood with the accountant, by what was recorded until then."""
    happenings: Sequence[Happening]
    """All that is recorded, in the order of time."""
    significant: tuple[str, ...] = ()
    """Attributes by which schedds distinguish jobs besides those that always count."""
    latency: int = 0
    """How long it takes from when a match has become possible until the slot is claimed."""


def latency(happenings: Iterable[Happening], arrivals: Mapping[str, Arrivals]) -> int:
    """
    What ads, a cycle and the claiming of a slot took, by what is recorded.

    The median of `gaps_between_claims`; 0 if there is none.
    """
    gaps = gaps_between_claims(happenings, arrivals)
    return sorted(gaps)[(len(gaps) - 1) // 2] if gaps else 0


def gaps_between_claims(happenings: Iterable[Happening], arrivals: Mapping[str, Arrivals]) -> list[int]:
    """
    For how long slots had no claim between one and the next, where the job that then began was in the queue all that time.
    """
    slots: dict[str, str] = {}
    ended: dict[str, int] = {}
    gaps: list[int] = []
    for one in happenings:
        match one.event:
            case ClaimGranted(claim=claim, slot=slot):
                slots[claim] = slot
            case ClaimEnded(claim=claim) if claim in slots:
                ended[slots.pop(claim)] = one.at
            case JobAssigned(slot=slot) if slot in ended:
                since = ended.pop(slot)
                if arrivals[one.shard].of(job_of_stream(one.stream)) <= since:
                    gaps.append(one.at - since)
            case _:
                pass
    return gaps


def really(period: Period) -> Tally:
    """The results of all submitters with jobs, according to the log."""
    tally, queues = Tally(period.since, period.until), period.queues()
    for queue in queues.values():
        for claim in queue.claims.values():
            tally.held(claim.granted, claim.at)
    for one in period.happenings:
        if one.shard in queues:
            queue = queues[one.shard]
            tally.note(queue, period.arrivals[one.shard], one.stream, one.event, one.at)
            queue.apply(one.stream, one.event, one.at)
    tally.close(queues.values())
    return tally
