"""The tables of condor_q, in the format that people and programs know."""

import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from kettle.client.batches import Batch, by_batch, grouped
from kettle.client.connections.condor_config import bus_addresses
from kettle.client.connections.pool_file import PoolFile
from kettle.client.jobs.status import status_of
from kettle_services.condor.printing.values import number
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import JobAds

ATTRIBUTES: Final = (
    "ClusterId", "ProcId", "Owner", "QDate", "JobStatus", "JobPrio", "Cmd", "Args", "Arguments", "MemoryUsage",
    "ImageSize", "RemoteWallClockTime", "JobCurrentStartDate", "HoldReason", "EnteredCurrentStatus", "RemoteHost",
    "JobBatchName", "TotalSubmitProcs",
)  # fmt: skip
"""What the tables are made of."""
STATUSES: Final = ("completed", "removed", "idle", "running", "held", "suspended")
"""In the order of the last lines."""
LETTERS: Final[Mapping[str, str]] = {
    "idle": "I", "running": "R", "removed": "X", "completed": "C", "held": "H", "suspended": "S",
}  # fmt: skip
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'")
"""Arguments are kept quoted; a person wants to see the words."""
_BATCH_TITLES: Final = ("OWNER", "BATCH_NAME", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS")

Line = Callable[[Ad, float], str]


def table(found: JobAds, how: str, pool: PoolFile, person: str) -> Iterator[str]:
    """The lines of a table: `batch`, `jobs`, `run` or `held`."""
    now = time.time()
    yield head(pool, now) + "\n"
    if how == "batch":
        yield from _batches(found)
    else:
        title, line = _KINDS[how]
        yield title + "\n"
        yield from (line(ad, now) + "\n" for ad in found.jobs)
    yield "\n"
    counts = _counted(found.jobs)
    yield total("query", counts) + "\n"
    mine = [ad for ad in found.jobs if ad.get("Owner") == person]
    yield total(person, _counted(mine)) + "\n"
    if len(mine) != len(found.jobs):
        yield total("all users", counts) + "\n"
    yield "\n"


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


def _ran(ad: Ad, now: float) -> float:
    ran = number(ad, "RemoteWallClockTime")
    if status_of(ad) in {"running", "suspended"} and (start := number(ad, "JobCurrentStartDate")):
        ran += now - start
    return ran


def beginning(ad: Ad) -> str:
    """The job's id and whose it is."""
    return f"{number(ad, 'ClusterId'):4.0f}.{number(ad, 'ProcId'):<3.0f} {ad.get('Owner', '???')!s:<14}"


def _job(ad: Ad, now: float) -> str:
    size = number(ad, "MemoryUsage") or number(ad, "ImageSize") / 1024
    return (
        f"{beginning(ad)} {moment(number(ad, 'QDate'))} {run_time(_ran(ad, now)):>12} {LETTERS[status_of(ad)]:<2} "
        f"{number(ad, 'JobPrio'):<3.0f} {size:<4.1f} {command_line(ad)}"
    )


def _running(ad: Ad, now: float) -> str:
    host = ad.get("RemoteHost", "[????????????????]")
    return f"{beginning(ad)} {moment(number(ad, 'QDate'))} {run_time(_ran(ad, now)):>12} {host}"


def _held(ad: Ad, _now: float) -> str:
    return f"{beginning(ad)} {moment(number(ad, 'EnteredCurrentStatus'))} {ad.get('HoldReason', '')}"


_KINDS: Final[Mapping[str, tuple[str, Line]]] = {
    "jobs": (" ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD", _job),
    "run": (" ID      OWNER            SUBMITTED     RUN_TIME HOST(S)", _running),
    "held": (" ID      OWNER          HELD_SINCE  HOLD_REASON", _held),
}


def _counted(ads: Sequence[Ad]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for ad in ads:
        status = status_of(ad)
        counts[status] = counts.get(status, 0) + 1
    return counts


def _batches(found: JobAds) -> Iterator[str]:
    """A line for each batch: jobs of one person with one JobBatchName, else in one cluster."""
    rows = [_batch(batch) for batch in grouped(found.jobs, found.unmade, by_batch)]
    widths = [
        max(len(row[column]) for row in (_BATCH_TITLES, *rows)) for column in range(len(_BATCH_TITLES) - 1)
    ]
    for row in (_BATCH_TITLES, *rows):
        left, right = row[:2], row[2:-1]
        cells = [cell.ljust(width) for cell, width in zip(left, widths[:2], strict=True)]
        cells += [cell.rjust(width) for cell, width in zip(right, widths[2:], strict=True)]
        yield " ".join([*cells, row[-1]]) + "\n"


def _batch(batch: Batch) -> tuple[str, ...]:
    figures = (batch.done, batch.running - batch.suspended, batch.waiting, batch.held)
    cells = [str(figure) if figure else "_" for figure in figures]
    return (batch.owner, batch.name, moment(batch.submitted), *cells, str(batch.total), batch.ids)
