"""
What people ask an entrypoint: its routes, what it has decided, what it would, and to read its file again.
"""

import asyncio
import time
from collections.abc import Callable, Collection

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle.eventsourcing.log import Log
from kettle.routes import RouteFileError, RouteTable, read_routes, route
from kettle.routes.targets import leading_to
from kettle_services.ce.domain.decisions import NO_ROUTES, count_of_vo
from kettle_services.ce.domain.state import DECISION, DRAIN
from kettle_services.ce.record import Record
from kettle_services.ce.route_file import RouteFile
from kettle_services.ce.routing import Router
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.ce import (
    DecidedRoute,
    DecisionShown,
    DrainEntrypoint,
    DrainSet,
    LoadRoutes,
    ResumeEntrypoint,
    RoutesRead,
    RoutesShown,
    RouteState,
    RouteTried,
    ShowDecision,
    ShowRoutes,
    TryRoute,
    VoState,
)
from kettle_wire.commands.routing import VoCount
from kettle_wire.events import DrainBegun, DrainOver, Event, RouteDecided, decode
from kettle_wire.identity import Identity


class CeCommands:
    """Answers them."""

    def __init__(
        self,
        log: Log,
        record: Record,
        file: RouteFile,
        router: Router,
        administrators: Callable[[], Collection[str]],
    ) -> None:
        self._administrators = administrators
        self._log = log
        self._record = record
        self._file = file
        self._router = router

    async def show_routes(self, request: ShowRoutes, caller: Identity) -> RoutesShown:
        """The routes in force, and how they stand."""
        del request, caller
        table, state = self._table(), self._record.state.file
        counts = {each.route: each for each in self._router.counts}
        closed = self._router.closed(time.time())
        health = self._record.state.routes.states
        shown: list[RouteState] = []
        for each in table.routes:
            count, fares = counts.get(each.name), health.get(each.name)
            shown.append(
                RouteState(
                    name=each.name,
                    target="pool" if each.is_of_this_pool else each.grid_resource,
                    max_jobs=each.max_jobs,
                    max_idle=each.max_idle_jobs,
                    jobs=count.jobs if count else 0,
                    idle=count.idle if count else 0,
                    running=count.running if count else 0,
                    held=count.held if count else 0,
                    closed=closed.get(each.name, ""),
                    slowed_until=fares.until if fares else 0.0,
                    failure=count.failure if count else "",
                )
            )
        return RoutesShown(
            version=table.version,
            source=state.source,
            text=state.text,
            loaded=state.loaded,
            routes=shown,
            waiting=self._router.without_route,
            problems=state.problems,
            vos=[_vo_state(each) for each in self._router.vos],
            draining=self._router.draining,
        )

    async def show_decision(self, request: ShowDecision, caller: Identity) -> DecisionShown:
        """All that was decided about a job, for its owner: it says what is in its environment."""
        stream = f"{DECISION}{request.job.cluster}"
        found: list[DecidedRoute] = []
        for frame, _ in await self._log.stream(self._record.shard.name, stream):
            event = decode(frame.entries[0].data)
            if not isinstance(event, RouteDecided):
                continue
            if not caller.is_person(event.owner) and not self._administers(caller):
                raise RefusedError(RefusalCode.DENIED, f"job {request.job} belongs to {event.owner}")
            found += (
                DecidedRoute(
                    at=frame.at / 1e6,
                    number=each.number,
                    version=event.version,
                    route=event.route,
                    attributes=event.attributes,
                    removed=event.removed,
                    refusals=event.refusals,
                    trace=event.trace,
                )
                for each in event.jobs
                if each.proc == request.job.proc
            )
        if not found:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"nothing was decided about a job {request.job}: it has had no route yet",
            )
        return DecisionShown(decisions=found)

    async def try_route(self, request: TryRoute, caller: Identity) -> RouteTried:
        """What would be decided now."""
        table = self._table()
        if request.text and not self._administers(caller):
            raise RefusedError(
                RefusalCode.DENIED,
                "only administrators try routes of their own here: kettle ce route tries them where you are",
            )
        if request.text:
            try:
                table = await asyncio.to_thread(read_routes, request.text, "the routes of the request")
                table = leading_to(table, self._file.systems)
            except RouteFileError as error:
                raise RefusedError(RefusalCode.UNACCEPTABLE, str(error)) from error
        now = time.time()
        counters = self._router.counters(table, now)
        decision = await asyncio.to_thread(route, request.ad, table, counters, int(now))
        return RouteTried(
            route=decision.route,
            attributes=decision.set,
            removed=list(decision.removed),
            refusals=list(decision.refusals),
            trace=list(decision.trace),
        )

    async def load_routes(self, request: LoadRoutes, caller: Identity) -> Decision[RoutesRead]:
        """Read the file; it is recorded what comes of that."""
        del request, caller
        problems = await self._file.load()
        version = self._file.table.version if self._file.table is not None else ""
        return Decision(lambda position: RoutesRead(position=position, version=version, problems=problems))

    async def drain(self, request: DrainEntrypoint, caller: Identity) -> Decision[DrainSet]:
        """Take no jobs; said again with another reason it is for that one."""
        door = self._record.state.door
        if door.draining and door.reason == request.reason:
            return self._drain_set()
        return self._drain_set(DrainBegun(by=caller.name, reason=request.reason))

    async def resume(self, request: ResumeEntrypoint, caller: Identity) -> Decision[DrainSet]:
        """Take jobs again."""
        del request
        return self._drain_set(*([DrainOver(by=caller.name)] if self._record.state.door.draining else []))

    def _drain_set(self, *events: Event) -> Decision[DrainSet]:
        """All jobs that wait are decided about again then, and the schedd is told."""
        return Decision(
            lambda position: DrainSet(position=position, draining=self._router.draining),
            [(DRAIN, event) for event in events],
            effect=self._router.forget if events else None,
        )

    def _administers(self, caller: Identity) -> bool:
        return caller.kind == "daemon" or (caller.kind == "user" and caller.name in self._administrators())

    def _table(self) -> RouteTable:
        if self._file.table is None:
            problems = "; ".join(self._record.state.file.problems)
            raise RefusedError(RefusalCode.NOT_FOUND, problems or NO_ROUTES)
        return self._file.table


def _vo_state(told: VoCount) -> VoState:
    return VoState(
        vo=told.vo,
        jobs=told.jobs,
        idle=told.idle,
        running=told.running,
        held=told.held,
        max_jobs=told.max_jobs,
        max_idle=told.max_idle,
        max_running=told.max_running,
        spooled=told.spooled,
        max_spool=told.max_spool,
        full=count_of_vo(told).full,
    )
