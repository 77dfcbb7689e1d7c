"""Tables of jobs that a run has written, read again as its result."""

import csv
import importlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.workloads.workload import Column, Workload

_WHOLE: Final = ("cores", "nodes", "memory")
_TIMES: Final = ("submitted", "started", "ended", "reported")
_LARGEST: Final = 1_000_000_000
"""Of cores, nodes and MiB."""
_LATEST_S: Final = 1e12
_NEVER: Final = -1
_US: Final = 1e6


class JobTableError(Exception):
    """The table cannot be used; the message says which line of it, and why."""


def read_jobs(path: Path, *, cores: int | None = None) -> Result:
    """
    The result of a run by its table of jobs, *.csv or *.parquet, as `kettle simulate run --jobs` writes it.

    Hosts are not in the table: there is one of so many cores, or of as many as were ever used at the same time.

    Raises JobTableError.
    """
    users: dict[str, int] = {}
    rows = [_row(path, number, row, users) for number, row in enumerate(_rows(path), 2)]
    if not rows:
        raise JobTableError(f"{path}: there is no job in it")
    rows.sort(key=lambda row: row[-4])
    user, cores_of, nodes, memory, submitted, started, ended, reported = (
        np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)
    )
    ran = (started != _NEVER) & (ended != _NEVER)
    work = Workload(
        submitted=submitted,
        work=np.where(ran, ended - started, 0).clip(0),
        user=user,
        users=tuple(users),
        cores=cores_of,
        nodes=nodes,
        memory=memory,
    )
    weight = (work.cores * work.nodes)[ran]
    most = cores or max(1, _most(started[ran], ended[ran], weight))
    platform = Platform(hosts=(Host(name="all", cores=min(most, 1_000_000)),))
    return Result(work, platform, started.tolist(), ended.tolist(), reported.tolist())


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        if path.suffix.lower() == ".parquet":
            yield from _parquet(path)
            return
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            _require(path, rows.fieldnames or ())
            yield from rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise JobTableError(f"{path}: cannot be read: {error}") from error


def _parquet(path: Path) -> Iterable[Mapping[str, Any]]:
    try:
        pyarrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise JobTableError(f"{path}: reading Parquet needs the package pyarrow") from error
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise JobTableError(f"{path}: cannot be read: {error}") from error
    _require(path, table.column_names)
    rows: list[Mapping[str, Any]] = table.to_pylist()
    return rows


def _require(path: Path, columns: Sequence[str]) -> None:
    missing = [name for name in ("user", *_WHOLE, *_TIMES) if name not in columns]
    if missing:
        raise JobTableError(
            f"{path}: it has no column {missing[0]}; kettle simulate run --jobs writes such a table"
        )


def _row(path: Path, number: int, row: Mapping[str, Any], users: dict[str, int]) -> tuple[int, ...]:
    try:
        user = users.setdefault(str(row["user"]), len(users))
        asked = [int(row[name]) for name in _WHOLE]
        times = [_moment(row[name]) for name in _TIMES]
    except (TypeError, ValueError) as error:
        raise JobTableError(f"{path}, line {number}: this is no job: {error}") from error
    if min(asked[:2]) < 1 or asked[2] < 0 or max(asked) > _LARGEST or times[0] == _NEVER:
        raise JobTableError(
            f"{path}, line {number}: a job has from 1 to {_LARGEST} cores and nodes, at most as many MiB, and was submitted"
        )
    return (user, *asked, *times)


def _moment(value: object) -> int:
    """In microseconds."""
    if value is None or value == "":
        return _NEVER
    seconds = float(str(value))
    if math.isnan(seconds):
        return _NEVER
    if abs(seconds) > _LATEST_S:
        raise ValueError(f"{value} is no time in seconds")
    return round(seconds * _US)


def _most(starts: Column, ends: Column, weight: Column) -> int:
    """Cores in use at the same time."""
    moments = np.concatenate([ends, starts])
    changes = np.concatenate([-weight, weight])
    order = np.lexsort((changes, moments))
    return int(np.cumsum(changes[order]).max(initial=0))
