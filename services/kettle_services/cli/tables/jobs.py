"""Job ads as rows of a table."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from kettle.client.jobs.status import id_of, status_of
from kettle.terminal.quantities import clock, run_time
from kettle_services.cli.output.screen import Cell
from kettle_wire.ads.types import Ad

QUEUE_TITLES: Final = ("ID", "OWNER", "SUBMITTED", "RUN_TIME", "ST", "PRI", "SIZE", "CMD")
QUEUE_ATTRIBUTES: Final = (
    "ClusterId", "ProcId", "Owner", "QDate", "JobStatus", "JobPrio", "Cmd", "Args", "Arguments", "MemoryUsage",
    "ImageSize", "RemoteWallClockTime", "JobCurrentStartDate", "HoldReason",
    "EnteredCurrentStatus",
)  # fmt: skip
HELD_TITLES: Final = ("ID", "OWNER", "HELD_SINCE", "HOLD_REASON")
HISTORY_TITLES: Final = ("ID", "OWNER", "SUBMITTED", "RUN_TIME", "ST", "ENDED", "EXIT", "CMD")
RIGHT: Final = frozenset({"ID", "RUN_TIME", "PRI", "SIZE", "EXIT"})

# Arguments are kept quoted; a person wants to see the words, and the whole language of them would take long to load.
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'")
_LETTERS: Final = {
    "idle": "I",
    "running": "R",
    "removed": "X",
    "completed": "C",
    "held": "H",
    "suspended": "S",
}
TOTALS: Final = ("completed", "removed", "idle", "running", "held", "suspended")


def queue_row(ad: Ad, now: float) -> list[Cell]:
    """A job as `condor_q -nobatch` shows it."""
    ran = number(ad, "RemoteWallClockTime")
    if status_of(ad) in {"running", "suspended"} and (start := number(ad, "JobCurrentStartDate")):
        ran += now - start
    return [
        str(id_of(ad)),
        str(ad.get("Owner", "?")),
        clock(number(ad, "QDate")),
        run_time(ran),
        _LETTERS[status_of(ad)],
        int(number(ad, "JobPrio")),
        f"{number(ad, 'MemoryUsage') or number(ad, 'ImageSize') / 1024:.1f}",
        command_line(ad),
    ]


def held_row(ad: Ad) -> list[Cell]:
    """A held job as `condor_q -hold` shows it."""
    return [
        str(id_of(ad)),
        str(ad.get("Owner", "?")),
        clock(number(ad, "EnteredCurrentStatus")),
        str(ad.get("HoldReason", "")),
    ]


def history_row(ad: Ad) -> list[Cell]:
    """A job that has left the queue."""
    ended = number(ad, "CompletionDate") or number(ad, "EnteredCurrentStatus")
    return [
        str(id_of(ad)),
        str(ad.get("Owner", "?")),
        clock(number(ad, "QDate")),
        run_time(number(ad, "RemoteWallClockTime")),
        _LETTERS[status_of(ad)],
        clock(ended) if ended else "",
        exit_text(ad),
        command_line(ad),
    ]


def exit_text(ad: Ad) -> str:
    """How a job ended, if it ended by itself."""
    if isinstance(ad.get("ExitSignal"), int):
        return f"signal {ad['ExitSignal']}"
    code = ad.get("ExitCode")
    return str(code) if isinstance(code, int) and status_of(ad) == "completed" else ""


def command_line(ad: Ad) -> str:
    """The program's name and its arguments."""
    words = ad.get("Arguments")
    text = _QUOTED.sub(lambda run: run[1].replace("''", "'"), words) if isinstance(words, str) else ""
    return f"{PurePath(str(ad.get('Cmd', ''))).name} {text or ad.get('Args', '')}".strip()


def total_line(counts: Mapping[str, int]) -> str:
    """The last line of `condor_q`, of the number of jobs of each status."""
    each = ", ".join(f"{counts.get(status, 0)} {status}" for status in TOTALS)
    return f"Total for query: {sum(counts.values())} jobs; {each}"


def number(ad: Ad, name: str) -> float:
    """A numeric attribute, 0 if it is something else."""
    value = ad.get(name, 0)
    return value if isinstance(value, int | float) else 0.0
