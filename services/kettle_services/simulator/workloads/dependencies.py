"""Which jobs of a workload wait for the ends of which others, in columns."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Indices = NDArray[np.int64]


class Dependencies:
    """
    For each job those that it waits for: the parents of job `n` are `parents[starts[n]:starts[n + 1]]`, each once, in ascending order.

    `lags`: how much later than the last of their ends each is submitted, in microseconds; None: at once.
    """

    def __init__(self, starts: ArrayLike, parents: ArrayLike, lags: Indices | None = None) -> None:
        """
        Raises ValueError: there is no such job, or jobs wait for each other in a circle; the message says which.
        """
        self.starts: Indices = np.asarray(starts, dtype=np.int64)
        self.parents: Indices = np.asarray(parents, dtype=np.int64)
        self.lags = lags
        if len(self.parents) and not 0 <= self.parents.min() <= self.parents.max() < len(self):
            raise ValueError(f"there are {len(self)} jobs, and some wait for others")
        ordered = self.ordered()
        if len(ordered) < len(self):
            first = min(set(range(len(self))) - set(ordered))
            raise ValueError(f"job {first}: it waits for a job that waits for it, or for jobs that do")

    @classmethod
    def of(cls, jobs: int, edges: Iterable[tuple[int, int]], lags: Indices | None = None) -> "Dependencies":
        """Of so many jobs, in which each second of a pair waits for the first.  Raises ValueError."""
        pairs = np.array(sorted({(child, parent) for parent, child in edges}), dtype=np.int64).reshape(-1, 2)
        if len(pairs) and not 0 <= pairs.min() <= pairs.max() < jobs:
            raise ValueError(f"there are {jobs} jobs, and some wait for others")
        return cls(_bounds(pairs[:, 0], jobs), pairs[:, 1], lags)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def counts(self) -> Indices:
        """For how many each job waits."""
        return np.diff(self.starts)

    def children(self) -> tuple[Indices, Indices]:
        """
        Bounds, and for each job those that wait for it, as `starts` and `parents` have it from the other side.
        """
        waiting = np.repeat(np.arange(len(self), dtype=np.int64), self.counts)
        order = np.argsort(self.parents, kind="stable")
        return _bounds(self.parents[order], len(self)), waiting[order]

    def ordered(self) -> list[int]:
        """Jobs after those that they wait for; what is in a circle, or behind one, is missing."""
        bounds, children = (column.tolist() for column in self.children())
        left = self.counts.tolist()
        order = [job for job, count in enumerate(left) if not count]
        for job in order:
            for child in children[bounds[job] : bounds[job + 1]]:
                left[child] -= 1
                if not left[child]:
                    order.append(child)
        return order

    def longest_way(self, lengths: Sequence[int]) -> int:
        """The critical path: the longest sum of lengths over jobs that wait for each other."""
        ends: list[int] = [0] * len(self)
        bounds: list[int] = self.starts.tolist()
        parents: list[int] = self.parents.tolist()
        for job in self.ordered():
            before = max((ends[parent] for parent in parents[bounds[job] : bounds[job + 1]]), default=0)
            ends[job] = before + lengths[job]
        return max(ends, default=0)

    def reordered(self, order: Indices) -> "Dependencies":
        """With the job that was `order[n]` as job n."""
        place = np.empty(len(self), dtype=np.int64)
        place[order] = np.arange(len(self), dtype=np.int64)
        waiting = np.repeat(np.arange(len(self), dtype=np.int64), self.counts)
        return Dependencies.of(
            len(self),
            zip(place[self.parents].tolist(), place[waiting].tolist(), strict=True),
            None if self.lags is None else self.lags[order],
        )

    def __add__(self, other: "Dependencies") -> "Dependencies":
        """Both, and nothing between them."""
        return Dependencies(
            np.concatenate([self.starts, other.starts[1:] + len(self.parents)]),
            np.concatenate([self.parents, other.parents + len(self)]),
            None if self.lags is other.lags is None else np.concatenate([_lags(self), _lags(other)]),
        )


class OpenParents:
    """How many of those that each job waits for have not ended yet."""

    def __init__(self, waits: Dependencies) -> None:
        self._open: list[int] = waits.counts.tolist()
        self._lags = None if waits.lags is None else waits.lags.tolist()
        bounds, children = waits.children()
        self._bounds: list[int] = bounds.tolist()
        self._children: list[int] = children.tolist()

    @property
    def ready(self) -> list[int]:
        """Jobs that wait for none."""
        return [job for job, count in enumerate(self._open) if not count]

    def lag(self, job: int) -> int:
        """How much later it is submitted, in microseconds."""
        return 0 if self._lags is None else int(self._lags[job])

    def ended(self, job: int) -> list[int]:
        """Jobs that waited for this one as the last of theirs."""
        ready: list[int] = []
        for child in self._children[self._bounds[job] : self._bounds[job + 1]]:
            self._open[child] -= 1
            if not self._open[child]:
                ready.append(child)
        return ready


def _lags(waits: Dependencies) -> Indices:
    return np.zeros(len(waits), dtype=np.int64) if waits.lags is None else waits.lags


def none_of(jobs: int) -> Dependencies:
    """So many jobs of which none waits for another."""
    return Dependencies(np.zeros(jobs + 1, dtype=np.int64), ())


def _bounds(jobs: Indices, count: int) -> Indices:
    """Where the part of each job begins in a column that is sorted by jobs."""
    return np.concatenate([[0], np.cumsum(np.bincount(jobs, minlength=count))]).astype(np.int64)
