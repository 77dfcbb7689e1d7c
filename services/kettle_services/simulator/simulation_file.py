"""
The file of a simulation: platform, workloads, delays and how the queue is served, checked where it is read.

A refusal names file, line and place; what is not known is told with the nearest name that is.
"""

from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from kettle.classad import ClassAdParseError, parse
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.checked_file import CheckedFile, closest
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.invented.period_of_workload import END
from kettle_services.simulator.invented.play import Course
from kettle_services.simulator.platforms.hosts import PLENTY, Count, Speed
from kettle_services.simulator.platforms.lives import Failures, read_outages
from kettle_services.simulator.platforms.platform import Level, Platform
from kettle_services.simulator.platforms.quantities import (
    QuantityError,
    mebibytes,
    microseconds,
    seconds,
    whole_bytes,
)
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.what_if_file import WORKLIFE, negotiator_settings, priority_factors, rules
from kettle_services.simulator.workloads.distributions import Constant, Distribution
from kettle_services.simulator.workloads.job_kinds import PLAIN, JobKind
from kettle_services.simulator.workloads.swf import BadLine, Trace, TraceError, read_swf
from kettle_services.simulator.workloads.workflows import WorkflowError, read_dag, read_wfformat
from kettle_services.simulator.workloads.workload import Workload, arrivals
from kettle_services.simulator.wrench.batch_service import Discipline
from kettle_services.simulator.wrench.delays import Delays, Oddities
from kettle_wire.ads import Ad, Expr

Quantity = float | str


class SimulationFileError(Exception):
    """The file cannot be used; the message is a sentence for the person who wrote it."""


class Hosts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[platform]]`: equal hosts."""

    hosts: Count = 1
    cores: Count = 1
    speed: Speed = 1.0
    memory: Quantity = PLENTY
    gpus: int = 0
    link: Quantity = ""
    """Bandwidth of the link of each; without one they have no network."""
    latency: Quantity = 0.0
    levels: list[Level] = []
    """A tree of links in the place of one for each host: the first level is the one nearest to the centre."""
    mtbf: Quantity = 0.0
    """Mean time between a repair and the next failure; without one they do not fail."""
    repair: Quantity = 0.0
    """Mean time until a failure is repaired."""
    outages: str = ""
    """Path of a CSV file in the place of failures at random: host, from, until (seconds)."""
    name: str = ""
    joins: Quantity = 0.0
    leaves: Quantity = ""
    """When they come and go; empty: never."""
    boot: Quantity = 0.0
    """How much later than `joins` they are there, as machines of a cloud."""


class JobsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[workload]]`: jobs that are made by rules, or read from a trace."""

    jobs: int = 0
    duration: Quantity | Distribution = 0.0
    every: Quantity = 0.0
    """Between two submissions, exactly, or on average if `arrivals` is `poisson`."""
    arrivals: str = "regular"
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
    times: Count = 1
    """How often the workflow or the DAG is submitted, as `every` and `arrivals` say."""
    requested_time: bool = False
    """Jobs of the trace work as long as they asked for."""
    requirements: str = ""
    rank: str = ""
    concurrency_limits: str = ""
    """As in submit files; for the model kettle."""


class Queue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[queue]`."""

    batch: bool = False
    """All jobs go to a batch service, with their own queue there; so do those of a trace always."""
    discipline: Discipline = Discipline.FCFS
    unstable_sort: bool = False
    priorities_ignored: bool = False
    messages: bool = True
    """Control messages take as long as the links of the platform let them."""


class DelaysTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[delays]`."""

    negotiator: Quantity = 0.0
    """Once a cycle."""
    before: Quantity = 0.0
    """In the cycle, for each job that it places."""
    after: Quantity = 0.0
    """In the manager, for each job that has ended."""


class Described(msgspec.Struct, frozen=True):
    """What a file describes."""

    simulation: Simulation
    skipped: tuple[BadLine, ...]
    """Lines of traces that are no jobs, and are left out."""


class Deciders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[kettle]`: for the model with Kettle's own deciders."""

    claim_worklife: Quantity = WORKLIFE
    """After which a claim takes no further job."""
    step: Quantity = 1.0
    """Between two cycles of the negotiator at least."""
    latency: Quantity = 0.0
    """From when a match has become possible until the slot is claimed."""
    start: Quantity = 0.0
    """From when a slot is claimed until the job runs on it."""
    until: Quantity = ""
    """When it ends, whatever still waits or runs; empty: with the last job."""


class AllMachines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[machines]`: what all of them say of themselves, for the model with Kettle's own deciders."""

    start: str = ""
    rank: str = ""
    user_preemption: bool | None = None


_WRENCH, _KETTLE = ("delays", "queue"), ("negotiator", "factors", "kettle", "machines")
_TABLES: Final = ("seed", "model", "platform", "workload", *_WRENCH, *_KETTLE)


def read(path: Path, *, seed: int | None = None, skip_bad: bool = False) -> Described:
    """
    The simulation of a file; `seed` in the place of the file's own.

    Raises:
        SimulationFileError: it cannot be read, or says what cannot be.
    """
    file = CheckedFile(path, SimulationFileError)
    tables = file.tables()
    file.only(tables, _TABLES, ())
    model: str = file.convert(tables.get("model", "wrench"), str, ("model",))
    if model not in ("wrench", "kettle"):
        raise file.refuse(("model",), f"the model is wrench or kettle{closest(model, ('wrench', 'kettle'))}")
    for name in _KETTLE if model == "wrench" else _WRENCH:
        if name in tables:
            raise file.refuse((name,), f"this table says nothing to the model {model}")
    first: int = file.convert(tables.get("seed", 0), int, ("seed",)) if seed is None else seed
    queue: Queue = _table(file, tables, "queue", Queue)
    skipped: list[BadLine] = []
    workloads = [
        _workload(file, keys, said, first + place, queue, skipped, skip_bad=skip_bad)
        for place, (keys, said) in enumerate(_list(file, tables, "workload", JobsTable))
    ]
    platforms = [_platform(file, keys, said) for keys, said in _list(file, tables, "platform", Hosts)]
    delays: DelaysTable = _table(file, tables, "delays", DelaysTable)
    try:
        workload = reduce(add, workloads)
    except ValueError as error:
        raise file.refuse(("workload",), f"{error}; [queue] batch = true has all of them there") from error
    if model == "wrench":
        _only_for_kettle(file, workload)
    elif workload.waits is not None:
        raise file.refuse(("workload",), "workflows are simulated by the model wrench only")
    if model == "kettle" and any(host.failures for platform in platforms for host in platform.hosts):
        raise file.refuse(("platform",), "hosts that fail are simulated by the model wrench only")
    return Described(
        Simulation(
            platform=reduce(add, platforms),
            workload=workload,
            delays=_delays(file, delays),
            discipline=queue.discipline,
            oddities=Oddities(unstable_sort=queue.unstable_sort, priorities_ignored=queue.priorities_ignored),
            messages=queue.messages,
            seed=first,
            rules=None if model == "wrench" else _rules(file, tables),
            course=_course(file, tables),
        ),
        tuple(skipped),
    )


def _table(file: CheckedFile, tables: dict[str, Any], name: str, kind: type[msgspec.Struct]) -> Any:
    said = tables.get(name, {})
    file.only(said, [field.encode_name for field in msgspec.structs.fields(kind)], (name,))
    return file.convert(said, kind, (name,))


def _list(
    file: CheckedFile, tables: dict[str, Any], name: str, kind: type[msgspec.Struct]
) -> list[tuple[tuple[str, ...], Any]]:
    """The tables of a list, or one table that stands for a list of it."""
    said = tables.get(name)
    if said is None or said == []:
        raise SimulationFileError(f"{file.path}: it has no [[{name}]]")
    one = isinstance(said, dict)
    found: list[tuple[tuple[str, ...], Any]] = []
    for place, each in enumerate(cast("list[object]", [said] if one else said)):
        keys = (name,) if one else (name, str(place))
        file.only(each, [field.encode_name for field in msgspec.structs.fields(kind)], keys)
        found.append((keys, file.convert(each, kind, keys)))
    return found


def _platform(file: CheckedFile, keys: tuple[str, ...], said: Hosts) -> Platform:
    name = said.name or ("host" if len(keys) == 1 else f"host{keys[1]}-")
    if said.levels and (said.hosts != 1 or said.link):
        raise file.refuse(
            keys, "levels say how many hosts there are, and how they are linked: leave out hosts and link"
        )
    try:
        platform = _hosts(said, name).between(_joins(said), said.leaves)
        if said.mtbf or said.outages:
            return platform.failing(_failures(file, keys, said, platform))
        return platform
    except (ValueError, msgspec.ValidationError) as error:
        raise file.refuse(keys, str(error)) from error


def _joins(said: Hosts) -> float:
    return seconds(said.joins) + seconds(said.boot)


def _failures(
    file: CheckedFile, keys: tuple[str, ...], said: Hosts, platform: Platform
) -> list[Failures | None]:
    if said.outages and said.mtbf:
        raise file.refuse(keys, "either outages name a file, or mtbf says how often hosts fail")
    life = Failures(mean_up=seconds(said.mtbf), mean_down=seconds(said.repair))
    if not said.outages:
        return [life] * len(platform.hosts)
    try:
        outages = read_outages(file.path.parent / said.outages, [host.name for host in platform.hosts])
    except OSError as error:
        raise file.refuse((*keys, "outages"), f"{said.outages}: {error.strerror}") from error
    return [Failures(outages=outages.get(host.name, ())) for host in platform.hosts]


def _hosts(said: Hosts, name: str) -> Platform:
    if said.levels:
        return Platform.tree(
            said.levels, cores=said.cores, speed=said.speed, memory=said.memory, gpus=said.gpus, name=name
        )
    return Platform.star(
        hosts=said.hosts,
        cores=said.cores,
        speed=said.speed,
        memory=said.memory,
        gpus=said.gpus,
        link=said.link,
        latency=said.latency,
        name=name,
    )


def _workload(
    file: CheckedFile,
    keys: tuple[str, ...],
    said: JobsTable,
    seed: int,
    queue: Queue,
    skipped: list[BadLine],
    *,
    skip_bad: bool,
) -> Workload:
    if sum(map(bool, (said.jobs, said.swf, said.workflow, said.dag))) > 1:
        raise file.refuse(keys, "only one of jobs, swf, workflow and dag says what the jobs are")
    if said.swf:
        trace = _trace(file, keys, said, skip_bad=skip_bad)
        skipped += trace.skipped
        return trace.workload
    if said.arrivals not in ("regular", "poisson"):
        raise file.refuse((*keys, "arrivals"), "jobs come regular or poisson")
    if said.workflow or said.dag:
        return _workflow(file, keys, said, seed, grid=queue.batch)
    if said.jobs < 1:
        raise file.refuse(
            keys, "jobs says how many there are, or swf, workflow or dag names a file with them"
        )
    try:
        return Workload.generated(
            said.jobs,
            duration=said.duration,
            every=said.every,
            poisson=said.arrivals == "poisson",
            seed=seed,
            cores=said.cores,
            memory=mebibytes(said.memory),
            reads=whole_bytes(said.reads),
            writes=whole_bytes(said.writes),
            user=said.user,
            kind=JobKind(
                requirements=said.requirements, rank=said.rank, concurrency_limits=said.concurrency_limits
            ),
            grid=queue.batch,
        )
    except ValueError as error:
        raise file.refuse(keys, str(error)) from error


def _trace(file: CheckedFile, keys: tuple[str, ...], said: JobsTable, *, skip_bad: bool) -> Trace:
    try:
        return read_swf(file.path.parent / said.swf, requested_time=said.requested_time, skip_bad=skip_bad)
    except OSError as error:
        raise file.refuse((*keys, "swf"), f"{said.swf}: {error.strerror}") from error
    except TraceError as error:
        raise SimulationFileError(str(error)) from error


def _workflow(
    file: CheckedFile, keys: tuple[str, ...], said: JobsTable, seed: int, *, grid: bool
) -> Workload:
    kind, name = ("workflow", said.workflow) if said.workflow else ("dag", said.dag)
    path = file.path.parent / name
    try:
        at = arrivals(said.times, every=said.every, poisson=said.arrivals == "poisson", seed=seed)
        if said.workflow:
            return read_wfformat(path, at=at, user=said.user, grid=grid)
        return read_dag(
            path,
            duration=Constant(seconds(said.duration))
            if isinstance(said.duration, int | float | str)
            else said.duration,
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
        raise SimulationFileError(str(error)) from error
    except ValueError as error:
        raise file.refuse(keys, str(error)) from error


def _delays(file: CheckedFile, said: DelaysTable) -> Delays:
    try:
        before, after = microseconds(said.before), microseconds(said.after)
        return Delays(
            negotiator=microseconds(said.negotiator),
            grid_pre=before,
            grid_post=after,
            non_grid_pre=before,
            non_grid_post=after,
        )
    except QuantityError as error:
        raise file.refuse(("delays",), str(error)) from error


def _rules(file: CheckedFile, tables: dict[str, Any]) -> PoolRules:
    for name in ("negotiator", "factors"):
        file.table(tables.get(name, {}), (name,))
    settings = negotiator_settings(file, tables.get("negotiator", {}), NegotiatorSettings())
    said: Deciders = _table(file, tables, "kettle", Deciders)
    try:
        worklife = seconds(said.claim_worklife)
    except QuantityError as error:
        raise file.refuse(("kettle", "claim_worklife"), str(error)) from error
    return rules(
        settings, worklife=worklife, factors=priority_factors(file, tables.get("factors", {}), settings)
    )


def _course(file: CheckedFile, tables: dict[str, Any]) -> Course:
    said: Deciders = _table(file, tables, "kettle", Deciders)
    machines: AllMachines = _table(file, tables, "machines", AllMachines)
    for name, text in (("start", machines.start), ("rank", machines.rank)):
        try:
            if text:
                parse(text)
        except ClassAdParseError as error:
            raise file.refuse(("machines", name), f"it is no expression: {error}") from error
    ad: Ad = {name: Expr(text) for name, text in (("Start", machines.start), ("Rank", machines.rank)) if text}
    if machines.user_preemption is not None:
        ad["UserPreemption"] = machines.user_preemption
    times: dict[str, int] = {}
    for name in ("step", "latency", "start", "until"):
        quantity: Quantity = getattr(said, name)
        try:
            times[name] = END if quantity == "" else microseconds(quantity)
        except QuantityError as error:
            raise file.refuse(("kettle", name), str(error)) from error
    return Course(said=ad, **times)


def _only_for_kettle(file: CheckedFile, workload: Workload) -> None:
    if any(kind != PLAIN for kind in workload.kinds):
        what = "requirements, rank and concurrency_limits are looked at by"
        raise file.refuse(("workload",), f'{what} the model kettle only: model = "kettle"')
