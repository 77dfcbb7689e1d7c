"""
The compute entrypoint of a simulated pool: it decides as the real one does, at the moment in which something is news to it.

The jobs that wait, and how many each route has, are the queue's own account of them.  Routes lead to the pool itself.
"""

from typing import Final

from kettle.routes import RouteTable
from kettle_services.ce.domain.decisions import Said, WaitingJob, counters_of, decide, to_decide
from kettle_services.schedd.domain.submission import routes
from kettle_services.simulator.domain.clock import ROUTES
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.invented.period_of_workload import SHARD
from kettle_wire.commands.routing import RouteCount, VoCount
from kettle_wire.jobs import JobId

_ALL: Final = 1 << 62


class RoutedJobs:
    """The jobs of one simulation that come by an entrypoint."""

    def __init__(self, table: RouteTable, simulation: PeriodSimulation) -> None:
        self._table, self._simulation = table, simulation
        self._queue = simulation.running.schedds[SHARD].queue
        self._waiting: dict[JobId, WaitingJob] = {}
        self._known = self._queue.routing.news
        self._turn = 0
        self._decides = False
        """It will, or does just now."""

    def look(self) -> None:
        """Something was recorded; if it is news, decide when all of this moment has happened."""
        if not self._decides and self._queue.routing.news != self._known:
            self._decides = True
            clock = self._simulation.clock
            clock.at(clock.now, self._decide, turn=ROUTES)

    def _decide(self) -> None:
        now, routing = self._simulation.clock.seconds, self._queue.routing
        for job in routing.next_untold(_ALL):
            entry = self._queue.jobs[job]
            self._waiting[job] = WaitingJob(job, routes.said_before(entry), self._queue.ad(job), "", now)
        for job in routing.take_left():
            if job not in routing.awaiting:
                self._waiting.pop(job, None)
        counts = [
            RouteCount(
                route=name,
                jobs=has.jobs,
                idle=has.idle,
                running=has.running,
                held=has.held,
                failed=0,
                failure="",
            )
            for name, has in sorted(routing.routes.items())
        ]
        vos = [
            VoCount(vo=name, jobs=has.jobs, idle=has.idle, running=has.running, held=has.held)
            for name, has in sorted(routing.vos.items())
        ]
        counters = counters_of(self._table, counts, {}, self._turn, vos=vos)
        chosen = to_decide(self._waiting.values(), self._table, counters)
        said, counters = decide(chosen, self._table, counters, now, hold_after=0.0)
        self._turn = counters.turn
        for each in said:
            self._carry_out(each)
        self._known, self._decides = routing.news, False

    def _carry_out(self, said: Said) -> None:
        routing, running = said.routing(), self._simulation.running
        for waiting, numbered in zip(said.jobs, routing.jobs, strict=True):
            if said.decision.route:
                ad = self._queue.ad(waiting.job)
                known = {name.lower(): name for name in ad}
                running.routed(SHARD, waiting.job, routes.route(ad, known, routing, numbered.number))
                self._waiting.pop(waiting.job, None)
                continue
            waiting.number, waiting.reason = numbered.number, said.reason
            entry = self._queue.jobs[waiting.job]
            if (told := routes.unroute(entry, said.reason, numbered.number)) is not None:
                running.routed(SHARD, waiting.job, told)
