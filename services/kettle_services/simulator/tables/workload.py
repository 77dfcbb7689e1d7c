"""`[[workload]]` in the file of a simulation: jobs that are made by rules, or read from files beside it."""

from typing import Annotated

import msgspec
import numpy as np

from kettle_services.simulator.checked_file import CheckedFile
from kettle_services.simulator.platforms.hosts import Count
from kettle_services.simulator.platforms.quantities import (
    Quantity,
    QuantityError,
    mebibytes,
    microseconds,
    seconds,
    whole_bytes,
)
from kettle_services.simulator.workloads.arrivals import Daily, arrivals
from kettle_services.simulator.workloads.distributions import Constant, Distribution
from kettle_services.simulator.workloads.job_kinds import JobKind
from kettle_services.simulator.workloads.prominence_documents import read_prominence
from kettle_services.simulator.workloads.submit_files import read_submit
from kettle_services.simulator.workloads.swf import BadLine, Trace, TraceError, read_swf
from kettle_services.simulator.workloads.workflows import WorkflowError, read_dag, read_wfformat
from kettle_services.simulator.workloads.workload import Workload


class JobsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[workload]]`: jobs that are made by rules, or read from a trace."""

    jobs: int = 0
    duration: Quantity | Distribution = 0.0
    every: Quantity = 0.0
    """Between two submissions, exactly, or on average if `arrivals` is `poisson` or `daily`."""
    arrivals: str = "regular"
    peak: Quantity = 50_400.0
    """When most of them come, if they come `daily`: so long after the beginning of each day."""
    swing: float = 0.8
    """How much more than on average come then, and how much less half a day later."""
    supercomputer: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Jobs as Lublin and Feitelson found them, of up to so many nodes."""
    cores: Count = 1
    memory: Quantity = 0
    reads: Quantity = 0
    writes: Quantity = 0
    """Bytes that go over the network to the host before a job begins its work, and back after it."""
    user: str = "user"
    swf: str = ""
    """Path of a trace, beside the file."""
    workflow: str = ""
    """Path of an instance of WfFormat."""
    dag: str = ""
    """Path of a DAG file, whose nodes have durations as jobs have that are made by rules."""
    submit: str = ""
    """Path of a submit file, whose jobs have such durations, too."""
    prominence: str = ""
    """Path of a PROMINENCE document, of a job or a workflow; without a duration, each job takes its walltime."""
    times: Count = 1
    """How often the file is submitted, as `every` and `arrivals` say."""
    after: Quantity = 0.0
    """By how much later all of it comes."""
    requested_time: bool = False
    """Jobs of the trace work as long as they asked for."""
    requirements: str = ""
    rank: str = ""
    routed: bool = False
    """They come by a compute entrypoint, whose `routes` the file names; for the model kettle."""
    concurrency_limits: str = ""
    """As in submit files; for the model kettle."""


def workload_of(
    file: CheckedFile,
    keys: tuple[str, ...],
    said: JobsTable,
    seed: int,
    skipped: list[BadLine],
    *,
    grid: bool,
    skip_bad: bool,
) -> Workload:
    """
    The jobs that one of the tables describes; lines of traces that are none are added to `skipped`.

    Raises the refusal of the file.
    """
    if sum(map(bool, (said.jobs, said.swf, *_paths(said).values()))) > 1:
        names = ", ".join(("jobs", "swf", *_paths(said)))
        raise file.refuse(keys, f"only one of these says what the jobs are: {names}")
    work = _jobs(file, keys, said, seed, skipped, grid=grid, skip_bad=skip_bad)
    if said.routed:
        work = work.routed()
    try:
        after = microseconds(said.after)
    except QuantityError as error:
        raise file.refuse((*keys, "after"), str(error)) from error
    return work.repeated(np.array([after], dtype=np.int64)) if after else work


def _jobs(
    file: CheckedFile,
    keys: tuple[str, ...],
    said: JobsTable,
    seed: int,
    skipped: list[BadLine],
    *,
    grid: bool,
    skip_bad: bool,
) -> Workload:
    if said.swf:
        trace = _trace(file, keys, said, skip_bad=skip_bad)
        skipped += trace.skipped
        return trace.workload
    if said.arrivals not in ("regular", "poisson", "daily"):
        raise file.refuse((*keys, "arrivals"), "jobs come regular, poisson or daily")
    if any(_paths(said).values()):
        return _submitted(file, keys, said, seed, grid=grid)
    if said.jobs < 1:
        raise file.refuse(
            keys,
            f"jobs says how many there are, or one of {', '.join(('swf', *_paths(said)))} names a file with them",
        )
    try:
        if said.supercomputer:
            return Workload.supercomputer(
                said.jobs,
                most=said.supercomputer,
                every=said.every,
                daily=_daily(said),
                seed=seed,
                user=said.user,
            )
        return Workload.generated(
            said.jobs,
            duration=said.duration,
            every=said.every,
            poisson=said.arrivals == "poisson",
            daily=_daily(said),
            seed=seed,
            cores=said.cores,
            memory=mebibytes(said.memory),
            reads=whole_bytes(said.reads),
            writes=whole_bytes(said.writes),
            user=said.user,
            kind=JobKind(
                requirements=said.requirements, rank=said.rank, concurrency_limits=said.concurrency_limits
            ),
            grid=grid,
        )
    except ValueError as error:
        raise file.refuse(keys, str(error)) from error


def _trace(file: CheckedFile, keys: tuple[str, ...], said: JobsTable, *, skip_bad: bool) -> Trace:
    try:
        return read_swf(file.path.parent / said.swf, requested_time=said.requested_time, skip_bad=skip_bad)
    except OSError as error:
        raise file.refuse((*keys, "swf"), f"{said.swf}: {error.strerror}") from error
    except TraceError as error:
        raise file.refusal(str(error)) from error


def files_of(said: JobsTable) -> dict[str, str]:
    """The files in which the jobs are, each by what it is; empty names are of none."""
    return {"swf": said.swf, **_paths(said)}


def _paths(said: JobsTable) -> dict[str, str]:
    """Files that are submitted, each by what it is."""
    return {name: getattr(said, name) for name in ("workflow", "dag", "submit", "prominence")}


def _submitted(
    file: CheckedFile, keys: tuple[str, ...], said: JobsTable, seed: int, *, grid: bool
) -> Workload:
    kind, name = next((kind, name) for kind, name in _paths(said).items() if name)
    path = file.path.parent / name
    try:
        at = arrivals(
            said.times,
            every=said.every,
            poisson=said.arrivals == "poisson",
            daily=_daily(said),
            seed=seed,
        )
        drawn = said.duration
        duration = Constant(seconds(drawn)) if isinstance(drawn, int | float | str) else drawn
        match kind:
            case "workflow":
                return read_wfformat(path, at=at, user=said.user, grid=grid)
            case "submit":
                return read_submit(path, duration=duration, at=at, seed=seed, user=said.user, grid=grid)
            case "prominence":
                own = None if drawn == 0.0 else duration
                return read_prominence(path, duration=own, at=at, seed=seed, user=said.user, grid=grid)
            case _:
                return read_dag(
                    path,
                    duration=duration,
                    at=at,
                    seed=seed,
                    cores=said.cores,
                    memory=mebibytes(said.memory),
                    user=said.user,
                    grid=grid,
                )
    except OSError as error:
        raise file.refuse((*keys, kind), f"{name}: {error.strerror}") from error
    except WorkflowError as error:
        raise file.refusal(str(error)) from error
    except ValueError as error:
        raise file.refuse(keys, str(error)) from error


def _daily(said: JobsTable) -> Daily | None:
    """Raises ValueError: the day has no such time, or the rate cannot swing so far."""
    if said.arrivals != "daily":
        return None
    return msgspec.convert({"peak": seconds(said.peak), "swing": said.swing}, Daily)
