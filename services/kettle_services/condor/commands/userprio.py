"""condor_userprio."""

import os
import sys
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.configuration import defaults
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_wire.commands.negotiator import Priorities
from kettle_wire.events.principal import Setting

_SETTINGS: Final[dict[str, tuple[Setting, str]]] = {
    "setprio": ("priority", "The priority of {name} was set to {value:f}"),
    "setfactor": ("factor", "The priority factor of {name} was set to {value:f}"),
    "setaccum": ("accumulated", "The Accumulated Usage of {name} was set to {value:f}"),
    "setbegin": ("begin", "The Begin Usage Time of {name} was set to {value:.0f}"),
    "setlast": ("last", "The Last Usage Time of {name} was set to {value:.0f}"),
    "setfloor": ("floor", "The floor of {name} was set to {value:.0f}"),
    "setceil": ("ceiling", "The ceiling of {name} was set to {value:.0f}"),
}
"""What is set, and the message for it."""
_TABLES: Final = ("all", "most", "priority", "quotas", "usage")
OPTIONS: Final = (
    PRINTING
    | {name: Option(takes=2, also=("setceiling",) if name == "setceil" else ()) for name in _SETTINGS}
    | {name: Option() for name in _TABLES}
    | {
        "activefrom": Option(takes=3),
        "allusers": Option(),
        "collector": Option(),
        "debug": Option(),
        "delete": Option(takes=1),
        "flat": Option(),
        "getreslist": Option(takes=1),
        "grouporder": Option(),
        "grouprollup": Option(),
        "hierarchical": Option(also=("heir",)),
        "inputfile": Option(takes=1),
        "legacy": Option(),
        "modular": Option(),
        "name": Option(takes=1),
        "negotiator": Option(),
        "pool": Option(takes=1),
        "resetall": Option(),
        "resetusage": Option(takes=1),
        "sortkey": Option(),
        "surplus": Option(),
    }
)
HELP: Final = {
    "condor_userprio": f"""\
usage: condor_userprio [options] [USER ...]

How users and accounting groups stand with the accountant: the smaller the effective priority, the larger the share.  Shown are
those who have used the pool within a day, the best first.  Only administrators of the pool may change anything.

  -allusers              everybody who is known
  -activefrom M D Y      those who have used the pool since then
  -priority, -usage, -quotas, -most, -all   which columns (-most)
  -flat                  without accounting groups
  -grouprollup           only accounting groups, each with all that is below it
  -getreslist USER       the slots that a user has
  -setprio USER VALUE    the real priority, at least 0.5
  -setfactor USER VALUE  the priority factor, at least 1
  -setaccum USER VALUE   weighted usage so far, in seconds
  -setbegin, -setlast USER TIME   when usage began, and when it was last, in seconds since 1970
  -setfloor USER VALUE   served first until so much is in use, in slot weights
  -setceil USER VALUE    the most in use at a time, in slot weights; -1: no ceiling
  -resetusage USER       usage so far is nothing
  -resetall              that of everybody
  -delete USER           forget a user: priority, usage, factor
{options.HELP}\
  -pool P                of which pool
  -grouporder, -hierarchical, -modular, -negotiator, -debug   change nothing here
""",
}
_REFUSED: Final = {
    "collector": "the negotiator has the figures, and is asked",
    "inputfile": "there are no offline accountant ads",
    "legacy": "use -long, or -json",
    "sortkey": "it is GroupSortKey in -long",
    "surplus": "use -quotas",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    printing: Printing
    names: list[str] = []
    change: TypedOption | None = None
    table: str = "most"
    allusers: bool = False
    since: float | None = None
    flat: bool = False
    grouprollup: bool = False
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Show, or change."""
    wanted = _Wanted(Printing())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(wanted, given)
    knobs = CondorConfig(os.environ)
    client = client_of(knobs, pool=wanted.pool)
    domain = defaults(knobs)["UID_DOMAIN"]
    if wanted.change is not None:
        if wanted.names:
            raise WordsError(f"say either whom to show ({' '.join(wanted.names)}) or what to change")
        _change(client, wanted.change, domain)
        return 0
    names = [_local(name, domain) for name in wanted.names]
    found = client.run(lambda pool: pool.accountant.priorities(names))
    _show(found, wanted)
    return 0


def _show(found: Priorities, wanted: _Wanted) -> None:
    from kettle_services.condor.printing import priority_table as tables

    if wanted.printing.said:
        ads = tables.ads(found)
        wanted.printing.show(lambda _names: ads)
        return
    since = wanted.since
    if since is None and not (wanted.allusers or wanted.names):
        since = found.at - tables.DAY_S
    rows = tables.rows(found, since=since, flat=wanted.flat, only_groups=wanted.grouprollup)
    sys.stdout.writelines(tables.table(found, rows, wanted.table, since=since))


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            wanted.names.append(given.values[0])
        case name if name in {*_SETTINGS, "resetusage", "resetall", "delete", "getreslist"}:
            if wanted.change is not None:
                raise WordsError(f"-{wanted.change.name} and -{name} are two changes: one at a time")
            wanted.change = given
        case name if name in _TABLES:
            wanted.table = name
        case "allusers" | "flat" | "grouprollup" as name:
            setattr(wanted, name, True)
        case "activefrom":
            wanted.since = _day(given)
        case "pool":
            wanted.pool = given.values[0]
        case refused if refused in _REFUSED:
            raise ToolError(f"condor_userprio: -{refused} is not carried out; {_REFUSED[refused]}")
        case _:
            pass


def _day(given: TypedOption) -> float:
    import time

    try:
        month, day, year = map(int, given.values)
        return time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))
    except (ValueError, OverflowError):
        raise WordsError(
            f"-activefrom takes month, day and year, as in 12 31 2026, not '{' '.join(given.values)}'"
        ) from None


def _local(name: str, domain: str) -> str:
    """A user of this pool has no domain here; one of another pool's has, and keeps it."""
    return name.removesuffix(f"@{domain}")


def _change(client: ShortLivedClient, given: TypedOption, domain: str) -> None:
    """Do it, and say so."""
    name = _local(given.values[0], domain) if given.values else ""
    match given.name:
        case "getreslist":
            sys.stdout.writelines(_resources(client, name))
        case "delete":
            client.run(lambda pool: pool.accountant.delete(name))
            sys.stdout.write(f"The accountant record named {name} was deleted\n")
        case "resetusage" | "resetall":
            client.run(lambda pool: pool.accountant.reset_usage(name or None))
            whose = f"of {name} was reset" if name else "was reset for all users"
            sys.stdout.write(f"The accumulated usage {whose}\n")
        case option:
            setting, said = _SETTINGS[option]
            value = _number(given)
            client.run(lambda pool: pool.accountant.set(name, setting, value))
            sys.stdout.write(said.format(name=name, value=value) + "\n")


def _number(given: TypedOption) -> float:
    try:
        return float(given.values[1])
    except ValueError:
        raise WordsError(f"-{given.name} takes a user and a number, not '{given.values[1]}'") from None


def _resources(client: ShortLivedClient, name: str) -> list[str]:
    from kettle.classad.printing import quoted_string
    from kettle_services.condor.printing.priority_table import resources

    constraint = f"RemoteUser == {quoted_string(name)}"
    names = ["Name", "EnteredCurrentState"]
    found = client.run(lambda pool: pool.ads("Machine", constraint=constraint, projection=names))
    return list(resources(found))
