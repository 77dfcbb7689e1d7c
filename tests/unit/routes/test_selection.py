"""Which of several routes that would take a job gets it."""

from collections import Counter

import pytest

from kettle.routes import Counters, RouteCount, RouteTable, read_routes, route
from kettle_wire.ads.types import Ad

JOB: Ad = {"JobUniverse": 5, "Site": "north"}


def table(mode: str, **settings: str) -> RouteTable:
    bodies = "".join(
        f"JOB_ROUTER_ROUTE_{name} @=end\nUNIVERSE VANILLA\nMaxJobs = 1000\n{settings.get(name, '')}\n@end\n"
        for name in "ABC"
    )
    return read_routes(f"JOB_ROUTER_ROUTE_NAMES = A B C\n{mode}\n{bodies}", "routes")


def shared(routes: RouteTable, jobs: int, counters: Counters | None = None) -> Counter[str]:
    """How many of some jobs each route gets, one after the other."""
    counters = counters or Counters()
    found: Counter[str] = Counter()
    for _ in range(jobs):
        chosen = route(JOB, routes, counters, 0).route
        found[chosen] += 1
        counters = counters.with_routed(chosen)
    return found


def test_the_first_one_until_it_is_full() -> None:
    """Nothing else is said: as in HTCondor, in the order of the list, up to MaxIdleJobs."""
    assert {"A": 50, "B": 10} == shared(table(""), 60)


@pytest.mark.parametrize(
    "mode", ["JOB_ROUTER_ROUND_ROBIN_SELECTION = True", "JOB_ROUTER_SELECTION = round_robin"]
)
def test_in_turn(mode: str) -> None:
    """The turn goes on from where it was: it is a number that somebody keeps."""
    assert {"A": 3, "B": 3, "C": 3} == shared(table(mode), 9)
    assert "C" == route(JOB, table(mode), Counters(turn=5), 0).route


def test_by_weight() -> None:
    """Of ten jobs each gets its part, whatever became of those before."""
    routes = table("JOB_ROUTER_SELECTION = weight", A="Weight = 5", B="Weight = 3", C="Weight = 2")
    assert {"A": 10, "B": 6, "C": 4} == shared(routes, 20)


def test_the_least_loaded() -> None:
    """Idle jobs are compared with what a route may have."""
    routes = table("JOB_ROUTER_SELECTION = least_load", A="MaxIdleJobs = 10", B="MaxIdleJobs = 100")
    counts = {"A": RouteCount(idle=2), "B": RouteCount(idle=10), "C": RouteCount(idle=40)}
    assert "B" == route(JOB, routes, Counters(routes=counts), 0).route


def test_by_rank() -> None:
    """It sees the job, and the route as TARGET; what is no number is zero."""
    routes = table(
        "JOB_ROUTER_SELECTION = rank", B='Rank = Site == "north" ? 10 - TARGET.Jobs : 0', C="Rank = Nothing"
    )
    assert "B" == route(JOB, routes, Counters(routes={"B": RouteCount(jobs=9)}), 0).route
    assert "A" == route(JOB, routes, Counters(routes={"B": RouteCount(jobs=10)}), 0).route
