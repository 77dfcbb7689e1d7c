"""condor_userlog: how long jobs ran where, and to what use, by their job event logs."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.errors import ToolError, WordsError

if TYPE_CHECKING:
    from kettle.userlog import LogEvent
    from kettle.userlog.events import CpuTimes

OPTIONS: Final = {
    "all": Option(),
    "debug": Option(),
    "evict": Option(),
    "hostname": Option(),
    "j": Option(takes=1),
    "raw": Option(),
    "total": Option(),
}
HELP: Final = {
    "condor_userlog": """\
usage: condor_userlog [options] LOG ...

Of each time that a job had a machine, by job event logs: where, from when to when, how long (Wall Time), how much of that
led to its end (Good Time), and the processor time; then the sums by host, by job and of all.  Times are days+hours:minutes.

  -total                 only the sums
  -raw                   only the times
  -j CLUSTER[.PROC]      only of this cluster or job
  -evict                 only times that ended before the job did
  -hostname              hosts by their names, not by their addresses
  -all, -debug           change nothing here
""",
}
_ID: Final = re.compile(r"(\d+)(?:\.(\d+))?")
_ADDRESS: Final = re.compile(r"<([^:?>]*)")
_ALIAS: Final = re.compile(r"[?&]alias=([^&>]*)")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class Allocation(msgspec.Struct, frozen=True):
    """One time that a job had a machine; times in seconds."""

    job: str
    host: str
    began: float
    ended: float
    good: float
    cpu: int
    evicted: bool

    @property
    def wall(self) -> float:
        """How long."""
        return self.ended - self.began


class _Wanted(msgspec.Struct):
    """What was typed."""

    logs: list[str] = []
    job: tuple[int, int | None] | None = None
    total: bool = False
    raw: bool = False
    evict: bool = False
    hostname: bool = False


def run(_name: str, words: list[str]) -> int:
    """Print the times and their sums; 1 if a log cannot be read."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    if not wanted.logs:
        raise WordsError("which log?  Write the name of a job event log")
    if wanted.total and wanted.raw:
        raise WordsError("-total and -raw together leave nothing")
    found = [
        each
        for log in wanted.logs
        for each in allocations(_events(log), hostname=wanted.hostname)
        if _meant(wanted, each)
    ]
    sys.stdout.writelines(_report(found, wanted))
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            wanted.logs.append(given.values[0])
        case "j":
            match = _ID.fullmatch(given.values[0])
            if match is None:
                raise WordsError(f"'{given.values[0]}' is not the id of a job: write CLUSTER or CLUSTER.PROC")
            wanted.job = (int(match[1]), int(match[2]) if match[2] is not None else None)
        case "total" | "raw" | "evict" | "hostname" as name:
            setattr(wanted, name, True)
        case _:
            pass


def _meant(wanted: _Wanted, each: Allocation) -> bool:
    if wanted.evict and not each.evicted:
        return False
    if wanted.job is None:
        return True
    cluster, _, proc = each.job.partition(".")
    return int(cluster) == wanted.job[0] and wanted.job[1] in {None, int(proc)}


def _events(log: str) -> "list[LogEvent]":
    from kettle.userlog import UserLogFormatError, parse

    try:
        return parse(Path(log).read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise ToolError(f"Can't access file: {log}: {error.strerror}") from error
    except UserLogFormatError as error:
        raise ToolError(f"{log} cannot be read: {error}") from error


def allocations(events: "Sequence[LogEvent]", *, hostname: bool = False) -> Iterator[Allocation]:
    """
    The times that jobs had machines; one that has not ended yet is none.

    Time counts as good if the job ended in it, or had saved what it had done.
    """
    from kettle.userlog import Aborted, Evicted, Executing, Held, ReconnectFailed, Terminated

    begun: dict[str, Executing] = {}
    for event in events:
        job = f"{event.job.cluster}.{event.job.proc}"
        if isinstance(event, Executing):
            begun[job] = event
            continue
        if not isinstance(event, Terminated | Evicted | Aborted | Held | ReconnectFailed):
            continue
        start = begun.pop(job, None)
        if start is None or event.at < start.at:
            continue
        wall, good, cpu = event.at - start.at, 0.0, 0
        if isinstance(event, Terminated):
            good, cpu = wall, _seconds(event.run_remote)
        elif isinstance(event, Evicted):
            good, cpu = (wall if event.checkpointed else 0.0), _seconds(event.remote)
        yield Allocation(
            job=job,
            host=_host(start, hostname=hostname),
            began=start.at,
            ended=event.at,
            good=good,
            cpu=cpu if good else 0,
            evicted=not isinstance(event, Terminated),
        )


def _seconds(times: "CpuTimes") -> int:
    return times.user + times.system


def _host(event: "LogEvent", *, hostname: bool) -> str:
    text, slot = str(getattr(event, "host", "")), str(getattr(event, "slot", ""))
    address, alias = _ADDRESS.search(text), _ALIAS.search(text)
    named = slot.rpartition("@")[2] or (alias[1] if alias else "")
    found = address[1] if address else text
    return (named or found) if hostname else (found or named)


# -- what is printed -----------------------------------------------------------------------------------------------------


def _report(found: Sequence[Allocation], wanted: _Wanted) -> Iterator[str]:
    if not wanted.total:
        yield from _times(found)
    if not wanted.raw:
        yield "\n"
        yield from _sums(found)


def _times(found: Sequence[Allocation]) -> Iterator[str]:
    from kettle_services.condor.printing.queue_table import moment

    yield f"\n{'Job':<8} {'Host':<15} {'Start Time':<11} {'Evict Time':<11} {'Wall Time':>9} {'Good Time':>9} {'CPU Usage':>9}\n"
    for each in found:
        figures = " ".join(f"{_span(value):>9}" for value in (each.wall, each.good, each.cpu))
        yield f"{each.job:<8.8} {each.host:<15.15} {moment(each.began):>11} {moment(each.ended):>11} {figures}\n"


def _sums(found: Sequence[Allocation]) -> Iterator[str]:
    yield (
        f"{'Host/Job':<15} {'Wall Time':>9} {'Good Time':>9} {'CPU Usage':>9} {'Avg Alloc':>9} {'Avg Lost':>9} "
        f"{'Goodput':>7} {'Util.':>6}\n\n"
    )
    for key in ("host", "job"):
        groups: dict[str, list[Allocation]] = {}
        for each in found:
            groups.setdefault(getattr(each, key), []).append(each)
        for name in sorted(
            groups,
            key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)],
        ):
            yield _sum(name, groups[name])
        yield "\n"
    yield _sum("Total", found)


def _sum(name: str, found: Sequence[Allocation]) -> str:
    wall, good, cpu = (sum(getattr(each, field) for each in found) for field in ("wall", "good", "cpu"))
    evicted = sum(each.evicted for each in found)
    figures = (wall, good, cpu, wall / len(found) if found else 0, (wall - good) / evicted if evicted else 0)
    return (
        f"{name:<15.15} {' '.join(f'{_span(figure):>9}' for figure in figures)} "
        f"{100 * good / wall if wall else 0:6.1f}% {100 * cpu / good if good else 0:5.1f}%\n"
    )


def _span(seconds: float) -> str:
    """Days+hours:minutes."""
    whole = int(seconds)
    return f"{whole // _DAY}+{whole % _DAY // _HOUR:02}:{whole % _HOUR // _MINUTE:02}"
