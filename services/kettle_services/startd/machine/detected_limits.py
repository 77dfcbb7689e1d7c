"""
What the startd may use of the machine, which in a container or a batch system's control group is less than it has.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc/self")
_NO_LIMIT: Final = 2**60
"""Bytes: cgroup v1 writes a number near 2**63 where there is no limit."""


def usable_cpus(proc: Path = PROC) -> int:
    """
    Whole cores that this process and its jobs may keep busy: by affinity and cpuset, and by quota; at least one.
    """
    allowed = len(os.sched_getaffinity(0))  # a cpuset shows in it
    quotas = [quota for place in _places(proc, "cpu") if (quota := _quota(place)) is not None]
    return max(1, int(min([float(allowed), *quotas])))


def usable_memory(proc: Path = PROC) -> int:
    """MiB that this process and its jobs may have together."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [
        limit
        for place in _places(proc, "memory")
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes")
        if (limit := _number(place / name)) is not None and 0 < limit < _NO_LIMIT
    ]
    return min([whole, *limits]) // (1024 * 1024)


def _quota(place: Path) -> float | None:
    """Cores by the quota of one control group."""
    words = _words(place / "cpu.max")
    if len(words) == 2 and words[0].isdecimal() and int(words[1]):
        return int(words[0]) / int(words[1])
    quota, period = _number(place / "cpu.cfs_quota_us"), _number(place / "cpu.cfs_period_us")
    return quota / period if quota is not None and period and quota > 0 else None


def _places(proc: Path, controller: str) -> Iterator[Path]:
    """
    The directories of the control groups whose limits hold for us: our own and all above it, in both versions.
    """
    groups = [line.split(":", 2) for line in _lines(proc / "cgroup") if line.count(":") >= 2]
    for root, mount, kind, options in _mounts(proc):
        for _, controllers, path in groups:
            if kind == "cgroup2" and not controllers:
                ours = True
            else:
                ours = kind == "cgroup" and controller in controllers.split(",") and controller in options
            if ours:
                inside = _below(path, root)
                yield from (mount / part for part in (inside, *inside.parents))


def _below(path: str, root: str) -> Path:
    """
    Where a control group is below what is mounted; what is not below it is that itself, as in a container.
    """
    try:
        return Path(path).relative_to(root)
    except ValueError:
        return Path()


def _mounts(proc: Path) -> Iterator[tuple[str, Path, str, list[str]]]:
    """Root, mount point, kind and options of the mounted control groups."""
    for line in _lines(proc / "mountinfo"):
        fields, _, rest = line.partition(" - ")
        kind, *options = rest.split()
        if kind in {"cgroup", "cgroup2"}:
            root, mount = fields.split()[3:5]
            yield root, Path(mount), kind, options[-1].split(",")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []  # a controller that is not there limits nothing


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()


def _number(path: Path) -> int | None:
    words = _words(path)
    try:
        return int(words[0]) if words else None
    except ValueError:
        return None  # "max"
