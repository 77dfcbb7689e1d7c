"""condor_status."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.short_lived import ShortLivedClient
from kettle.terminal.text import visible_ads
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.arguments.jobs import both, checked
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_services.condor.printing.values import number
from kettle_wire.ads.types import Ad

TYPES: Final = {
    "any": "",
    "collector": "Collector",
    "master": "DaemonMaster",
    "negotiator": "Negotiator",
    "schedd": "Scheduler",
    "startd": "Machine",
    "submitters": "Submitter",
}
"""Of which ads each option speaks."""
OPTIONS: Final = (
    PRINTING
    | {name: Option() for name in TYPES}
    | {
        "absent": Option(),
        "available": Option(),
        "claimed": Option(),
        "compact": Option(),
        "constraint": Option(takes=1, also=("const",)),
        "debug": Option(letters=True),
        "limit": Option(takes=1),
        "name": Option(takes=1),
        "pool": Option(takes=1),
        "server": Option(),
        "statistics": Option(takes=1),
        "total": Option(also=("totals",)),
        "wide": Option(letters=True, also=("w",)),
        "direct": Option(takes=1),
        "run": Option(),
        "state": Option(),
        "subsystem": Option(takes=1),
    }
)
HELP: Final = {
    "condor_status": f"""\
usage: condor_status [options] [NAME ...]

The slots of the pool, all or those of some machines; or the ads of other parts of it.

  -startd, -schedd, -submitters, -master, -collector, -negotiator, -any   of what
  -available, -claimed   slots that nobody uses, or somebody
  -absent                slots of machines that fell silent
  -constraint EXPRESSION those for whose ads it is true
  -limit N               at most so many
  -total                 only how many slots there are
{options.HELP}\
  -pool P                of which pool
  -compact, -statistics, -wide, -debug   change nothing here
""",
}
_STATES: Final = {"available": 'State == "Unclaimed"', "claimed": 'State == "Claimed"'}
_IGNORED: Final = frozenset({"compact", "debug", "server", "statistics", "wide", "run", "state"})
_COUNTED: Final = ("Owner", "Claimed", "Unclaimed", "Matched", "Preempting", "Backfill", "Drained")


class _Wanted(msgspec.Struct):
    """What was typed."""

    printing: Printing
    kind: str = "startd"
    names: list[str] = []
    constraint: str = ""
    absent: bool = False
    total: bool = False
    limit: int = 0
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Show the ads."""
    wanted = _Wanted(Printing())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(wanted, given)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    if wanted.printing.said:
        wanted.printing.show(lambda names: _found(client, wanted, names))
    else:
        sys.stdout.writelines(_table(visible_ads(_found(client, wanted, [])), wanted))
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" | "name":
            wanted.names.append(value)
        case "constraint":
            wanted.constraint = both(wanted.constraint, checked(value))
        case "available" | "claimed" as state:
            wanted.constraint = both(wanted.constraint, _STATES[state])
        case "absent" | "total" as name:
            setattr(wanted, name, True)
        case "limit":
            wanted.limit = whole_number(given)
        case "pool":
            wanted.pool = value
        case kind if kind in TYPES:
            wanted.kind = kind
        case refused if refused not in _IGNORED:
            raise ToolError(f"condor_status: -{refused} is not carried out by this version of Kettle")
        case _:
            pass


def _found(client: ShortLivedClient, wanted: _Wanted, names: list[str]) -> list[Ad]:
    condition = wanted.constraint
    if wanted.names:
        from kettle.classad.printing import quoted_string

        condition = both(
            condition,
            " || ".join(
                f"Name == {quoted_string(each)} || Machine == {quoted_string(each)}" for each in wanted.names
            ),
        )
    if wanted.kind == "startd":
        condition = both(condition, "Absent =?= true" if wanted.absent else "Absent =!= true")
    kind = TYPES[wanted.kind]
    ads = client.run(lambda pool: pool.ads(kind, constraint=condition, projection=names))
    return ads[: wanted.limit] if wanted.limit else ads


def _table(ads: list[Ad], wanted: _Wanted) -> Iterator[str]:
    if wanted.kind == "startd":
        yield from _slots(ads, only_total=wanted.total)
        return
    titles, names = _COLUMNS.get(wanted.kind, _COLUMNS["any"])
    rows = [[_cell(ad, name) for name in names] for ad in ads]
    if rows and not wanted.total:
        yield from _aligned([titles, *rows])


_COLUMNS: Final[dict[str, tuple[list[str], list[str]]]] = {
    "any": (["MyType", "Name"], ["MyType", "Name"]),
    "schedd": (
        ["Name", "Machine", "RunningJobs", "IdleJobs", "HeldJobs"],
        ["Name", "Machine", "TotalRunningJobs", "TotalIdleJobs", "TotalHeldJobs"],
    ),
    "submitters": (
        ["Name", "Schedd", "RunningJobs", "IdleJobs", "HeldJobs"],
        ["Name", "ScheddName", "RunningJobs", "IdleJobs", "HeldJobs"],
    ),
}


def _slots(ads: Sequence[Ad], *, only_total: bool) -> Iterator[str]:
    now = time.time()
    if not ads:
        return
    if not only_total:
        titles = ["Name", "OpSys", "Arch", "State", "Activity", "LoadAv", "Mem", "ActvtyTime"]
        yield from _aligned([titles, *([*_slot(ad, now)] for ad in ads)])
        yield "\n"
    platforms = sorted({_platform(ad) for ad in ads})
    rows = [
        ["", "Total", "Owner", "Claimed", "Unclaimed", "Matched", "Preempting", "Backfill", "Drain"],
        *([name, *_counts(ad for ad in ads if _platform(ad) == name)] for name in platforms),
        ["Total", *_counts(ads)],
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield " ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        if row is not rows[-1]:
            yield "\n" if row is rows[0] or row is rows[-2] else ""


def _slot(ad: Ad, now: float) -> Iterator[str]:
    from kettle_services.condor.printing.queue_table import run_time

    yield from (_cell(ad, name) for name in ("Name", "OpSys", "Arch", "State", "Activity"))
    yield f"{number(ad, 'LoadAvg'):.3f}"
    yield f"{number(ad, 'Memory'):.0f}"
    since = number(ad, "EnteredCurrentActivity") or number(ad, "EnteredCurrentState")
    yield run_time(now - since) if since else "[?????]"


def _platform(ad: Ad) -> str:
    return f"{ad.get('Arch', '?')}/{ad.get('OpSys', '?')}"


def _counts(ads: Iterable[Ad]) -> list[str]:
    states = [str(ad.get("State", "")) for ad in ads]
    return [str(len(states)), *(str(states.count(state)) for state in _COUNTED)]


def _cell(ad: Ad, name: str) -> str:
    return str(ad.get(name, "[???]"))


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Titles, an empty line, rows."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        if row is rows[0]:
            yield "\n"
