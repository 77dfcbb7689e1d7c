"""The jobs of a simulation, in columns."""

from collections.abc import Sequence
from copy import copy
from typing import Final

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from kettle_services.simulator.platforms.quantities import seconds
from kettle_services.simulator.workloads.arrivals import Daily, arrivals
from kettle_services.simulator.workloads.dependencies import Dependencies, none_of
from kettle_services.simulator.workloads.distributions import Constant, Distribution, Randomness
from kettle_services.simulator.workloads.job_kinds import PLAIN, JobKind
from kettle_services.simulator.workloads.lublin import processors, run_times

Column = NDArray[np.int64]

_US: Final = 1e6


class Workload:
    """
    Jobs in the order in which they are submitted; each column has one whole number for each.

    `submitted`, `work` and `limit` are microseconds (work: of a core of speed 1; limit: what the job asks for), `memory` is MiB, and
    `user` is a place in `users`, `kind` one in `kinds` (what else jobs say), and `reads` and `writes` are bytes that go over the network
    before and after the work. A job with more than one node is of the grid universe, and so are all if `grid`.
    A job that waits for others (`waits`) is submitted when their ends have been reported, and not before `submitted`.
    """

    COLUMNS: Final = (
        "submitted", "work", "cores", "memory", "nodes", "limit", "priority", "user", "reads", "writes", "kind",
    )  # fmt: skip

    def __init__(
        self,
        *,
        submitted: ArrayLike,
        work: ArrayLike,
        cores: ArrayLike = 1,
        memory: ArrayLike = 0,
        nodes: ArrayLike = 1,
        limit: ArrayLike = 0,
        priority: ArrayLike = 0,
        user: ArrayLike = 0,
        reads: ArrayLike = 0,
        writes: ArrayLike = 0,
        users: Sequence[str] = ("user",),
        kind: ArrayLike = 0,
        kinds: Sequence[JobKind] = (PLAIN,),
        grid: bool = False,
        waits: Dependencies | None = None,
    ) -> None:
        """
        Columns may be one number for all jobs; they and `waits` need not be in the order of submission.

        Raises ValueError: a value cannot be; the message says of which job.
        """
        columns = np.broadcast_arrays(
            *(
                np.asarray(column, dtype=np.int64)
                for column in (
                    submitted,
                    work,
                    cores,
                    memory,
                    nodes,
                    limit,
                    priority,
                    user,
                    reads,
                    writes,
                    kind,
                )
            )
        )
        order = np.argsort(columns[0], kind="stable")
        (
            self.submitted,
            self.work,
            self.cores,
            self.memory,
            self.nodes,
            self.limit,
            self.priority,
            self.user,
            self.reads,
            self.writes,
            self.kind,
        ) = (np.ascontiguousarray(np.atleast_1d(column)[order]) for column in columns)
        self.users, self.kinds = tuple(users), tuple(kinds)
        self.grid = grid
        self.waits = waits
        if waits is not None:
            if len(waits) != len(order):
                raise ValueError(
                    f"there are {len(order)} jobs, and {len(waits)} of which it is said who waits"
                )
            self.waits = waits.reordered(order)
        for name, least in (
            ("submitted", 0),
            ("work", 0),
            ("cores", 1),
            ("memory", 0),
            ("nodes", 1),
            ("limit", 0),
            ("reads", 0),
            ("writes", 0),
        ):
            wrong = np.flatnonzero(getattr(self, name) < least)
            if len(wrong):
                value = getattr(self, name)[wrong[0]]
                raise ValueError(
                    f"job {wrong[0]}: {name} is {value}, and {least} is the least that it can be"
                )
        if len(self) and not 0 <= self.user.min() <= self.user.max() < len(self.users):
            raise ValueError(f"there are {len(self.users)} users, and jobs of others")
        if len(self) and not 0 <= self.kind.min() <= self.kind.max() < len(self.kinds):
            raise ValueError(f"there are {len(self.kinds)} kinds, and jobs of others")

    def __len__(self) -> int:
        return len(self.submitted)

    @classmethod
    def generated(
        cls,
        count: int,
        *,
        duration: float | str | Distribution,
        every: float | str = 0.0,
        poisson: bool = False,
        daily: Daily | None = None,
        seed: int = 0,
        cores: int = 1,
        memory: int = 0,
        reads: int = 0,
        writes: int = 0,
        user: str = "user",
        kind: JobKind = PLAIN,
        grid: bool = False,
    ) -> "Workload":
        """
        So many jobs, all at once or one every so many seconds: exactly, or on average at random (`poisson`, `daily`).

        Durations are seconds, and random with a distribution; a seed gives the same jobs on every machine.

        Raises QuantityError, ValueError.
        """
        submitted = arrivals(count, every=every, poisson=poisson, daily=daily, seed=seed)
        draws = Constant(seconds(duration)) if isinstance(duration, int | float | str) else duration
        work = draws.draw(Randomness(seed, "durations"), count) * _US
        return cls(
            submitted=submitted,
            work=np.rint(work).astype(np.int64),
            cores=cores,
            memory=memory,
            reads=reads,
            writes=writes,
            users=(user,),
            kinds=(kind,),
            grid=grid,
        )

    @classmethod
    def supercomputer(
        cls,
        count: int,
        *,
        most: int,
        every: float | str,
        daily: Daily | None = None,
        seed: int = 0,
        user: str = "user",
    ) -> "Workload":
        """
        So many jobs of up to `most` nodes of a core, as Lublin and Feitelson found them; they come at random, or more by day.

        Their time limits are their run times.

        Raises QuantityError.
        """
        nodes = processors(count, most, Randomness(seed, "processors"))
        work = run_times(nodes, Randomness(seed, "durations")) * _US
        return cls(
            submitted=arrivals(count, every=every, poisson=True, daily=daily, seed=seed),
            work=np.rint(work).astype(np.int64),
            nodes=nodes,
            users=(user,),
            grid=True,
        )

    def repeated(self, at: Column, work: ArrayLike | None = None) -> "Workload":
        """
        As often as there are times in `at`, each copy later by one of them; `work` is that of all copies, one after another.
        """
        times, jobs = len(at), len(self)
        waits = self.waits
        if waits is not None:
            shifts = np.arange(times, dtype=np.int64) * jobs
            edges = np.arange(times, dtype=np.int64) * len(waits.parents)
            waits = Dependencies(
                np.append((waits.starts[:-1] + edges[:, None]).ravel(), times * len(waits.parents)),
                (waits.parents + shifts[:, None]).ravel(),
            )
        columns = {name: np.tile(getattr(self, name), times) for name in self.COLUMNS}
        columns["submitted"] = (self.submitted + np.asarray(at)[:, None]).ravel()
        if work is not None:
            columns["work"] = np.asarray(work, dtype=np.int64)
        return Workload(users=self.users, kinds=self.kinds, grid=self.grid, waits=waits, **columns)

    def routed(self) -> "Workload":
        """These jobs, if they come by a compute entrypoint."""
        twin = copy(self)
        twin.kinds = tuple(msgspec.structs.replace(kind, routed=True) for kind in self.kinds)
        return twin

    def __add__(self, other: "Workload") -> "Workload":
        """
        Both, by the time of submission; of two at one moment, the one of the first workload comes first.
        """
        if self.grid != other.grid:
            raise ValueError("jobs of one simulation are all of the grid universe, or none is")
        users = tuple(dict.fromkeys(self.users + other.users))
        kinds = tuple(dict.fromkeys(self.kinds + other.kinds))
        waits = None
        if self.waits is not None or other.waits is not None:
            waits = (self.waits or none_of(len(self))) + (other.waits or none_of(len(other)))
        return Workload(
            users=users,
            grid=self.grid,
            waits=waits,
            kinds=kinds,
            user=np.concatenate([_moved(users, one.users, one.user) for one in (self, other)]),
            kind=np.concatenate([_moved(kinds, one.kinds, one.kind) for one in (self, other)]),
            **{
                name: np.concatenate([getattr(self, name), getattr(other, name)])
                for name in self.COLUMNS
                if name not in ("user", "kind")
            },
        )


def _moved(known: Sequence[object], were: Sequence[object], column: Column) -> Column:
    """Places in `were` as places of the same in `known`."""
    return np.array([known.index(one) for one in were], dtype=np.int64)[column]
