"""
Decisions about routes: how many a second in one process, with 20 routes.

`plain`: each route sets three attributes between five small transforms.  `ce`: the same routes after `use ROUTES : CE`.  `explain`: a
job that no route takes, with the first clause of each that is not true.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from kettle.routes import Counters, RouteTable, read_routes, route
from kettle.testing.measurements import summary
from kettle_wire.ads.types import Ad, Expr

ROUTES: Final = 20
_TRANSFORMS: Final = """\
JOB_ROUTER_PRE_ROUTE_TRANSFORM_NAMES = Base Keep
JOB_ROUTER_TRANSFORM_Base = SET RoutedJob true
JOB_ROUTER_TRANSFORM_Keep = COPY Environment orig_Environment
JOB_ROUTER_POST_ROUTE_TRANSFORM_NAMES = Cpus Memory Queue
JOB_ROUTER_TRANSFORM_Cpus = EVALSET RequestCpus xcount ?: RequestCpus
JOB_ROUTER_TRANSFORM_Memory = EVALSET RequestMemory maxMemory ?: $(default_maxMemory:2000)
JOB_ROUTER_TRANSFORM_Queue @=end
    if defined MY.queue
        COPY queue BatchQueue
    else
        SET BatchQueue "$(default_queue:)"
    endif
@end
"""
_ROUTE: Final = """\
JOB_ROUTER_ROUTE_R{number} @=end
    REQUIREMENTS Vo == "vo{number}" && RequestCpus < 100
    GridResource = "batch slurm"
    MaxJobs = 1000000
    MaxIdleJobs = 1000000
    default_maxMemory = 4000
    default_queue = q{number}
    SET Site "s{number}"
@end
"""


def table(transforms: str) -> RouteTable:
    """20 routes, each for one VO."""
    names = " ".join(f"R{number}" for number in range(ROUTES))
    bodies = "".join(_ROUTE.format(number=number) for number in range(ROUTES))
    return read_routes(f"{transforms}\nJOB_ROUTER_ROUTE_NAMES = {names}\n{bodies}", "routes")


def pilots(count: int, vos: int = ROUTES) -> list[Ad]:
    """Ads of 76 attributes; those of all VOs are there equally often."""
    shared: Ad = {
        **{f"Attribute{number}": number for number in range(68)},
        "JobUniverse": 5,
        "Requirements": Expr("TARGET.Cpus > 1"),
        "RequestCpus": 1,
        "RequestMemory": 2048,
        "Environment": "A=1 B=2",
    }
    return [
        {**shared, "Vo": f"vo{number % vos}", "ClusterId": number, "GlobalJobId": f"bench#{number}.0#1"}
        for number in range(count)
    ]


def rate(routes: RouteTable, ads: Sequence[Ad]) -> float:
    """Decisions per second of processor time."""
    counters = Counters()
    began = time.process_time()
    for ad in ads:
        route(ad, routes, counters, 1_700_000_000)
    return len(ads) / (time.process_time() - began)


def measured(rounds: int, jobs: int) -> dict[str, Any]:
    """The kinds one after the other in each round, so that they meet the same machine."""
    plain, ce = table(_TRANSFORMS), table("use ROUTES : CE")
    kinds = {
        "plain": (plain, pilots(jobs)),
        "ce": (ce, pilots(jobs)),
        "explain": (plain, [ad | {"Vo": "none"} for ad in pilots(jobs)]),
    }
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, (routes, ads) in kinds.items():
            found[name].append(rate(routes, ads))
    return {f"{name}_per_s": summary(values) for name, values in found.items()}


def main(words: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=4000)
    arguments = parser.parse_args(words)
    sys.stdout.write(f"{json.dumps(measured(arguments.rounds, arguments.jobs), indent=2)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
