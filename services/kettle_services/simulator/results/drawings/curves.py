"""Cores in use over time, shares of users over time, and how many jobs waited no longer than how long."""

from typing import Final

import numpy as np

from kettle_services.simulator.results.drawings.axes import COLOURS, Axes
from kettle_services.simulator.results.result import Result

_SPANS: Final = 300
_POINTS: Final = 200
_US: Final = 1e6
OTHERS: Final = "others"


def cores_in_use(result: Result) -> str:
    """Over the time since the first submission, beside how many there are."""
    edges, cores = result.in_use(_SPANS)
    top = max(float(cores.max(initial=0.0)), float(result.platform.cores))
    axes = Axes("Cores in use", across=float(edges[-1]), up=top * 1.05, up_title="cores")
    axes.time_axis()
    axes.number_axis()
    axes.steps(edges, cores)
    axes.level(result.platform.cores, "all cores")
    return axes.svg()


def shares(result: Result) -> str:
    """Which part of the cores in use each user had; of many users those with most, and all others together."""
    users = _largest(result)
    edges, total = result.in_use(_SPANS)
    safe = np.where(total > 1e-12, total, 1.0)
    axes = Axes(
        "Shares of users", across=float(edges[-1]), up=100.0, unit=" %", up_title="of the cores in use"
    )
    axes.time_axis()
    axes.number_axis()
    parts = [result.in_use(_SPANS, user)[1] / safe * 100.0 for user in users]
    if len(users) < len(result.workload.users):
        rest = np.where(total > 1e-12, 100.0, 0.0) - sum(parts, np.zeros(_SPANS))
        users, parts = [*users, OTHERS], [*parts, np.maximum(rest, 0.0)]
    # From the top of the pile: what is drawn later covers what lies below it.
    for number in range(len(users) - 1, -1, -1):
        axes.steps(edges, sum(parts[: number + 1], np.zeros(_SPANS)), number)
    axes.legend(users)
    return axes.svg()


def waits(result: Result) -> str:
    """The part of the jobs that waited no longer than so long, up to what 99 of 100 waited."""
    begun = result.starts >= 0
    wait = (result.starts - result.submitted) / _US
    most = float(np.percentile(wait[begun], 99)) if begun.any() else 0.0
    users = _largest(result)
    axes = Axes("Waits", across=most, up=100.0, unit=" %", up_title="of the jobs began within")
    axes.time_axis()
    axes.number_axis()
    for number, user in enumerate(users):
        mine = np.sort(wait[begun & (result.workload.user == result.workload.users.index(user))])
        if len(mine):
            at = np.linspace(0.0, axes.across, _POINTS)
            axes.curve(at, np.searchsorted(mine, at, side="right") / len(mine) * 100.0, number)
    axes.legend(users)
    return axes.svg()


def _largest(result: Result) -> list[str]:
    """All users, if each can have a colour of its own; else those who used most of the cores' time."""
    work = result.workload
    if len(work.users) <= len(COLOURS):
        return list(work.users)
    took = np.where(result.ends >= 0, (result.ends - result.starts) * work.cores * work.nodes, 0)
    used = np.bincount(work.user, weights=took, minlength=len(work.users))
    return [work.users[user] for user in np.argsort(-used, kind="stable")[: len(COLOURS) - 1]]
