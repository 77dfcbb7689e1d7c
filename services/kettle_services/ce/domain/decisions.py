"""What an entrypoint decides about the jobs that wait for a route, and how it is recorded and told."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kettle.jobs.routed_attributes import OWN_SUBMIT_ARGS, SUBMIT_ARGS
from kettle.routes import Counters, Decision, Route, RouteCount, RouteTable, VoCount, route, vo_of
from kettle_wire.ads import Ad, Expr
from kettle_wire.commands.routing import Numbered, Routing, UnroutedJob
from kettle_wire.commands.routing import RouteCount as QueueCount
from kettle_wire.commands.routing import VoCount as QueueVoCount
from kettle_wire.events.route import RouteDecided, RoutedProc
from kettle_wire.jobs import JobId
from kettle_wire.routes import RefusalKind, RouteRefusal

NO_ROUTES: Final = "there are no routes: the entrypoint has no file with any (routes in [ce])"
_MOST_REASON: Final = 4000
_SUBMIT_ARGS: Final = SUBMIT_ARGS.lower()
_encode: Final = msgspec.msgpack.Encoder(order="deterministic").encode


class WaitingJob(msgspec.Struct):
    """A job without a route, as its schedd has told of it."""

    job: JobId
    number: int
    """So often something was said of it."""
    ad: Ad
    reason: str
    """What was said last."""
    since: float
    """Since when it waits, seconds since the epoch."""
    version: str = ""
    """Of the routes that were tried; empty: none were."""
    full: frozenset[str] = frozenset()
    """Those among them that would take it but for their limits."""
    shut: bool = False
    """None was tried, because its VO had as many jobs as it may, or the entrypoint is drained."""

    @classmethod
    def of(cls, told: UnroutedJob) -> "WaitingJob":
        """As it was told."""
        since = told.ad.get("EnteredCurrentStatus", 0)
        at = float(since) if isinstance(since, int | float) else 0.0
        return cls(told.job, told.number, told.ad, told.reason, at)

    @property
    def is_unfit(self) -> bool:
        """Whether routes were tried, and none would ever take it as it is."""
        return bool(self.version) and not self.full and not self.shut

    @property
    def place(self) -> tuple[int, JobId]:
        """Sorts as jobs get routes."""
        priority = self.ad.get("JobPrio", 0)
        return -priority if isinstance(priority, int) else 0, self.job


class Said(msgspec.Struct):
    """One thing that is decided of several jobs of a cluster."""

    jobs: list[WaitingJob]
    decision: Decision
    attributes: Ad
    reason: str
    hold: bool
    turn: int

    def event(self) -> RouteDecided:
        """As it is recorded."""
        return RouteDecided(
            jobs=[RoutedProc(each.job.proc, each.number + 1) for each in self.jobs],
            version=self.decision.version,
            owner=str(self.jobs[0].ad.get("Owner", "")),
            route=self.decision.route,
            turn=self.turn,
            attributes=self.attributes,
            removed=list(self.decision.removed),
            refusals=list(self.decision.refusals),
            trace=list(self.decision.trace),
        )

    def routing(self) -> Routing:
        """As the schedd is told."""
        return Routing(
            jobs=[Numbered(each.job, each.number + 1) for each in self.jobs],
            route=self.decision.route,
            version=self.decision.version,
            attributes=self.attributes,
            removed=list(self.decision.removed),
            reason=self.reason,
            hold=self.hold,
        )


def count_of_vo(told: QueueVoCount) -> VoCount:
    """What limits of a VO are compared with."""
    return VoCount(idle=told.idle, running=told.running, max_idle=told.max_idle, max_running=told.max_running)


def counters_of(
    table: RouteTable,
    counts: Sequence[QueueCount],
    closed: Mapping[str, str],
    turn: int,
    *,
    vos: Sequence[QueueVoCount] = (),
    draining: str = "",
) -> Counters:
    """How many jobs each route and VO has, by what its schedd says, and which take none now."""
    known = {each.route: each for each in counts}
    routes = {
        name: RouteCount(
            jobs=one.jobs, idle=one.idle, running=one.running, held=one.held, closed=closed.get(name, "")
        )
        for name in {*known, *(each.name for each in table.routes)}
        for one in (known.get(name, QueueCount(route=name, jobs=0, idle=0)),)
    }
    of_vos = {each.vo: count_of_vo(each) for each in vos}
    return Counters(routes=routes, vos=of_vos, draining=draining, turn=turn)


def to_decide(waiting: Iterable[WaitingJob], table: RouteTable, counters: Counters) -> list[WaitingJob]:
    """Those about which something may be decided that was not decided before, in their order."""
    room = {each.name for each in table.routes if _has_room(each, counters)}
    return sorted(
        (
            each
            for each in waiting
            if each.version != table.version
            or each.full & room
            or (each.shut and counters.refusal(vo_of(each.ad)) is None)
        ),
        key=lambda each: each.place,
    )


def _has_room(each: Route, counters: Counters) -> bool:
    count = counters.of(each.name)
    return not count.closed and count.jobs < each.max_jobs and count.idle < each.max_idle_jobs


def decide(
    jobs: Iterable[WaitingJob],
    table: RouteTable,
    counters: Counters,
    now: float,
    *,
    hold_after: float,
) -> tuple[list[Said], Counters]:
    """
    Decide about jobs, one after the other; what is the same of several of a cluster is said once. Also how many jobs each route
    has then.

    `hold_after`: seconds after which a job is held that no route takes, 0: never.
    """
    said: dict[bytes, Said] = {}
    for each in jobs:
        decision = route(each.ad, table, counters, int(now))
        each.version = table.version
        each.full = frozenset(one.route for one in decision.refusals if one.route and one.why.passes)
        each.shut = any(not one.route and one.why.passes for one in decision.refusals)
        found: Said
        if decision.route:
            counters = counters.with_routed(decision.route, vo_of(each.ad))
            found = Said(
                [each], decision, _attributes(table, decision, each.ad), "", hold=False, turn=counters.turn
            )
        else:
            hold = bool(hold_after) and not decision.may_pass and now - each.since >= hold_after
            reason = _reason(table, decision)
            if reason == each.reason and not hold:
                continue
            found = Said([each], decision, {}, reason, hold=hold, turn=counters.turn)
        key = _key(each.job.cluster, found)
        if key in said:
            said[key].jobs.append(each)
            said[key].turn = counters.turn
        else:
            said[key] = found
    return list(said.values()), counters


def next_hold(waiting: Iterable[WaitingJob], hold_after: float) -> float | None:
    """When the next job is held that no route takes, seconds since the epoch; None: none will be."""
    if not hold_after:
        return None
    return min((each.since + hold_after for each in waiting if each.is_unfit), default=None)


def overdue(waiting: Iterable[WaitingJob], hold_after: float, now: float) -> list[WaitingJob]:
    """Those that are to be held now."""
    if not hold_after:
        return []
    late = [each for each in waiting if each.is_unfit and now - each.since >= hold_after]
    return sorted(late, key=lambda each: each.place)


def _key(cluster: int, said: Said) -> bytes:
    decision = said.decision
    return _encode(
        (
            cluster,
            decision.route,
            said.attributes,
            decision.removed,
            said.reason,
            said.hold,
            decision.trace,
            decision.refusals,
        )
    )


def _attributes(table: RouteTable, decision: Decision, ad: Ad) -> Ad:
    """What the ad of a routed job says, with what its schedd has to know of the route."""
    taken = table.named(decision.route)
    more: Ad = {}
    if taken is not None and not taken.is_of_this_pool:
        more["OnLocalRemove"] = taken.on_local_remove.value
        if taken.retries:
            more["OnLocalRemoveRetries"] = taken.retries
        if _has_own_submit_args(decision, ad):
            more[OWN_SUBMIT_ARGS] = True
    if taken is not None and taken.job_failure_test:
        more["JobFailureTest"] = Expr(taken.job_failure_test)
    return {**decision.set, **more}


def _has_own_submit_args(decision: Decision, ad: Ad) -> bool:
    """Whether a job has words for the command that submits it which its route has left as they are."""
    if not any(name.lower() == _SUBMIT_ARGS for name in ad):
        return False
    return not any(name.lower() == _SUBMIT_ARGS for name in (*decision.set, *decision.removed))


def _reason(table: RouteTable, decision: Decision) -> str:
    """Why a job has no route, in words that stay the same while it is so."""
    words = [
        f"{each.route}: {_because(table, each)}" if each.route else each.sentence
        for each in decision.refusals
    ]
    text = f"no route takes it: {'; '.join(words)}" if words else "no route takes it"
    return text if len(text) <= _MOST_REASON else f"{text[:_MOST_REASON]} ..."


def _because(table: RouteTable, refusal: RouteRefusal) -> str:
    taken = table.named(refusal.route)
    if taken is None:
        return refusal.sentence
    match refusal.why:
        case RefusalKind.MAX_JOBS:
            return f"it has as many jobs as it may (MaxJobs = {taken.max_jobs})"
        case RefusalKind.MAX_IDLE_JOBS:
            return f"it has as many idle jobs as it may (MaxIdleJobs = {taken.max_idle_jobs})"
        case _:
            return refusal.sentence
