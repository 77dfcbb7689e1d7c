"""
When transfers end according to SimGrid, for Debian's Python, which has its module: cases come as JSON on standard input.

A case: {"links": [[bandwidth, latency], ...], "transfers": [[begins, [link, ...], bytes], ...]}; each is a network of its own, and all are
played in one run.
"""

import json
import sys
from importlib import import_module
from typing import Any

simgrid: Any = import_module("simgrid")


def main() -> None:
    """Answer with the times, in seconds, for each case and transfer."""
    cases = json.load(sys.stdin)
    engine = simgrid.Engine(["reference", *sys.argv[1:]])
    root = simgrid.NetZone.create_full_zone("root")
    ends = [[0.0] * len(case["transfers"]) for case in cases]
    actors: list[tuple[str, Any, float, int, list[float], int]] = []
    for number, case in enumerate(cases):
        links = [
            root.create_link(f"{number}-{place}", [bandwidth]).set_latency(latency).seal()
            for place, (bandwidth, latency) in enumerate(case["links"])
        ]
        for place, (begins, way, size) in enumerate(case["transfers"]):
            name = f"{number}-{place}"
            hosts = [root.create_host(f"{end}-{name}", 1e9).seal() for end in ("from", "to")]
            route = [simgrid.LinkInRoute(links[link]) for link in way]
            root.add_route(hosts[0].netpoint, hosts[1].netpoint, None, None, route, True)
            actors.append((name, hosts, begins, size, ends[number], place))
    root.seal()
    for name, hosts, begins, size, times, place in actors:
        simgrid.Actor.create(f"send-{name}", hosts[0], _send, name, begins, int(size))
        simgrid.Actor.create(f"receive-{name}", hosts[1], _receive, name, times, place)
    engine.run()
    json.dump(ends, sys.stdout)


def _send(name: str, begins: float, size: int) -> None:
    simgrid.this_actor.sleep_until(begins)
    simgrid.Mailbox.by_name(name).put("sent", size)


def _receive(name: str, times: list[float], place: int) -> None:
    simgrid.Mailbox.by_name(name).get()
    times[place] = simgrid.Engine.clock


main()
