"""In which order routes that would take a job are tried."""

from collections.abc import Iterable

from kettle.classad import ClassAd, ClassAdError, Context, evaluate
from kettle.routes.counters import Counters
from kettle.routes.table import Route, RouteTable, Selection


def ordered(
    routes: Iterable[Route], table: RouteTable, counters: Counters, my: ClassAd, context: Context
) -> Iterable[Route]:
    """The routes, the one that is chosen first; of several that are alike the first one in the file."""
    match table.selection:
        case Selection.FIRST:
            return routes
        case Selection.ROUND_ROBIN:
            found = list(routes)
            first = counters.turn % len(found) if found else 0
            return found[first:] + found[:first]
        case Selection.WEIGHT:
            return sorted(routes, key=lambda each: (counters.of(each.name).taken + 1) / each.weight)
        case Selection.LEAST_LOAD:
            return sorted(routes, key=lambda each: _load(each, counters))
        case Selection.RANK:
            return sorted(routes, key=lambda each: -_rank(each, counters, my, context))


def _load(each: Route, counters: Counters) -> tuple[float, float]:
    count = counters.of(each.name)
    return count.idle / each.max_idle_jobs, count.jobs / each.max_jobs


def _rank(each: Route, counters: Counters, my: ClassAd, context: Context) -> float:
    """What is no number is zero, as the Rank of a job is."""
    if each.rank is None:
        return 0.0
    count = counters.of(each.name)
    target = ClassAd(
        {
            "Name": each.name,
            "Jobs": count.jobs,
            "IdleJobs": count.idle,
            "RunningJobs": count.running,
            "HeldJobs": count.held,
            "MaxJobs": each.max_jobs,
            "MaxIdleJobs": each.max_idle_jobs,
            "Weight": each.weight,
        }
    )
    try:
        value = evaluate(each.rank, my=my, target=target, context=context)
    except ClassAdError:
        return 0.0
    return float(value) if isinstance(value, bool | int | float) else 0.0
