"""
The jobs of one queue that an entrypoint routes: which of them wait for a route, and how many each route has.

A job is one of them because its submission says so (`AwaitsRoute`). It has a route while its ad has `RouteName`, and without one it
is offered to nobody.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle.jobs.routed_attributes import awaits_route
from kettle_services.schedd.domain.queue.alike import JobsAlike
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.runnable import Runnable
from kettle_wire.ads import Scalar
from kettle_wire.events import ClusterSubmitted
from kettle_wire.jobs import JobId

_ROUTE: Final = "RouteName"
SPOOLED: Final = "SpooledInputBytes"
_RESULTS: Final = "BytesSent"
"""Of a job that is over: its results, which are in the spool until they are fetched."""


class RouteTally(msgspec.Struct):
    """What one route has."""

    jobs: int = 0
    """In the queue, and not over."""
    idle: int = 0
    running: int = 0
    held: int = 0
    failed: int = 0
    """Jobs that failed on it, since this schedd began: it is not recorded."""
    failure: str = ""
    """How the last of them did."""


class VoTally(msgspec.Struct):
    """What one VO has."""

    jobs: int = 0
    """In the queue, and not over, those without a route too."""
    idle: int = 0
    """With a route, as those that run and are held."""
    running: int = 0
    held: int = 0
    spooled: int = 0
    """Bytes of the files of its jobs in the spool: what was sent for those in the queue, and the results of those that are over."""
    spooled_by: Counter[int] = msgspec.field(default_factory=Counter)
    """How much of it each cluster has."""


def spooled_by(entry: QueuedJob) -> int:
    """Bytes that the files of a job have in the spool."""
    sent = entry.changed.get(SPOOLED)
    if not isinstance(sent, int):
        return 0
    left = entry.changed.get(_RESULTS) if entry.job.ended else 0
    return sent + (int(left) if isinstance(left, int | float) else 0)


def route_of(entry: QueuedJob) -> str:
    """The route that a job has; empty: none."""
    route = entry.changed.get(_ROUTE, "")
    return route if isinstance(route, str) else ""


def awaiting_proc(submitted: ClusterSubmitted, proc: int) -> bool:
    """Whether one job of a submission is one of them."""
    row = dict(zip(submitted.columns, submitted.rows[proc], strict=True))
    said: Mapping[str, Scalar] = {**submitted.ad, **row}
    return any(value is True for name, value in said.items() if awaits_route([name]))


class Routing:
    """Kept by the queue as it folds; jobs that no entrypoint routes are not looked at."""

    def __init__(self) -> None:
        self.awaiting: Final[dict[JobId, int]] = {}
        """Jobs without a route that could run, with their priority."""
        self.untold: Final = Runnable()
        """Those among them that the entrypoint has not heard of."""
        self.routes: Final[dict[str, RouteTally]] = {}
        self.vos: Final[dict[str, VoTally]] = {}
        """By name; empty: of no VO."""
        self.left: Final[set[JobId]] = set()
        """Jobs that the entrypoint knows as waiting, and that wait no longer."""
        self.news: int = 1
        """Counts what may be news to the entrypoint."""

    def hold(self, alike: JobsAlike) -> list[JobId]:
        """Have those wait that need a route, whose ads may be new; the others."""
        submitted = alike.cluster.submitted
        waiting = [job for job in alike.jobs if awaiting_proc(submitted, job.proc)]
        if not waiting:
            return alike.jobs
        for some, priority in alike.priorities(waiting):
            self.awaiting.update(dict.fromkeys(some, priority))
            self.untold.add(some, priority)
        self.news += 1
        return [job for job in alike.jobs if job not in self.awaiting]

    def release(self, job: JobId) -> bool:
        """Whether a job waited for a route; it does no more."""
        priority = self.awaiting.pop(job, None)
        if priority is None:
            return False
        self.untold.discard([job], priority)
        self.left.add(job)
        self.news += 1
        return True

    def told(self, jobs: Iterable[JobId]) -> None:
        """The entrypoint knows of these, and of how they are."""
        for job in jobs:
            if (priority := self.awaiting.get(job)) is not None:
                self.untold.discard([job], priority)

    def tell_again(self) -> None:
        """The entrypoint has forgotten what it knew."""
        self.left.clear()
        for job, priority in self.awaiting.items():
            self.untold.add([job], priority)

    def next_untold(self, most: int) -> list[JobId]:
        """The first ones that the entrypoint does not know; from now on it does."""
        found: list[JobId] = []
        while len(found) < most and (best := self.untold.best()) is not None:
            found.append(best[1])
            self.told([best[1]])
        return found

    def take_left(self) -> list[JobId]:
        """Those that wait no longer; they are told of once."""
        found = sorted(self.left)
        self.left.clear()
        return found

    def enter(self, alike: JobsAlike) -> None:
        """Count jobs in."""
        if alike.cluster.routed:
            self._count(alike, len(alike.jobs))

    def leave(self, alike: JobsAlike) -> None:
        """Inverse of `enter`."""
        if alike.cluster.routed:
            self._count(alike, -len(alike.jobs))

    def _count(self, alike: JobsAlike, number: int) -> None:
        entry, vo = alike.entry, alike.cluster.vo
        if SPOOLED in entry.changed:
            self._count_spooled(spooled_by(entry) * number, vo, alike.cluster.submitted.cluster)
        if entry.job.ended:
            return
        of_vo = self.vos.setdefault(vo, VoTally())
        of_vo.jobs += number
        if route := route_of(entry):
            tally = self.routes.setdefault(route, RouteTally())
            tally.jobs += number
            for each in (tally, of_vo):
                match entry.job.status:
                    case "idle":
                        each.idle += number
                    case "running":
                        each.running += number
                    case "held":
                        each.held += number
                    case _:
                        pass
            self.news += 1

    def _count_spooled(self, size: int, vo: str, cluster: int) -> None:
        of_vo = self.vos.setdefault(vo, VoTally())
        of_vo.spooled += size
        of_vo.spooled_by[cluster] += size
        if of_vo.spooled_by[cluster] <= 0:
            del of_vo.spooled_by[cluster]

    def fail(self, route: str, jobs: int, failure: str) -> None:
        """Jobs have failed on a route."""
        tally = self.routes.setdefault(route, RouteTally())
        tally.failed += jobs
        tally.failure = failure
        self.news += 1
