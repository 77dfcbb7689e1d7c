"""
The file of a simulation: platform, workloads, delays and how the queue is served, checked where it is read.

A refusal names file, line and place; what is not known is told with the nearest name that is.
"""

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any, Final, cast

import msgspec

from kettle.classad import ClassAdParseError, parse
from kettle.routes import RouteFileError, read_routes
from kettle.worker_pools.faults import PoolFileRefused
from kettle.worker_pools.reading import pool_of
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.checked_file import CheckedFile, closest
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.invented.machines_on_demand import Spot
from kettle_services.simulator.invented.period_of_workload import END
from kettle_services.simulator.invented.play import Course
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.platforms.quantities import Quantity, QuantityError, microseconds, seconds
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.tables.platform import Hosts, platform_of
from kettle_services.simulator.tables.workload import JobsTable, files_of, workload_of
from kettle_services.simulator.what_if_file import WORKLIFE, negotiator_settings, priority_factors, rules
from kettle_services.simulator.workloads.job_kinds import PLAIN
from kettle_services.simulator.workloads.swf import BadLine
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline
from kettle_services.simulator.wrench.delays import Delays, Oddities
from kettle_wire.ads import Ad, Expr
from kettle_wire.worker_pools import WorkerPool


class SimulationFileError(Exception):
    """The file cannot be used; the message is a sentence for the person who wrote it."""


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
    max_concurrent_uploads: Annotated[int, msgspec.Meta(ge=0)] = 100
    """So many jobs move what they read at once, over the links of the platform; 0: all."""
    max_concurrent_downloads: Annotated[int, msgspec.Meta(ge=0)] = 100
    """So many jobs move what they write at once."""


class SpotTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[spot]`: how machines on demand are taken back by who lends them."""

    mtbf: Quantity
    """Mean time from when one is there until it is taken back."""
    notice: Quantity = 0.0
    """So long before, it is told, and takes no more jobs."""


class AllMachines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[machines]`: what all of them say of themselves, for the model with Kettle's own deciders."""

    start: str = ""
    rank: str = ""
    user_preemption: bool | None = None


RULES: Final = ("negotiator", "factors", "kettle")
"""Tables that say what a real pool has in its settings."""
_WRENCH, _KETTLE = ("delays", "queue"), (*RULES, "machines", "pool", "spot", "routes")
_TABLES: Final = ("seed", "model", "until", "platform", "workload", *_WRENCH, *_KETTLE)


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says, as its keys have it: no file that it names has been opened, and no job made."""

    tables: dict[str, Any]
    seed: int
    queue: Queue
    delays: DelaysTable
    platforms: list[tuple[tuple[str, ...], Hosts]]
    workloads: list[tuple[tuple[str, ...], JobsTable]]
    until: int
    rules: PoolRules | None
    course: Course
    routes: str
    """The name of the file of an entrypoint's routes; empty: no jobs come by one."""

    @property
    def names(self) -> list[tuple[tuple[str, ...], str]]:
        """The files that it names, and where it does."""
        outages = [((*keys, "outages"), hosts.outages) for keys, hosts in self.platforms]
        outages.append((("routes",), self.routes))
        jobs = [
            ((*keys, kind), name) for keys, each in self.workloads for kind, name in files_of(each).items()
        ]
        return [each for each in (*outages, *jobs) if each[1]]


def tables_of(file: CheckedFile) -> Tables:
    """
    The tables of a file, each as it has to be.

    Raises:
        SimulationFileError: one of them is not.
    """
    tables = file.tables()
    file.only(tables, _TABLES, ())
    model: str = file.convert(tables.get("model", "wrench"), str, ("model",))
    if model not in ("wrench", "kettle"):
        raise file.refuse(("model",), f"the model is wrench or kettle{closest(model, ('wrench', 'kettle'))}")
    for name in _KETTLE if model == "wrench" else _WRENCH:
        if name in tables:
            raise file.refuse((name,), f"this table says nothing to the model {model}")
    has_hosts = "platform" in tables or "pool" not in tables
    return Tables(
        tables=tables,
        seed=file.convert(tables.get("seed", 0), int, ("seed",)),
        queue=_table(file, tables, "queue", Queue),
        delays=_table(file, tables, "delays", DelaysTable),
        platforms=_list(file, tables, "platform", Hosts) if has_hosts else [],
        workloads=_list(file, tables, "workload", JobsTable),
        until=_until(file, tables),
        rules=None if model == "wrench" else rules_of(file, tables),
        course=_course(file, tables),
        routes=file.convert(tables.get("routes", ""), str, ("routes",)),
    )


def read(path: Path, *, seed: int | None = None, skip_bad: bool = False) -> Described:
    """
    The simulation of a file; `seed` in the place of the file's own.

    Raises:
        SimulationFileError: it cannot be read, or says what cannot be.
    """
    file = CheckedFile(path, SimulationFileError)
    said = tables_of(file)
    queue = said.queue
    first = said.seed if seed is None else seed
    skipped: list[BadLine] = []
    workloads = [
        workload_of(file, keys, each, first + place, skipped, grid=queue.batch, skip_bad=skip_bad)
        for place, (keys, each) in enumerate(said.workloads)
    ]
    platforms = [platform_of(file, keys, each) for keys, each in said.platforms]
    try:
        workload = reduce(add, workloads)
    except ValueError as error:
        raise file.refuse(("workload",), f"{error}; [queue] batch = true has all of them there") from error
    if said.rules is None:
        _only_for_kettle(file, workload, platforms)
    else:
        _only_for_wrench(file, platforms, workload, pools="pool" in said.tables)
    return Described(
        Simulation(
            platform=reduce(add, platforms, Platform(hosts=())),
            workload=workload,
            delays=_delays(file, said.delays),
            discipline=queue.discipline,
            oddities=Oddities(unstable_sort=queue.unstable_sort, priorities_ignored=queue.priorities_ignored),
            messages=queue.messages,
            seed=first,
            until=said.until,
            rules=said.rules,
            course=_with_routes(file, said, workload),
        ),
        tuple(skipped),
    )


def _table(file: CheckedFile, tables: Mapping[str, Any], name: str, kind: type[msgspec.Struct]) -> Any:
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


def rules_of(file: CheckedFile, tables: Mapping[str, Any]) -> PoolRules:
    """
    By what a pool goes, as the tables `negotiator`, `factors` and `kettle` say; raises what the file refuses.
    """
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
    for name in ("step", "latency", "start"):
        quantity: Quantity = getattr(said, name)
        try:
            times[name] = microseconds(quantity)
        except QuantityError as error:
            raise file.refuse(("kettle", name), str(error)) from error
    return Course(
        said=ad,
        spot=_spot(file, tables),
        pools=_pools(file, tables.get("pool", [])),
        max_concurrent_uploads=said.max_concurrent_uploads,
        max_concurrent_downloads=said.max_concurrent_downloads,
        **times,
    )


def _spot(file: CheckedFile, tables: Mapping[str, Any]) -> Spot | None:
    if "spot" not in tables:
        return None
    if "pool" not in tables:
        raise file.refuse(("spot",), "machines of [[pool]] are taken back, and there is none")
    said: SpotTable = _table(file, tables, "spot", SpotTable)
    try:
        mean, notice = microseconds(said.mtbf), microseconds(said.notice)
    except QuantityError as error:
        raise file.refuse(("spot",), str(error)) from error
    if not mean:
        raise file.refuse(("spot", "mtbf"), "machines are there for some time, on average")
    return Spot(mean=mean, notice=notice)


def _with_routes(file: CheckedFile, said: Tables, workload: Workload) -> Course:
    """With the routes of the file that is named, which lead to the pool itself."""
    if not said.routes:
        if any(kind.routed for kind in workload.kinds):
            raise file.refuse(
                ("workload",), "routed jobs need an entrypoint's routes: routes = FILE, above the tables"
            )
        return said.course
    path = file.path.parent / said.routes
    try:
        table = read_routes(path.read_text(encoding="utf-8"), said.routes)
    except OSError as error:
        raise file.refuse(("routes",), f"{said.routes}: {error.strerror}") from error
    except (UnicodeDecodeError, RouteFileError) as error:
        raise file.refuse(("routes",), f"{said.routes}: {error}") from error
    for each in table.routes:
        if not each.is_of_this_pool:
            raise file.refuse(
                ("routes",),
                f"{said.routes}:{each.line}: the route {each.name} leads to a batch system, and simulated ones lead to the pool "
                "itself: UNIVERSE VANILLA",
            )
    return msgspec.structs.replace(said.course, routes=table)


def _place(file: CheckedFile, table: tuple[str, ...], keys: Sequence[str]) -> str:
    return file.where((*table, *keys))


def _pools(file: CheckedFile, said: object) -> tuple[WorkerPool, ...]:
    """`[[pool]]`: each as the scaler's file of one has it."""
    found: list[WorkerPool] = []
    one = isinstance(said, dict)
    for place, each in enumerate(cast("list[Any]", [said] if one else said)):
        keys = ("pool",) if one else ("pool", str(place))
        file.table(each, keys)
        try:
            found.append(pool_of(each, partial(_place, file, keys)))
        except PoolFileRefused as refused:
            raise file.refusal(str(refused)) from refused
    names = [pool.name for pool in found]
    for name in names:
        if names.count(name) > 1:
            raise file.refuse(("pool",), f"two pools are called {name}")
    return tuple(found)


def _until(file: CheckedFile, tables: dict[str, Any]) -> int:
    if "until" not in tables:
        return END
    try:
        return microseconds(file.convert(tables["until"], float | str, ("until",)))
    except QuantityError as error:
        raise file.refuse(("until",), str(error)) from error


def _only_for_kettle(file: CheckedFile, workload: Workload, platforms: list[Platform]) -> None:
    if any(kind != PLAIN for kind in workload.kinds):
        what = "requirements, rank, concurrency_limits and routed are looked at by"
        raise file.refuse(("workload",), f'{what} the model kettle only: model = "kettle"')
    if any(host.notice for platform in platforms for host in platform.hosts):
        raise file.refuse(("platform",), 'notice is for the model kettle only: model = "kettle"')


def _only_for_wrench(
    file: CheckedFile, platforms: list[Platform], workload: Workload, *, pools: bool
) -> None:
    if workload.nodes.max(initial=1) > 1:
        raise file.refuse(("workload",), "jobs of several nodes are simulated by the model wrench only")
    moves = bool(workload.reads.any() or workload.writes.any()) and any(each.links for each in platforms)
    if moves and pools:
        raise file.refuse(
            ("pool",), "machines on demand have no links, over which jobs of this workload move data"
        )
