"""
Routes jobs: hears from the schedd which have no route, decides, records what it has decided, and has the schedd record the routes.

All that is counted is the schedd's, and what was decided is recorded before it is told: whatever is killed meanwhile, a job has one
route or waits for one.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle.faults import fault_point
from kettle.routes import Counters, RouteTable
from kettle_services.ce.domain import throttle
from kettle_services.ce.domain.decisions import (
    NO_ROUTES,
    Said,
    WaitingJob,
    counters_of,
    decide,
    next_hold,
    overdue,
    to_decide,
)
from kettle_services.ce.domain.state import DECISION, ROUTE
from kettle_services.ce.record import Record
from kettle_services.ce.route_file import RouteFile
from kettle_services.ce.settings import CeSettings
from kettle_wire.commands.routing import (
    LIST_UNROUTED,
    LONGEST_WAIT_S,
    MOST_JOBS,
    ROUTE_JOBS,
    ListUnrouted,
    Numbered,
    RouteCount,
    RouteJobs,
    Routing,
    Unrouted,
    VoCount,
)
from kettle_wire.events import Event, RouteFailed
from kettle_wire.jobs import JobId

_log: Final = logging.getLogger(__name__)
_WITHIN_S: Final = 10.0
_AGAIN_S: Final = 0.5
"""Before a schedd that did not answer is asked again."""
_AT_ONCE: Final = 200
"""Jobs about which is decided before others have a turn."""


class Router:
    """One loop, in which each decision knows of all before."""

    def __init__(self, bus: Bus, record: Record, file: RouteFile, settings: CeSettings) -> None:
        self._bus = bus
        self._record = record
        self._file = file
        self._settings = settings
        self._news = 0
        self._waiting: dict[JobId, WaitingJob] = {}
        self._failures: dict[str, list[float]] = {}
        """By route the times of failures that count."""
        self._failed: dict[str, int] = {}
        """By route, how many its schedd has counted."""
        self.turn = record.state.turn
        """The place in the turns of routes that are taken one after the other."""
        self._asking: asyncio.Task[Unrouted] | None = None
        self.counts: Sequence[RouteCount] = ()
        """What its schedd said last."""
        self.vos: Sequence[VoCount] = ()
        self.without_route = 0
        """Jobs that wait, by its schedd's word."""

    def forget(self) -> None:
        """
        The routes are others, or it is drained or resumed: hear again which jobs wait, also those of which an answer is on its way.
        """
        self._news = 0
        self._waiting.clear()
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()

    async def run(self) -> None:
        """Never returns."""
        while True:
            try:
                answer = await self._asked()
                if answer is not None:
                    self._take_in(answer)
                await self._route()
            except BusError as error:
                _log.info("the schedd does not answer", extra={"cause": str(error)})
                self._news = 0  # what it was told may have been lost
                self._waiting.clear()
                await asyncio.sleep(_AGAIN_S)

    async def _asked(self) -> Unrouted | None:
        """What is new; None: it does not count any more."""
        wait = self._patience()
        request = ListUnrouted(
            most=self._settings.at_once, news=self._news, wait=wait, draining=self.draining
        )
        call = self._bus.call(LIST_UNROUTED, self._settings.name, request, deadline=wait + _WITHIN_S)
        asking = self._asking = asyncio.ensure_future(call)
        try:
            await asyncio.wait([asking])
            if self._asking is not asking:
                return None
            return asking.result()
        finally:
            asking.cancel()
            self._asking = None

    def _patience(self) -> float:
        """For how long nothing is to be done unless something happens."""
        now = time.time()
        times = [now + LONGEST_WAIT_S]
        if (hold := next_hold(self._waiting.values(), self._settings.hold_unrouted_after)) is not None:
            times.append(hold)
        times += (each.until for each in self._record.state.routes.states.values() if each.until > now)
        return min(max(min(times) - now, 0.0), LONGEST_WAIT_S)

    def _take_in(self, answer: Unrouted) -> None:
        self._news = answer.news
        for job in answer.left:
            self._waiting.pop(job, None)
        self._waiting.update((told.job, WaitingJob.of(told)) for told in answer.jobs)
        self.counts, self.vos, self.without_route = answer.routes, answer.vos, answer.waiting

    async def _route(self) -> None:
        table = self._file.table
        if table is None:
            await self._say_no_routes()
            return
        self._count_failures(table)
        now = time.time()
        counters = self.counters(table, now)
        jobs = to_decide(self._waiting.values(), table, counters)
        late = overdue(self._waiting.values(), self._settings.hold_unrouted_after, now)
        chosen = list({each.job: each for each in [*jobs, *late]}.values())
        said: list[Said] = []
        for start in range(0, len(chosen), _AT_ONCE):
            some = chosen[start : start + _AT_ONCE]
            found, counters = decide(
                some, table, counters, now, hold_after=self._settings.hold_unrouted_after
            )
            said += found
            await asyncio.sleep(0)
        self.turn = counters.turn
        if said:
            await self._carry_out(said)

    @property
    def draining(self) -> str:
        """Why it takes no jobs, as a sentence with its code; empty: it does."""
        door = self._record.state.door
        if not door.draining:
            return ""
        return f"ce.draining: {door.by} drains the entrypoint{f': {door.reason}' if door.reason else ''}"

    def counters(self, table: RouteTable, now: float) -> Counters:
        """How many jobs there are, and what takes none now."""
        return counters_of(
            table, self.counts, self.closed(now), self.turn, vos=self.vos, draining=self.draining
        )

    def closed(self, now: float) -> dict[str, str]:
        """The routes that take no job now, and why."""
        return {
            name: f"too many of its jobs failed ({health.reason})"
            for name, health in self._record.state.routes.states.items()
            if health.until > now
        }

    def _count_failures(self, table: RouteTable) -> None:
        """What failed since the last answer closes a route for a while; that is recorded."""
        now = time.time()
        changes: list[tuple[str, Event]] = []
        for count in self.counts:
            before = self._failed.get(count.route, count.failed)
            self._failed[count.route] = count.failed
            new = count.failed - before if count.failed >= before else count.failed
            if new <= 0 or (taken := table.named(count.route)) is None:
                continue
            times = throttle.recent(self._failures.get(count.route, []), now) + [now] * new
            self._failures[count.route] = times
            until = throttle.closed_until(times, taken.failure_rate_threshold, now)
            if until > now:
                failed = RouteFailed(failures=len(times), until=until, reason=count.failure)
                changes.append((ROUTE + count.route, failed))
        if changes:
            self._record.record(changes)

    async def _carry_out(self, said: list[Said]) -> None:
        """Record decisions, and have the schedd record what follows from them."""
        await self._record.record([(f"{DECISION}{each.jobs[0].job.cluster}", each.event()) for each in said])
        fault_point("ce.decided")
        answer = await self._bus.call(
            ROUTE_JOBS,
            self._settings.name,
            RouteJobs(routings=[each.routing() for each in said]),
            deadline=_WITHIN_S,
        )
        refused = {each.job: each.reason for each in answer.refused}
        for each in said:
            for job in each.jobs:
                if job.job in refused:
                    continue
                if each.decision.route or each.hold:
                    self._waiting.pop(job.job, None)
                else:
                    job.number, job.reason = job.number + 1, each.reason
        if refused:
            await self._say(refused)
        if answer.stale:
            self._news = 0

    async def _say_no_routes(self) -> None:
        new = {job: NO_ROUTES for job, each in self._waiting.items() if each.reason != NO_ROUTES}
        if new:
            await self._say(new)

    async def _say(self, reasons: Mapping[JobId, str]) -> None:
        """Why jobs have no route."""
        known = [each for job in sorted(reasons) if (each := self._waiting.get(job)) is not None]
        routings = [
            Routing(jobs=[Numbered(each.job, each.number + 1)], reason=reasons[each.job]) for each in known
        ]
        for start in range(0, len(routings), MOST_JOBS):
            request = RouteJobs(routings=routings[start : start + MOST_JOBS])
            await self._bus.call(ROUTE_JOBS, self._settings.name, request, deadline=_WITHIN_S)
        for each in known:
            each.number, each.reason, each.full = each.number + 1, reasons[each.job], frozenset()
