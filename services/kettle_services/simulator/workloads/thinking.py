"""People who look at what came of their jobs, and think, before they submit more."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kettle_services.simulator.workloads.dependencies import Dependencies, none_of
from kettle_services.simulator.workloads.workload import Workload

_MOST: Final = 2_000_000
"""Pairs of jobs of which one waits for the other."""


def one_after_another(work: Workload, times: int, thinks: NDArray[np.int64]) -> Workload:
    """
    A workload that consists of so many equal parts, each submitted when the one before has ended and its author has thought.

    `thinks`: for how long before each part, in microseconds; before the first it is when that comes.

    Raises ValueError: the parts are too large.
    """
    jobs = len(work) // times
    waits = work.waits or none_of(len(work))
    first = waits.counts[:jobs]
    roots = np.flatnonzero(first == 0)
    leaves = np.setdiff1d(np.arange(jobs, dtype=np.int64), waits.parents[: int(waits.starts[jobs])])
    if len(roots) * len(leaves) * (times - 1) > _MOST:
        raise ValueError(
            f"{times} parts with {len(roots)} jobs that begin and {len(leaves)} that end are too many to think about in between"
        )
    own = waits.parents[: int(waits.starts[jobs])]
    later = np.where(first == 0, len(leaves), first)
    one = [
        leaves - jobs if not first[job] else own[waits.starts[job] : waits.starts[job + 1]]
        for job in range(jobs)
    ]
    each = np.concatenate(one) if jobs else own
    parents = [own, *(each + number * jobs for number in range(1, times))]
    counts = np.concatenate([first, *[later] * (times - 1)])
    submitted = np.zeros(len(work), dtype=np.int64)
    submitted[:jobs] = int(thinks[0])
    lags = np.repeat(thinks, jobs)
    lags[:jobs] = 0
    lags[waits.counts > 0] = 0
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns = {name: getattr(work, name) for name in Workload.COLUMNS} | {"submitted": submitted}
    together = Dependencies(starts, np.concatenate(parents), lags)
    return Workload(users=work.users, kinds=work.kinds, grid=work.grid, waits=together, **columns)
