"""condor_top: how busy the daemons of the pool are."""

import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.short_lived import ShortLivedClient
from kettle.terminal.text import visible
from kettle_services.condor.arguments.daemon_names import is_host
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError
from kettle_services.condor.printing.queue_table import run_time
from kettle_services.condor.printing.values import number
from kettle_wire.ads.daemon import prefix_of
from kettle_wire.ads.types import Ad

_COLUMNS: Final = ("Daemon", "Machine", "PID", "State", "Duty", "CPU", "Memory", "Up")
_ORDERS: Final = ("duty", "cpu", "memory", "up")
OPTIONS: Final = {
    "attrs": Option(takes=1),
    "c": Option(takes=1),
    "collector": Option(),
    "d": Option(takes=1, also=("delay",)),
    "debug": Option(),
    "l": Option(also=("live",)),
    "master": Option(),
    "n": Option(takes=1, also=("name",)),
    "negotiator": Option(),
    "p": Option(takes=1, also=("pool",)),
    "s": Option(takes=1, also=("sort",)),
    "schedd": Option(),
    "startd": Option(),
}
HELP: Final = {
    "condor_top": """\
usage: condor_top [options]

How busy the daemons of the pool are, the busiest first.  Duty is the share of its time in which a daemon works, as it says of
itself (RecentDaemonCoreDutyCycle; at 95 % and above it does not keep up); CPU, in percent of a core, and Memory, in MiB, are
those of its process between two looks, which only daemons of this machine have.

  -n NAME                only daemons of this name or of this machine
  -master, -schedd, -startd, -collector, -negotiator   only these
  -d SECONDS             between the two looks (1)
  -s COLUMN              in the order of duty (the default), cpu, memory or up
  -l                     again and again, until ^C
  -p P                   of which pool
  -debug                 changes nothing here
""",
}
_ROLES: Final = {
    "collector": "Collector",
    "master": "DaemonMaster",
    "negotiator": "Negotiator",
    "schedd": "Scheduler",
    "startd": "StartDaemon",
}
"""Those that say how busy they are, and of which type their ads are."""
_BUSY: Final = ("Name", "Machine", "RecentDaemonCoreDutyCycle")
_LONGEST_S: Final = 3600.0
_KIB_IN_MIB: Final = 1024
_CLEAR: Final = "\x1b[H\x1b[2J"


class Busy(msgspec.Struct, kw_only=True):
    """A daemon, and how busy it is; None is what nobody says."""

    name: str
    machine: str
    pid: int
    state: str
    since: float
    duty: float | None = None
    cpu: float | None = None
    """Share of a core."""
    memory: float | None = None
    """MiB."""

    @property
    def up(self) -> float:
        """Seconds since it began."""
        return time.time() - self.since if self.since else 0.0


class _Wanted(msgspec.Struct):
    """What was typed."""

    roles: list[str] = []
    name: str = ""
    delay: float = 1.0
    order: str = "duty"
    live: bool = False
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Look twice, and print."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    clear = _CLEAR if wanted.live and sys.stdout.isatty() else ""
    while True:
        found = sorted(_looked(client, wanted), key=lambda one: -(getattr(one, wanted.order) or 0.0))
        sys.stdout.writelines([clear, *(f"{line}\n" for line in table(found))])
        sys.stdout.flush()
        if not wanted.live:
            return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "n":
            wanted.name = given.values[0]
        case "p":
            wanted.pool = given.values[0]
        case "d":
            wanted.delay = _delay(given.values[0])
        case "s":
            wanted.order = given.values[0].lower()
            if wanted.order not in _ORDERS:
                raise WordsError(f"-s {given.values[0]}: it is one of {', '.join(_ORDERS)}")
        case "l":
            wanted.live = True
        case role if role in _ROLES:
            wanted.roles.append(role)
        case "debug":
            pass
        case "":
            raise ToolError("condor_top: ads in files are not compared; without words it looks at the pool")
        case refused:
            raise ToolError(f"condor_top: -{refused} is not carried out: daemons have no such statistics")


def _delay(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _LONGEST_S:
        raise WordsError(f"-d {text}: it is a number of seconds, at most {_LONGEST_S:.0f}")
    return seconds


def _looked(client: ShortLivedClient, wanted: _Wanted) -> list[Busy]:
    found = [one for one in _kept(client) if _meant(one, wanted)]
    here = [one for one in found if one.pid and is_host(one.machine, socket.gethostname())]
    measure(here, wanted.delay)
    _ask(client, found)
    return found


def _meant(one: Busy, wanted: _Wanted) -> bool:
    if wanted.roles and one.name.partition(".")[0] not in wanted.roles:
        return False
    return not wanted.name or wanted.name.lower() == one.name or is_host(wanted.name, one.machine)


def _kept(client: ShortLivedClient) -> Iterator[Busy]:
    """What the masters keep."""
    for master in client.run(lambda pool: pool.ads("DaemonMaster")):
        for said in str(master.get("DaemonList", "")).split(", "):
            name, prefix = said.lower(), prefix_of(said)
            is_master = name == "master"
            state = "Running" if is_master else str(master.get(f"{prefix}_State", "?"))
            yield Busy(
                name=name,
                machine=str(master.get("Machine", "?")),
                pid=int(number(master, "MasterPid" if is_master else f"{prefix}_Pid")),
                state=state,
                since=number(master, f"{prefix}_StartTime") if state != "Off" else 0.0,
            )


def measure(here: Sequence[Busy], delay: float) -> None:
    """Take the time and the memory of processes of this machine, between two looks."""
    from kettle.execution.system.linux import cpu_seconds, resident_kib

    before = [sum(cpu_seconds(one.pid)) for one in here]
    began = time.monotonic()
    time.sleep(delay)
    passed = time.monotonic() - began
    for one, used in zip(here, before, strict=True):
        one.memory = resident_kib(one.pid) / _KIB_IN_MIB
        if one.memory:  # otherwise it ended meanwhile
            one.cpu = max(0.0, sum(cpu_seconds(one.pid)) - used) / passed


def _ask(client: ShortLivedClient, found: Sequence[Busy]) -> None:
    """What daemons say of themselves, as far as an ad can be told to be a daemon's."""
    for role, kind in _ROLES.items():
        those = [one for one in found if one.name.partition(".")[0] == role]
        ads = _of_kind(client, kind) if those else []
        for one in those:
            one.duty = duty_of(one, ads)


def _of_kind(client: ShortLivedClient, kind: str) -> list[Ad]:
    return client.run(lambda pool: pool.ads(kind, projection=_BUSY))


def duty_of(one: Busy, ads: Sequence[Ad]) -> float | None:
    """By its name on its machine, or by the machine if that has one of the role."""
    there = [ad for ad in ads if ad.get("Machine") == one.machine]
    _, _, own = one.name.partition(".")
    mine = [ad for ad in there if own and str(ad.get("Name", "")).lower() == own] or there
    if len(mine) != 1 or "RecentDaemonCoreDutyCycle" not in mine[0]:
        return None
    return number(mine[0], "RecentDaemonCoreDutyCycle")


# -- what is printed -----------------------------------------------------------------------------------------------------


def table(found: Sequence[Busy]) -> Iterator[str]:
    """The titles, and a line for each."""
    rows = [_COLUMNS, *(_row(one) for one in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if at in {0, 1, 3} else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield " ".join(cells).rstrip()


def _row(one: Busy) -> tuple[str, ...]:
    return (
        visible(one.name),
        visible(one.machine),
        str(one.pid or "-"),
        visible(one.state),
        "-" if one.duty is None else f"{one.duty:.1%}",
        "-" if one.cpu is None else f"{one.cpu:.1%}",
        f"{one.memory:.0f}" if one.memory else "-",
        run_time(one.up) if one.since else "-",
    )
