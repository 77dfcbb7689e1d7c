"""The result of a simulation, in columns, and the figures that follow from it."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kettle_services.simulator.platforms.hosts import STAYS
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.workloads.workload import Column, Workload
from kettle_wire.simulations import Figures

_US: Final = 1e6
_NEVER: Final = -1
_SHORT_US: Final = 10_000_000
"""Shorter jobs count as this long in a bounded slowdown (Feitelson and others, 1997)."""

Cells = NDArray[np.float64]


class Result:
    """
    What became of each job of a workload; all columns have its order, and times are in microseconds, -1: never.
    """

    def __init__(
        self,
        workload: Workload,
        platform: Platform,
        starts: Sequence[int],
        ends: Sequence[int],
        reported: Sequence[int],
        submitted: Sequence[int] | None = None,
        hosts: Sequence[int] | None = None,
        lost: Sequence[tuple[int, int, int]] = (),
        stopped: int | None = None,
    ) -> None:
        """
        `submitted`: when they were submitted, where some had to wait for others.
        `hosts`: the place of the host of each job in the platform, if each had one and that is known.
        `lost`: runs that ended with their hosts, as job, start and end; the other columns are about the last run of each job.
        `stopped`: when it ended before all jobs had, because that was asked for.
        """
        self.workload = workload
        self.platform = platform
        self.stopped = stopped
        self.submitted: Column = (
            workload.submitted if submitted is None else np.array(submitted, dtype=np.int64)
        )
        self.starts, self.ends, self.reported = (
            np.array(column, dtype=np.int64) for column in (starts, ends, reported)
        )

        self.lost: Column = np.array(lost, dtype=np.int64).reshape(-1, 3)
        self.hosts: Column | None = None if hosts is None else np.array(hosts, dtype=np.int64)

    @property
    def begin(self) -> int:
        """The first submission, in microseconds."""
        return int(self.workload.submitted.min()) if len(self.workload) else 0

    @property
    def end(self) -> int:
        """When the last end was reported, or the simulation was stopped, in microseconds."""
        if self.stopped is not None:
            return max(self.stopped, self.begin)
        return int(max(self.reported.max(initial=self.begin), self.lost[:, 2].max(initial=self.begin)))

    @property
    def jobs(self) -> Mapping[str, Column | Cells | list[str]]:
        """A table with a row for each job; times in seconds, NaN: never."""
        work = self.workload
        return {
            "job": np.arange(len(work), dtype=np.int64),
            "user": [work.users[user] for user in work.user.tolist()],
            "cores": work.cores,
            "nodes": work.nodes,
            "memory": work.memory,
            "submitted": _seconds(self.submitted),
            "started": _seconds(self.starts),
            "ended": _seconds(self.ends),
            "reported": _seconds(self.reported),
        }

    def figures(self, *users: str) -> Figures:
        """Of all jobs, or of those of some users together; an empty name is nobody's."""
        work = self.workload
        chosen = np.ones(len(work), dtype=bool)
        named = [work.users.index(user) for user in users if user]
        if named:
            chosen = np.isin(work.user, named)
        begun = chosen & (self.starts != _NEVER)
        over = chosen & (self.ends != _NEVER)
        wait = (self.starts - self.submitted)[begun] / _US
        took = (self.ends - self.starts)[over]
        turnaround = (self.ends - self.submitted)[over]
        slowdown = np.maximum(turnaround / np.maximum(took, _SHORT_US), 1.0)
        ran = (self._until() - self.starts)[begun].clip(0)
        used = float((ran * work.cores[begun] * work.nodes[begun]).sum()) / _US
        lost = self._lost_core_seconds(chosen)
        span = self._span()
        return Figures(
            jobs=int(chosen.sum()),
            ended=int(over.sum()),
            makespan=span,
            wait_mean=float(wait.mean()) if len(wait) else None,
            wait_median=float(np.median(wait)) if len(wait) else None,
            wait_p95=float(np.percentile(wait, 95)) if len(wait) else None,
            slowdown_mean=float(slowdown.mean()) if len(slowdown) else None,
            core_hours=used / 3600.0,
            lost_core_hours=lost / 3600.0,
            utilisation=self._part_of_all(used + lost, span),
            cost=None if named else self._cost(),
        )

    def in_use(self, bins: int = 200, user: str = "") -> tuple[Cells, Cells]:
        """
        The edges of so many equal spans, in seconds since the first submission, and how many cores were busy in each on average.

        Only those with jobs of a user, if one is named.
        """
        chosen = self.starts != _NEVER
        if user:
            chosen &= self.workload.user == self.workload.users.index(user)
        edges = np.linspace(self.begin, max(self.end, self.begin + 1), bins + 1)
        weight = (self.workload.cores * self.workload.nodes)[chosen]
        busy = busy_between(edges, self.starts[chosen], self._until()[chosen], weight)
        if len(self.lost):
            busy += self._lost_between(edges, user)
        return (edges - self.begin) / _US, busy

    def _until(self) -> Column:
        """Until when each job ran: to its end, or as long as the simulation went on."""
        return np.where(self.ends == _NEVER, np.maximum(self.end, self.starts), self.ends)

    def _part_of_all(self, core_seconds: float, span: float) -> float:
        there = self.platform.core_seconds(self.begin, self.begin + round(span * _US))
        return core_seconds / there if there else 0.0

    def _cost(self) -> float | None:
        begin, end = self.begin, self.end
        times = [
            (host.price, (end if host.leaves == STAYS else min(host.leaves, end)) - max(host.joins, begin))
            for host in self.platform.hosts
            if host.price
        ]
        return sum(price * max(0, time) for price, time in times) / _US / 3600.0 if times else None

    def _lost_between(self, edges: Cells, user: str) -> Cells:
        work = self.workload
        lost = self.lost[work.user[self.lost[:, 0]] == work.users.index(user)] if user else self.lost
        weight = (work.cores * work.nodes)[lost[:, 0]]
        return busy_between(edges, lost[:, 1], lost[:, 2], weight)

    def _lost_core_seconds(self, chosen: NDArray[np.bool_]) -> float:
        jobs, starts, ends = self.lost.T
        cores = (self.workload.cores * self.workload.nodes)[jobs]
        return float(((ends - starts) * cores)[chosen[jobs]].sum()) / _US

    def _span(self) -> float:
        if not len(self.workload):
            return 0.0
        last = int(self.reported.max()) if self.stopped is None else self.end
        return float(last - self.begin) / _US if last > 0 else 0.0


def _seconds(column: Column) -> Cells:
    return np.where(column == _NEVER, np.nan, column / _US)


def busy_between(edges: Cells, starts: Column, ends: Column, weight: Column) -> Cells:
    """For each span between two edges the average weight of what was there."""
    done = _done_by(edges, starts, weight) - _done_by(edges, ends, weight)
    return np.asarray(np.diff(done) / np.diff(edges), dtype=np.float64)


def _done_by(edges: Cells, begins: Column, weight: Column) -> Cells:
    """For each moment: the time since each begin before it, times its weight, added up."""
    order = np.argsort(begins, kind="stable")
    times, weights = begins[order].astype(np.float64), weight[order].astype(np.float64)
    count = np.searchsorted(times, edges, side="right")
    summed = np.concatenate([[0.0], np.cumsum(weights)])
    moments = np.concatenate([[0.0], np.cumsum(weights * times)])
    return np.asarray(summed[count] * edges - moments[count], dtype=np.float64)
