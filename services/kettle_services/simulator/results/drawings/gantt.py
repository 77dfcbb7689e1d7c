"""Who ran where and when: a bar for each job, or, of very many jobs, how full each row was."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final

import numpy as np

from kettle_services.simulator.results.drawings.axes import BOTTOM, TOP, Axes, colour
from kettle_services.simulator.results.result import Result, busy_between
from kettle_services.simulator.workloads.workload import Column

MOST_BARS: Final = 100_000
"""Above that, rows are shown by how full they are."""
MOST_ROWS: Final = 250
_SPANS: Final = 600
_SHADES: Final = 10
_US: Final = 1e6
_DARK: Final = (0x1D, 0x5C, 0xA6)


def gantt(result: Result) -> str:
    """By host, if each job had one that is known, else by user."""
    if result.hosts is None:
        return _filled(result, result.workload.user, result.workload.users, "users")
    hosts = result.platform.hosts
    ended = int(np.count_nonzero(result.ends >= 0))
    if max(ended, int(result.workload.cores.sum())) > MOST_BARS or len(hosts) > MOST_ROWS:
        return _filled(result, result.hosts, [host.name for host in hosts], "hosts")
    axes = _axes(result, "Jobs by host", len(hosts))
    axes.names([host.name for host in hosts])
    places: list[int] = result.hosts.tolist()
    axes.bars(_bars(result, places, axes))
    axes.legend(result.workload.users)
    return axes.svg()


def _axes(result: Result, title: str, rows: int) -> Axes:
    across = (result.end - result.begin) / _US
    axes = Axes(title, across=across, up=1.0, height=TOP + BOTTOM + min(max(rows * 12, 120), 900))
    axes.time_axis()
    return axes


def _bars(result: Result, places: Sequence[int], axes: Axes) -> Iterator[tuple[str, str]]:
    """For each colour one path with the bars of all its users; a job of several cores has as many thin bars."""
    hosts = result.platform.hosts
    row = (axes.height - BOTTOM - TOP) / len(hosts)
    starts, ends = result.starts.tolist(), result.ends.tolist()
    left, right = (axes.x((column - result.begin) / _US).tolist() for column in (result.starts, result.ends))
    cores, users = result.workload.cores.tolist(), result.workload.user.tolist()
    lanes = [list(range(host.cores)) for host in hosts]
    running: list[list[tuple[int, int]]] = [[] for _ in hosts]
    ways: dict[str, list[str]] = {}
    # Of those that begin at one moment, such as take no time come first.
    order: list[int] = np.lexsort((result.ends, result.starts)).tolist()
    for job in order:
        if ends[job] < 0:
            continue
        host = places[job]
        while running[host] and running[host][0][0] <= starts[job]:
            heappush(lanes[host], heappop(running[host])[1])
        thin = row * 0.9 / hosts[host].cores
        way = ways.setdefault(colour(users[job]), [])
        for _ in range(cores[job]):
            lane = heappop(lanes[host])
            heappush(running[host], (ends[job], lane))
            y, width = TOP + host * row + lane * thin, max(right[job] - left[job], 0.2)
            way.append(f"M{left[job]:.1f},{y:.1f}h{width:.1f}v{max(thin * 0.9, 0.2):.2f}h-{width:.1f}z")
    return ((" ".join(way), fill) for fill, way in ways.items())


def _filled(result: Result, places: Column, names: Sequence[str], what: str) -> str:
    """For each row, of which one may stand for several places, how many of its cores were busy over time."""
    each = -(-len(names) // MOST_ROWS)
    rows = -(-len(names) // each)
    axes = _axes(result, f"Cores in use by {what}, from none (white) to most (dark)", rows)
    axes.names([names[row * each] for row in range(rows)])
    height = (axes.height - BOTTOM - TOP) / rows
    ended = result.ends >= 0
    edges = np.linspace(result.begin, max(result.end, result.begin + 1), _SPANS + 1)
    weight = result.workload.cores * result.workload.nodes
    of_row = places // each
    busy = np.zeros((rows, _SPANS))
    order = np.argsort(of_row, kind="stable")
    bounds = np.searchsorted(of_row[order], np.arange(rows + 1))
    for row in range(rows):
        jobs = order[bounds[row] : bounds[row + 1]]
        jobs = jobs[ended[jobs]]
        busy[row] = busy_between(edges, result.starts[jobs], result.ends[jobs], weight[jobs])
    shades = np.ceil(busy / (busy.max(initial=0.0) or 1.0) * _SHADES - 1e-9).astype(np.int64)
    left = axes.x((edges - result.begin) / _US)
    ways: list[list[str]] = [[] for _ in range(_SHADES + 1)]
    for row in range(rows):
        changes = [0, *(np.flatnonzero(np.diff(shades[row])) + 1).tolist(), _SPANS]
        for first, end in pairwise(changes):
            x, width = float(left[first]), float(left[end] - left[first])
            ways[int(shades[row, first])].append(
                f"M{x:.1f},{TOP + row * height:.1f}h{width:.1f}v{height * 0.95:.2f}h-{width:.1f}z"
            )
    axes.bars((" ".join(way), _shade(number)) for number, way in enumerate(ways) if way and number)
    return axes.svg()


def _shade(number: int) -> str:
    """From nearly white to the first colour."""
    part = number / _SHADES
    return "#" + "".join(f"{round(255 - (255 - value) * part):02x}" for value in _DARK)
