"""Where a job goes: a pure function of its ad, the routes, and how many jobs are on these."""

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from kettle.classad import (
    FOREIGN_STEPS,
    ClassAd,
    ClassAdError,
    Context,
    evaluate,
    is_true,
)
from kettle.jobs.credential_attributes import VO
from kettle.jobs.routed_attributes import refusal
from kettle.routes.clauses import failing
from kettle.routes.counters import Counters
from kettle.routes.selection import ordered
from kettle.routes.settings import SETTINGS
from kettle.routes.table import Route, RouteTable
from kettle.routes.targets import absent
from kettle.transforms.run import Run
from kettle_wire.ads.types import Ad
from kettle_wire.codes import Universe
from kettle_wire.grid import batch_system
from kettle_wire.routes import RefusalKind, RouteRefusal, RouteStep

_SETTINGS: Final = frozenset(f"$({name})" for name in SETTINGS)
"""What a route says of itself changes no job."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Where one job goes, and why."""

    version: str
    """Of the routes."""
    route: str = ""
    """Empty: no route takes it."""
    set: Ad = {}
    """Attributes that the routed job has and its own ad has not, or not so."""
    removed: tuple[str, ...] = ()
    """Attributes of its ad that the routed job has not."""
    in_place: bool = False
    """The job is changed and goes nowhere (EditJobInPlace)."""
    trace: tuple[RouteStep, ...] = ()
    refusals: tuple[RouteRefusal, ...] = ()
    """Of the routes that were asked and did not take it."""

    @property
    def may_pass(self) -> bool:
        """Whether a job that no route takes may be taken later as it is: a route is only full, or closed."""
        return any(each.why.passes for each in self.refusals)


def route(
    ad: Ad, table: RouteTable, counters: Counters, now: int, entropy: random.Random | None = None
) -> Decision:
    """
    Decide where a job goes.

    `now` is seconds since 1970.  `entropy` is for the random macros of statements; None: the same job and the same routes draw the same.
    """
    if shut := counters.refusal(vo_of(ad)):
        return Decision(version=table.version, refusals=(shut,))
    my = ClassAd.from_wire(ad)
    context = Context(now=lambda: now, max_steps=FOREIGN_STEPS)
    if table.clauses and (why := failing(table.clauses, my, context)):
        said = RouteRefusal("", RefusalKind.CONSTRAINT, f"JOB_ROUTER_SOURCE_JOB_CONSTRAINT: {why}")
        return Decision(version=table.version, refusals=(said,))
    refusals: list[RouteRefusal] = []
    for each in ordered(_taking(table, counters, my, context, refusals), table, counters, my, context):
        in_place = _in_place(each, my, context)
        run = _transformed(each, ad, my, table, now, entropy, in_place=in_place)
        if run.complaints:
            refusals.append(RouteRefusal(each.name, RefusalKind.FAILED, run.complaints[0]))
            continue
        if why := _leads_nowhere(run, table):
            refusals.append(RouteRefusal(each.name, RefusalKind.FAILED, why))
            continue
        changed, removed = _difference(ad, my, run)
        if why := next((refused for name in (*changed, *removed) if (refused := _refusal(name))), ""):
            refusals.append(RouteRefusal(each.name, RefusalKind.FAILED, why))
            continue
        return Decision(
            version=table.version,
            route=each.name,
            set=changed,
            removed=removed,
            in_place=in_place,
            trace=tuple(step for step in run.steps if step.name not in _SETTINGS),
            refusals=tuple(refusals),
        )
    return Decision(version=table.version, refusals=tuple(refusals))


def vo_of(ad: Ad) -> str:
    """For which VO a job was submitted, by the credential of its submitter; empty: for none."""
    value = ad.get(VO)
    return value if isinstance(value, str) else ""


def try_route(each: Route, ad: Ad, table: RouteTable, now: int) -> Run | None:
    """What one route would make of a job, whatever is on it; None: its requirements are not true of it."""
    my = ClassAd.from_wire(ad)
    context = Context(now=lambda: now, max_steps=FOREIGN_STEPS)
    if failing(each.clauses, my, context):
        return None
    return _transformed(each, ad, my, table, now, None, in_place=_in_place(each, my, context))


def _taking(
    table: RouteTable, counters: Counters, my: ClassAd, context: Context, refusals: list[RouteRefusal]
) -> Iterator[Route]:
    """The routes that take a job, as far as can be said before it is changed."""
    for each in table.routes:
        if why := failing(each.clauses, my, context):
            refusals.append(RouteRefusal(each.name, RefusalKind.REQUIREMENTS, why))
        elif refusal := _full(each, table, counters):
            refusals.append(refusal)
        else:
            yield each


def _full(each: Route, table: RouteTable, counters: Counters) -> RouteRefusal | None:
    count = counters.of(each.name)
    if count.closed:
        return RouteRefusal(each.name, RefusalKind.CLOSED, count.closed)
    if count.jobs >= each.max_jobs:
        sentence = f"the route has {count.jobs} jobs of at most {each.max_jobs} (MaxJobs)"
        return RouteRefusal(each.name, RefusalKind.MAX_JOBS, sentence)
    if count.idle >= each.max_idle_jobs:
        sentence = f"the route has {count.idle} idle jobs of at most {each.max_idle_jobs} (MaxIdleJobs)"
        return RouteRefusal(each.name, RefusalKind.MAX_IDLE_JOBS, sentence)
    if table.max_jobs is not None and counters.jobs >= table.max_jobs:
        sentence = (
            f"all routes together have {counters.jobs} jobs of at most {table.max_jobs} (JOB_ROUTER_MAX_JOBS)"
        )
        return RouteRefusal(each.name, RefusalKind.MAX_JOBS, sentence)
    return None


def _in_place(each: Route, my: ClassAd, context: Context) -> bool:
    if each.edit_job_in_place is None:
        return False
    try:
        return is_true(evaluate(each.edit_job_in_place, my=my, context=context))
    except ClassAdError:
        return False


def _transformed(
    each: Route,
    ad: Ad,
    my: ClassAd,
    table: RouteTable,
    now: int,
    entropy: random.Random | None,
    *,
    in_place: bool,
) -> Run:
    """The ad on its way along a route; what it complains of fails the route."""
    run = Run(
        ad,
        view=my.copy(),
        now=now,
        macros={},
        entropy=entropy or random.Random(f"{table.version} {ad.get('GlobalJobId', '')}"),  # noqa: S311 - no secret
        configured=table.macros,
    )
    if not in_place:
        run.enter(each.transform.source, each.line)
        run.put("JobUniverse", int(each.universe))
        if each.universe == Universe.GRID and each.grid_resource:
            run.put("GridResource", each.grid_resource)
    for transform in table.before:
        transform.change(run)
    run.carry_out(each.transform.statements, each.transform.source, each.transform.protected)
    for transform in table.after:
        transform.change(run)
    return run


def _leads_nowhere(run: Run, table: RouteTable) -> str:
    """
    Why a job cannot go where its routed ad says; empty: it can, or nobody knows which batch systems there are.
    """
    if table.systems is None or run.ad.get("JobUniverse") != Universe.GRID:
        return ""
    return absent(batch_system(run.ad.get(run.spelled("gridresource"))), table.systems)


@lru_cache(maxsize=4096)
def _refusal(name: str) -> str:
    """Patterns reach names that no statement has."""
    return refusal(name)


def _difference(ad: Ad, my: ClassAd, run: Run) -> tuple[Ad, tuple[str, ...]]:
    """What a run set, and what it removed: only attributes that it touched can be different."""
    changed: Ad = {}
    removed: list[str] = []
    for key in {step.name.lower(): None for step in run.steps if not step.name.startswith("$")}:
        name = my.spelling(key) if key in my.stored else ""
        before = ad.get(name)
        after = run.ad.get(run.spelled(key))
        if after is None:
            if name:
                removed.append(name)
        elif type(after) is not type(before) or after != before:
            changed[name or run.spelled(key)] = after
    return changed, tuple(removed)
