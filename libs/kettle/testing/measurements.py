"""
What the programs that measure have in common: medians with their range, processor time, progress away from the figures.
"""

import os
import statistics
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CPUACCT: Final = Path("/sys/fs/cgroup/cpuacct")
_REMOVE_TRIES: Final = 100
_REMOVE_PAUSE_S: Final = 0.02


def say(text: str) -> None:
    """Progress, on the standard error."""
    sys.stderr.write(f"{text}\n")


def summary(values: Iterable[float], digits: int = 3) -> dict[str, Any]:
    """Median, range and number of the values."""
    sample = sorted(values)
    return {
        "median": round(statistics.median(sample), digits),
        "min": round(sample[0], digits),
        "max": round(sample[-1], digits),
        "n": len(sample),
    }


def barred(
    figures: dict[str, Any], *, at_most: Mapping[str, float] = {}, at_least: Mapping[str, float] = {}
) -> dict[str, Any]:
    """Summaries of figures, with what is demanded of them beside them, and whether their medians are so."""
    told = {name: dict(figure) for name, figure in figures.items()}
    for name, bar in at_most.items():
        told[name] |= {"at_most": bar, "met": told[name]["median"] <= bar}
    for name, bar in at_least.items():
        told[name] |= {"at_least": bar, "met": told[name]["median"] >= bar}
    return told


def processor_seconds(pid: int, *, ended_children: bool = False) -> float:
    """
    What a process has used of the processors so far, by user and system; if asked for, with its children that ended.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if ended_children else 13])) / _TICKS


def parent(pid: int) -> int:
    """The process that has started a process; 0: it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def below(pid: int) -> list[int]:
    """
    The processes that a process has started, those that they have started, and so on, as far as they live.
    """
    numbers = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
    parents = {each: parent(each) for each in numbers}
    found = {pid}
    while more := {each for each, one in parents.items() if one in found} - found:
        found |= more
    return sorted(found - {pid})


def busy_seconds() -> float:
    """Processor time of the whole computer so far, used by all processes."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _, _, irq, softirq = map(int, fields[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def proportional_kib(pid: int) -> int:
    """The memory of a process, shared pages divided among those who share them, KiB; 0: it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


@contextmanager
def accounted() -> Generator[Path | None]:
    """
    A control group for all that this process starts, where its processor time is counted; None: there can be none here.
    """
    group = _CPUACCT / f"kettle-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text("0")
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        (_CPUACCT / "cgroup.procs").write_text("0")
        for _ in range(_REMOVE_TRIES):  # the kernel takes a moment to forget those that ended
            try:
                group.rmdir()
            except OSError:
                time.sleep(_REMOVE_PAUSE_S)
            else:
                break


def group_seconds(group: Path) -> float:
    """What everything that was ever in the group has used of the processors."""
    return int((group / "cpuacct.usage").read_text()) / 1e9
