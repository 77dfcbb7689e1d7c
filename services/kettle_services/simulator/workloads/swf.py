"""
Traces of batch systems in the Standard Workload Format (Feitelson's Parallel Workloads Archive, version 2.2).

Eighteen numbers a line, of which -1 means that it is not known; comments begin with a semicolon.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from kettle_services.simulator.workloads.workload import Workload

_FIELDS: Final = 18
_NUMBER, _SUBMIT, _RUN, _USED, _MEMORY_USED, _WANTED, _LIMIT, _MEMORY, _USER = 0, 1, 3, 4, 6, 7, 8, 9, 11
_US: Final = 1_000_000
_LISTED: Final = 20
"""Bad lines that are told one by one."""


class BadLine(msgspec.Struct, frozen=True):
    """A line of a trace that is no job."""

    line: int
    why: str


class TraceError(ValueError):
    """The trace has lines that are no jobs, and they are not to be skipped; the message names them."""


class Trace(msgspec.Struct, frozen=True):
    """What was read."""

    workload: Workload
    skipped: tuple[BadLine, ...]


def read_swf(path: Path, *, requested_time: bool = False, skip_bad: bool = False) -> Trace:
    """
    The jobs of a trace, submitted relative to its first one; with `requested_time` a job works as long as it asked for.

    Raises:
        TraceError: lines are no jobs, and `skip_bad` is not set; or no job is left.
        OSError: it cannot be read.
    """
    with path.open(encoding="utf-8", errors="replace") as lines:
        rows, bad = _rows(lines, requested_time=requested_time)
    if bad and not skip_bad:
        listed = "\n".join(f"{path}:{each.line}: {each.why}" for each in bad[:_LISTED])
        more = f"\nand {len(bad) - _LISTED} more" if len(bad) > _LISTED else ""
        raise TraceError(f"{listed}{more}\n--skip-bad leaves them out")
    if not rows:
        raise TraceError(f"{path}: there is no job in it")
    first = min(row[0] for row in rows)
    users = sorted({row[5] for row in rows})
    names = {user: place for place, user in enumerate(users)}
    columns = list(zip(*rows, strict=True))
    workload = Workload(
        submitted=[(at - first) * _US for at in columns[0]],
        work=columns[1],
        cores=1,
        nodes=columns[2],
        limit=columns[3],
        memory=columns[4],
        user=[names[user] for user in columns[5]],
        users=[f"user{user}" if user >= 0 else "unknown" for user in users],
        grid=True,
    )
    return Trace(workload, tuple(bad))


def _rows(
    lines: Iterable[str], *, requested_time: bool
) -> tuple[list[tuple[int, int, int, int, int, int]], list[BadLine]]:
    rows: list[tuple[int, int, int, int, int, int]] = []
    bad: list[BadLine] = []
    seen: set[int] = set()
    for number, line in enumerate(lines, 1):
        text = line.partition(";")[0].split()
        if not text:
            continue
        try:
            fields = [round(float(field)) for field in text]
        except (ValueError, OverflowError):
            bad.append(BadLine(number, "a field is no number"))
            continue
        if why := _wrong(fields, seen):
            bad.append(BadLine(number, why))
            continue
        seen.add(fields[_NUMBER])
        wanted = fields[_WANTED] if fields[_WANTED] > 0 else fields[_USED]
        run, limit = fields[_RUN], max(fields[_LIMIT], 0)
        work = limit if requested_time and limit else max(run, 0)
        memory = max(fields[_MEMORY], 0) // 1024  # KiB a processor
        rows.append((fields[_SUBMIT], work * _US, wanted, limit * _US, memory, fields[_USER]))
    return rows, bad


def _wrong(fields: list[int], seen: set[int]) -> str:
    """Why a line is no job; empty: it is one."""
    if len(fields) != _FIELDS:
        return f"it has {len(fields)} fields, and a job has {_FIELDS}"
    if fields[_NUMBER] in seen:
        return f"there is a job {fields[_NUMBER]} before"
    if fields[_SUBMIT] < 0:
        return "it was never submitted"
    if fields[_RUN] < 0 and fields[_LIMIT] <= 0:
        return "neither its run time nor what it asked for is known"
    if max(fields[_WANTED], fields[_USED]) <= 0:
        return "it has no processors"
    return ""
