"""condor_status."""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.short_lived import ShortLivedClient
from kettle.terminal.text import visible_ads
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.arguments.jobs import both, checked
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import WordsError, do_you_mean
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_services.condor.printing.print_format import Order
from kettle_wire.ads.types import Ad

TYPES: Final = {
    "any": "",
    "collector": "Collector",
    "defrag": "Defrag",
    "master": "DaemonMaster",
    "negotiator": "Negotiator",
    "schedd": "Scheduler",
    "startd": "Machine",
    "submitters": "Submitter",
}
"""Of which ads each option speaks."""
_SUBSYSTEMS: Final = {
    **{name: name for name in TYPES},
    **{kind.lower(): name for name, kind in TYPES.items() if kind},
    "startdaemon": "startds",
}
"""What may stand behind -subsystem and FROM: the options, and types of ads."""
_VIEWS: Final = ("run", "state", "server", "gpus")
"""Other tables of the slots."""
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
        "direct": Option(takes=1),
        "gpus": Option(),
        "limit": Option(takes=1),
        "name": Option(takes=1),
        "pool": Option(takes=1),
        "run": Option(),
        "server": Option(),
        "sort": Option(takes=1),
        "state": Option(),
        "statistics": Option(takes=1),
        "subsystem": Option(takes=1),
        "total": Option(also=("totals",)),
        "wide": Option(letters=True, also=("w",)),
    }
)
HELP: Final = {
    "condor_status": f"""\
usage: condor_status [options] [NAME ...]

The slots of the pool, all or those of some machines; or the ads of other parts of it.  A NAME is that of an ad, of its
machine, as far as its first dot is enough, or DAEMON@MACHINE.

  -startd, -schedd, -submitters, -master, -collector, -negotiator, -defrag, -any   of what
  -subsystem TYPE        the same by name: schedd, Scheduler, StartDaemon, ...
  -direct NAME           only what the daemon of that name or machine says of itself; the collector is asked all the same
  -run                   slots that somebody uses, with user and access point
  -state                 slots with their states and since when
  -server                slots with what they have
  -gpus                  slots with GPUs, and which
  -compact               a line for each machine, also with -run, -state and -server
  -available             slots that nobody uses and that have something to give
  -claimed               slots that somebody uses, as -run shows them
  -absent                slots of machines that fell silent
  -constraint EXPRESSION those for whose ads it is true
  -sort EXPRESSION       in ascending order of its value; may be repeated, the first matters most
  -limit N               at most so many
  -total                 only how many slots there are
{options.HELP}\
  -pool P                of which pool
  -statistics, -wide, -debug   change nothing here
""",
}
_CONDITIONS: Final = {
    "available": 'State == "Unclaimed" && Cpus > 0 && Memory > 0',
    "claimed": 'State == "Claimed"',
    "run": 'State == "Claimed"',
    "gpus": "(GPUs ?: 0) > 0 || (TotalSlotGPUs ?: 0) > 0",
}
_SUMMED: Final = (
    "Arch", "OpSys", "State", "Activity", "Memory", "Disk", "LoadAvg", "Mips", "KFlops", "Name", "RunningJobs", "IdleJobs",
    "HeldJobs", "TotalRunningJobs", "TotalIdleJobs", "TotalHeldJobs",
)  # fmt: skip
"""What the sums below the tables are of."""


class _Wanted(msgspec.Struct):
    """What was typed."""

    printing: Printing
    kind: str = "startd"
    view: str = ""
    looks: list[str] = []
    """Options that choose slots."""
    names: list[str] = []
    constraint: str = ""
    orders: list[Order] = []
    absent: bool = False
    compact: bool = False
    total: bool = False
    limit: int = 0
    pool: str = ""

    @property
    def slots(self) -> bool:
        return self.kind == "startd"

    @property
    def table(self) -> str:
        """By which name the table is known."""
        if not self.slots:
            return self.kind
        if self.absent:
            return "absent"
        rolled = self.compact and self.view != "gpus"
        return f"{self.view or 'startd'}{' compact' * rolled}"


def run(_name: str, words: list[str]) -> int:
    """Show the ads."""
    wanted = _Wanted(Printing())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(wanted, given)
    _heed_format(wanted)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    if wanted.printing.said:
        wanted.printing.show(lambda names: _found(client, wanted, names))
    if not wanted.printing.said or (wanted.printing.layout and wanted.printing.layout.summary):
        sys.stdout.writelines(_table(client, wanted))
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" | "name" | "direct":
            wanted.names.append(value)
        case "constraint":
            wanted.constraint = both(wanted.constraint, checked(value))
        case "sort":
            wanted.orders.append(Order(checked(value)))
        case "absent" | "compact" | "total" as name:
            setattr(wanted, name, True)
        case "limit":
            wanted.limit = whole_number(given)
        case "pool":
            wanted.pool = value
        case "subsystem":
            wanted.kind = _subsystem(value)
        case kind if kind in TYPES:
            wanted.kind = kind
        case view if view in _VIEWS or view in _CONDITIONS:
            _look(wanted, view)
        case _:
            pass


def _subsystem(said: str) -> str:
    kind = _SUBSYSTEMS.get(said.lower())
    if kind is None:
        raise WordsError(f"-subsystem knows no '{said}'{do_you_mean(said.lower(), _SUBSYSTEMS)}")
    return kind


def _look(wanted: _Wanted, view: str) -> None:
    if view in _CONDITIONS:
        wanted.looks.append(view)
    if view != "available":
        wanted.view = "run" if view == "claimed" else view


def _heed_format(wanted: _Wanted) -> None:
    """What a print format says of which ads it is about."""
    if (layout := wanted.printing.layout) is not None:
        wanted.constraint = both(wanted.constraint, layout.where)
        if layout.source:
            wanted.kind, layout.source = _subsystem(layout.source), ""


def _found(client: ShortLivedClient, wanted: _Wanted, names: Sequence[str]) -> list[Ad]:
    """The ads, sorted if that was asked for; all of their attributes if no names are given."""
    kind = TYPES.get(wanted.kind, "StartDaemon")
    projection = list(names)
    if names and wanted.orders:
        from kettle_services.condor.printing.values import names_in

        projection += names_in(order.expression for order in wanted.orders)
    condition = _condition(wanted)
    ads = client.run(lambda pool: pool.ads(kind, constraint=condition, projection=projection))
    if wanted.orders:
        from kettle_services.condor.printing.print_table import in_order

        ads = in_order(ads, wanted.orders)
    return ads[: wanted.limit] if wanted.limit else ads


def _condition(wanted: _Wanted) -> str:
    condition = wanted.constraint
    # Of a machine's slots the line of -compact is about those that others are carved from, which nobody has claimed.
    rolled = wanted.compact and not wanted.printing.said
    for look in wanted.looks:
        if look == "available" or not rolled:
            condition = both(condition, _CONDITIONS[look])
    if wanted.names:
        condition = both(condition, " || ".join(map(named, wanted.names)))
    if wanted.slots:
        condition = both(condition, "Absent =?= true" if wanted.absent else "Absent =!= true")
    return condition


def named(said: str) -> str:
    """Ads of that name or machine, `daemon@machine`, or of a machine by its name up to the first dot."""
    from kettle.classad.printing import quoted_string

    name, machine = said.split("@", 1) if "@" in said else ("", said)
    ways = [f"Name == {quoted_string(said)}"]
    host = f"Machine == {quoted_string(machine)}"
    if "." not in machine:
        host = f'({host} || substr(Machine ?: "", 0, {len(machine) + 1}) == {quoted_string(machine + ".")})'
    ways.append(f"(Name == {quoted_string(name)} && {host})" if name else host)
    return " || ".join(ways)


def _table(client: ShortLivedClient, wanted: _Wanted) -> Iterator[str]:
    """The usual table of these ads and its sums; behind a print format only the sums."""
    from kettle_services.condor.printing.print_format import print_format_of
    from kettle_services.condor.printing.print_table import PrintTable
    from kettle_services.condor.printing.status_tables import TABLES

    table = TABLES[wanted.table]
    layout = print_format_of(table.layout, wanted.table)
    if wanted.orders:
        layout.order = []
    printed = PrintTable(layout)
    ads = visible_ads(printed.ads(lambda names: _found(client, wanted, names), _SUMMED))
    if not ads:
        return
    if not wanted.total and wanted.printing.layout is None:
        for at, line in enumerate(printed.lines(ads)):
            yield line
            yield "\n" if at == 0 else ""
    if table.sums is not None:
        yield from table.sums(ads)
