"""The tables of condor_q, in the format that people and programs know."""

import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from kettle.client.batches import ATTRIBUTES, Batch, Batches, by_batch
from kettle.client.connections.condor_config import bus_addresses
from kettle.client.connections.pool_file import PoolFile
from kettle.client.jobs.status import status_of
from kettle.terminal.text import visible
from kettle_services.condor.printing.values import Needs, number
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.commands.queue import Unmade

STATUSES: Final = ("completed", "removed", "idle", "running", "held", "suspended")
"""In the order of the last lines."""
LETTERS: Final[Mapping[str, str]] = {
    "idle": "I", "running": "R", "removed": "X", "completed": "C", "held": "H", "suspended": "S",
}  # fmt: skip
OWNER_WIDTH: Final = 14
"""Of the column with the owner, in characters."""
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'")
"""Arguments are kept quoted; a person wants to see the words."""
_BATCH_TITLES: Final = ("OWNER", "BATCH_NAME", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS")

Line = Callable[[Ad, float, Callable[[Ad, float], float]], str]


class JobTable:
    """A line for each job, as they come."""

    def __init__(self, how: str, time_of: str = "wall") -> None:
        """`how`: `jobs`, `run` or `held`.  `time_of`: which time RUN_TIME is, `wall`, `current` or `cpu`."""
        self._title, self._line, attributes = _KINDS[how]
        self._title = self._title.replace("RUN_TIME", "CPU_TIME") if time_of == "cpu" else self._title
        self._time_of: Final = _TIMES[time_of]
        self._now: Final = time.time()
        self.needs: Needs = Needs(attributes, evaluated=False)
        self.totals: bool = how != "run"

    def begin(self) -> Iterable[str]:
        """The titles."""
        return [self._title + "\n"]

    def add(self, ads: Sequence[Ad]) -> Iterator[str]:
        """A line for each."""
        return (visible(self._line(ad, self._now, self._time_of)) + "\n" for ad in ads)

    def end(self, unmade: Sequence[Unmade]) -> Iterable[str]:
        """Jobs that are still to come are no lines."""
        del unmade
        return ()


class BatchTable:
    """A line for each batch: jobs of one person with one JobBatchName, else in one cluster."""

    def __init__(self) -> None:
        self._batches: Final = Batches(by_batch)
        self.needs: Needs = Needs(ATTRIBUTES, evaluated=False)
        self.totals: bool = True

    def begin(self) -> Iterable[str]:
        """Nothing: columns are as wide as what comes last."""
        return ()

    def add(self, ads: Sequence[Ad]) -> Iterable[str]:
        """Counts them."""
        self._batches.add(ads)
        return ()

    def end(self, unmade: Sequence[Unmade]) -> Iterator[str]:
        """All lines."""
        rows = [_batch(batch) for batch in self._batches.rows(unmade)]
        widths = [
            max(len(row[column]) for row in (_BATCH_TITLES, *rows))
            for column in range(len(_BATCH_TITLES) - 1)
        ]
        for row in (_BATCH_TITLES, *rows):
            left, right = row[:2], row[2:-1]
            cells = [cell.ljust(width) for cell, width in zip(left, widths[:2], strict=True)]
            cells += [cell.rjust(width) for cell, width in zip(right, widths[2:], strict=True)]
            yield " ".join([*cells, row[-1]]) + "\n"


class Totals:
    """How many jobs there are, all of them and those of one person."""

    attributes: Final = ("Owner", "JobStatus")

    def __init__(self, person: str) -> None:
        self._person: Final = person
        self._counted: Final[Counter[tuple[Scalar, Scalar]]] = Counter()

    def add(self, ads: Sequence[Ad]) -> None:
        """Some more jobs."""
        self._counted.update((ad.get("Owner", ""), ad.get("JobStatus", 0)) for ad in ads)

    def lines(self) -> Iterator[str]:
        """The last lines of condor_q."""
        everybody, mine = self.counts()
        yield "\n"
        yield total("query", everybody) + "\n"
        yield total(self._person, mine) + "\n"
        if mine.total() != everybody.total():
            yield total("all users", everybody) + "\n"
        yield "\n"

    def counts(self) -> "tuple[Counter[str], Counter[str]]":
        """Of all jobs that were seen, and of those of the person, by status."""
        everybody, mine = Counter[str](), Counter[str]()
        for (owner, status), count in self._counted.items():
            word = status_of({"JobStatus": status})
            everybody[word] += count
            mine[word] += count * (owner == self._person)
        return everybody, mine


def counted(ads: Iterable[Ad]) -> dict[str, int]:
    """How many there are, by status."""
    return Counter(map(status_of, ads))


def head(pool: PoolFile, now: float | None = None) -> str:
    """The line that says whose queue this is."""
    at = time.strftime("%m/%d/%y %H:%M:%S", time.localtime(now))
    address = next(iter(bus_addresses(pool)), "")
    return f"\n\n-- Schedd: {pool.schedd}@{socket.gethostname()} : <{address}> @ {at}"


def total(whose: str, counts: Mapping[str, int]) -> str:
    """How many jobs there are of each status."""
    each = ", ".join(f"{counts.get(status, 0)} {status}" for status in STATUSES)
    return f"Total for {whose}: {sum(counts.values())} jobs; {each} "


def command_line(ad: Ad) -> str:
    """The program's name and its arguments."""
    return f"{PurePath(str(ad.get('Cmd', ''))).name} {arguments(ad)}".strip()


def arguments(ad: Ad) -> str:
    """The job's arguments, for people."""
    words = ad.get("Arguments")
    text = _QUOTED.sub(lambda run: run[1].replace("''", "'"), words) if isinstance(words, str) else ""
    return text or str(ad.get("Args", ""))


def run_time(seconds: float) -> str:
    """Days+hours:minutes:seconds."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days}+{hours:02}:{minutes:02}:{rest:02}"


def moment(seconds: float) -> str:
    """Day and minute, two words."""
    return time.strftime("%m/%d %H:%M", time.localtime(seconds)).removeprefix("0").rjust(11)


def ran(ad: Ad, now: float) -> float:
    """How long a job has run so far, its earlier runs included."""
    return number(ad, "RemoteWallClockTime") + (_since_start(ad, now) or 0.0)


def _ran_last(ad: Ad, now: float) -> float:
    """How long a job has been running now; where it waits, its last run."""
    since = _since_start(ad, now)
    waits = status_of(ad) in {"idle", "held"}
    return since if since is not None else number(ad, "LastRemoteWallClockTime") if waits else 0.0


def _since_start(ad: Ad, now: float) -> float | None:
    start = number(ad, "JobCurrentStartDate")
    return now - start if start and status_of(ad) in {"running", "suspended"} else None


def _used(ad: Ad, _now: float) -> float:
    return number(ad, "RemoteUserCpu")


def beginning(ad: Ad) -> str:
    """The job's id and whose it is."""
    return f"{number(ad, 'ClusterId'):4.0f}.{number(ad, 'ProcId'):<3.0f} {ad.get('Owner', '???')!s:<{OWNER_WIDTH}}"


def _job(ad: Ad, now: float, time_of: Callable[[Ad, float], float]) -> str:
    size = number(ad, "MemoryUsage") or number(ad, "ImageSize") / 1024
    return (
        f"{beginning(ad)} {moment(number(ad, 'QDate'))} {run_time(time_of(ad, now)):>12} {LETTERS[status_of(ad)]:<2} "
        f"{number(ad, 'JobPrio'):<3.0f} {size:<4.1f} {command_line(ad)}"
    )


def _running(ad: Ad, now: float, time_of: Callable[[Ad, float], float]) -> str:
    host = ad.get("RemoteHost", "[????????????????]")
    return f"{beginning(ad)} {moment(number(ad, 'QDate'))} {run_time(time_of(ad, now)):>12} {host}"


def _held(ad: Ad, _now: float, _time_of: Callable[[Ad, float], float]) -> str:
    return f"{beginning(ad)} {moment(number(ad, 'EnteredCurrentStatus'))} {ad.get('HoldReason', '')}"


_LINE: Final = ("ClusterId", "ProcId", "Owner")
_RUN: Final = (
    "QDate", "JobStatus", "RemoteWallClockTime", "JobCurrentStartDate", "LastRemoteWallClockTime", "RemoteUserCpu",
)  # fmt: skip
_TIMES: Final[Mapping[str, Callable[[Ad, float], float]]] = {
    "wall": ran,
    "current": _ran_last,
    "cpu": _used,
}
_COMMAND: Final = ("JobPrio", "Cmd", "Args", "Arguments", "MemoryUsage", "ImageSize")
_KINDS: Final[Mapping[str, tuple[str, Line, Sequence[str]]]] = {
    "jobs": (
        " ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD",
        _job,
        (*_LINE, *_RUN, *_COMMAND),
    ),
    "run": (
        " ID      OWNER            SUBMITTED     RUN_TIME HOST(S)",
        _running,
        (*_LINE, *_RUN, "RemoteHost"),
    ),
    "held": (
        " ID      OWNER          HELD_SINCE  HOLD_REASON",
        _held,
        (*_LINE, "EnteredCurrentStatus", "HoldReason"),
    ),
}


def _batch(batch: Batch) -> tuple[str, ...]:
    figures = (batch.done, batch.running - batch.suspended, batch.waiting, batch.held)
    cells = [str(figure) if figure else "_" for figure in figures]
    return (
        visible(batch.owner),
        visible(batch.name),
        moment(batch.submitted),
        *cells,
        str(batch.total),
        batch.ids,
    )
