"""`kettle status`: what the pool consists of and does."""

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.client import Client, PoolUnreachableError, home_directory
from kettle.terminal.quantities import counted, run_time, size
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import attributes_of, attributes_option, json_option, pool_options, with_pool
from kettle_services.cli.output.ads_as_json import plain
from kettle_services.cli.output.screen import Cell, Screen
from kettle_services.cli.tables.attributes import show_attributes, show_long
from kettle_services.cli.tables.daemons import show_masters
from kettle_services.cli.tables.jobs import number
from kettle_wire.ads.types import Ad

HELP: Final = """\
What the pool consists of and does: the services of this machine's pool, the machines with their slots, the jobs.

examples:
  kettle status
  kettle status --slots             every slot, dynamic ones too
  kettle status --absent            the slots of machines that are silent and expected back, and silent entrypoints of a registry
  kettle status --master            the daemons of every host, by the ads of their masters
  kettle status --ads Scheduler     the ads of one type as they are: Machine, Scheduler, Submitter, Negotiator, ...
  kettle status --attributes Name,Cpus,Memory,State
  kettle status --pool physics      only what the pool physics forwards here
  kettle status --json
"""

_SLOT_TITLES: Final = ("NAME", "STATE", "ACTIVITY", "CPUS", "MEMORY", "DISK", "IN STATE", "PLATFORM")
"""What one needs least stands last: a narrow terminal cuts it off."""
_GPUS_AT: Final = 4
"""Where GPUs stand in a pool that has some: behind the cores."""
_SOURCE: Final = "ForwardedFrom"
_POOL: Final = re.compile(r"[A-Za-z0-9_.-]+")
_RIGHT: Final = frozenset(
    {"CPUS", "GPUS", "MEMORY", "DISK", "IN STATE", "PID", "UPTIME", "STARTS", "SILENT FOR"}
)
_STYLES: Final = {
    "running": "good",
    "starting": "idle",
    "waiting": "bad",
    "stopping": "idle",
    "off": "dim",
    "left": "dim",
}
_SLOT_STYLES: Final = {"claimed": "running", "unclaimed": "", "drained": "idle", "owner": "dim"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--slots", action="store_true", help="every slot, dynamic ones too")
    parser.add_argument("--absent", action="store_true", help="what is silent and expected back")
    parser.add_argument("--master", action="store_true", help="the daemons of every host")
    parser.add_argument("--ads", metavar="TYPE", help="the ads of this type, whole")
    attributes_option(parser, "slot, or ad of that type,")
    parser.add_argument("--constraint", default="", metavar="EXPR", help="only ads for which this is true")
    parser.add_argument("--pool", default="", metavar="NAME", help="only what this pool forwards here")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show it."""
    wanted = _constraint(arguments.pool, arguments.constraint)
    names = attributes_of(arguments)
    if arguments.ads or names:
        kind = arguments.ads or ("DaemonMaster" if arguments.master else "Machine")
        ads = with_pool(
            arguments, lambda pool: pool.ads(kind, constraint=wanted, projection=names, forwarded=True)
        )
        _show_ads(ads, names, screen)
        return 0
    if arguments.master:
        foreign = bool(arguments.pool)
        ads = with_pool(
            arguments, lambda pool: pool.ads("DaemonMaster", constraint=wanted, forwarded=foreign)
        )
        show_masters(ads, screen)
        return 0
    local = _local(arguments.home)

    async def ask(pool: Client) -> tuple[str, list[Ad]]:
        return pool.pool.pool, await pool.ads(constraint=wanted, forwarded=True)

    try:
        name, ads = with_pool(arguments, ask)
    except PoolUnreachableError:
        if local is not None and not screen.as_json:
            _show_services(local, screen)
        raise
    if screen.as_json:
        screen.json({"pool": name, "master": msgspec.to_builtins(local), "ads": [plain(ad) for ad in ads]})
        return 0
    if local is None:
        screen.say(screen.paint(f"Pool {name}.", "strong"))
    else:
        _show_services(local, screen)
    _show_pool(ads, screen, absent=arguments.absent, every=arguments.slots)
    return 0


def _show_pool(ads: list[Ad], screen: Screen, *, absent: bool, every: bool) -> None:
    """The machines and the jobs; `absent`: what is silent instead, `every`: dynamic slots too."""
    silent = [ad for ad in ads if ad.get("Absent") is True]
    there = [ad for ad in ads if ad.get("Absent") is not True]
    slots, schedds = _of_type(silent, "Machine"), _of_type(silent, "Scheduler")
    if absent:
        if slots or not schedds:
            _show_absent(slots, screen)
        _show_silent(schedds, screen)
        return
    _show_slots(_of_type(there, "Machine"), screen, every=every)
    for some, what in ((slots, "slot"), (schedds, "access point")):
        if some:
            screen.say(f"{counted(len(some), what)} absent; see them with: kettle status --absent")
    _show_jobs(_of_type(there, "Scheduler"), screen)


def _of_type(ads: list[Ad], kind: str) -> list[Ad]:
    return [ad for ad in ads if ad.get("MyType") == kind]


def _constraint(pool: str, constraint: str) -> str:
    if not pool:
        return constraint
    if not _POOL.fullmatch(pool):
        raise UsageError(f"'{pool}' is no name of a pool that forwards its ads: letters, digits, -, _ and .")
    own = f'{_SOURCE} =?= "{pool}"'
    return f"{own} && ({constraint})" if constraint.strip() else own


def _local(home: Path | None) -> Any:
    """The roster of the master of this machine's pool; None if there is none here."""
    from kettle.pool import PoolError, state

    try:
        return state(home or home_directory())
    except PoolError:
        return None


def _show_ads(ads: Sequence[Ad], names: Sequence[str], screen: Screen) -> None:
    if screen.as_json:
        screen.json([plain(ad) for ad in ads])
    elif names:
        show_attributes(ads, names, screen)
    else:
        show_long(ads, screen)


def _show_services(master: Any, screen: Screen) -> None:
    now = time.time()
    up = run_time(now - master.started)
    state = "is up" if master.ready else "is starting"
    screen.say(
        screen.paint(
            f"Pool {master.pool} {state} on this machine since {up} (master: process {master.pid}).", "strong"
        )
    )
    rows: list[Sequence[Cell]] = [
        (
            daemon.name,
            daemon.status,
            daemon.pid or "-",
            run_time(now - daemon.since) if daemon.since else "-",
            daemon.starts,
            daemon.last_exit,
        )
        for daemon in master.daemons
    ]
    styles = [_STYLES.get(daemon.status, "") for daemon in master.daemons]
    screen.say()
    screen.table(
        ("SERVICE", "STATUS", "PID", "UPTIME", "STARTS", "LAST EXIT"), rows, styles=styles, right=_RIGHT
    )


def _show_slots(ads: list[Ad], screen: Screen, *, every: bool) -> None:
    screen.say()
    if not ads:
        screen.say("No machine has joined the pool.")
        return
    now = time.time()
    shown = ads if every else [ad for ad in ads if ad.get("SlotType") != "Dynamic"]
    dynamic = Counter(str(ad.get("Machine", "")) for ad in ads if ad.get("SlotType") == "Dynamic")
    styles = [_SLOT_STYLES.get(str(ad.get("State", "")).lower(), "") for ad in shown]
    titles: list[str] = list(_SLOT_TITLES)
    rows = [_slot(ad, now) for ad in shown]
    if any("TotalGPUs" in ad for ad in shown):
        titles.insert(_GPUS_AT, "GPUS")
        for row, ad in zip(rows, shown, strict=True):
            row.insert(_GPUS_AT, _of(ad, "GPUs", "TotalSlotGPUs", _plain_number))
    if any(_SOURCE in ad for ad in shown):
        titles.insert(1, "POOL")
        for row, ad in zip(rows, shown, strict=True):
            row.insert(1, str(ad.get(_SOURCE, "-")))
    screen.table(titles, rows, styles=styles, right=_RIGHT)
    _show_troubles(ads, screen)
    if dynamic and not every:
        screen.say(
            f"{counted(dynamic.total(), 'dynamic slot')} carved out of these; see them with: kettle status --slots"
        )


def _show_troubles(ads: list[Ad], screen: Screen) -> None:
    """Which machines take no jobs although nobody forbids it, and what else is wrong with what they have."""
    told: dict[str, None] = {}
    for ad in ads:
        name = ad.get("Machine", "?")
        if trouble := ad.get("Trouble"):
            told[f"{name} takes no jobs: {trouble}."] = None
        elif failed := ad.get("ProbesFailed"):
            told[f"{name}: {failed}."] = None
    for sentence in told:
        screen.note(sentence)


def _show_absent(ads: list[Ad], screen: Screen) -> None:
    screen.say()
    if not ads:
        screen.say("No slot is absent: none that KETTLE_COLLECTOR_ABSENT_REQUIREMENTS keeps fell silent.")
        return
    now = time.time()
    rows = [
        [str(ad.get("Name", "?")), run_time(now - number(ad, "LastHeardFrom")), *_slot(ad, now)[3:6]]
        for ad in ads
    ]
    screen.table(("NAME", "SILENT FOR", "CPUS", "MEMORY", "DISK"), rows, right=_RIGHT)


def _show_silent(ads: list[Ad], screen: Screen) -> None:
    """Access points that a registry does not hear of any more."""
    if not ads:
        return
    screen.say()
    now = time.time()
    rows: list[Sequence[Cell]] = [
        [
            str(ad.get("Name", "?")),
            str(ad.get(_SOURCE, "-")),
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(number(ad, "LastHeardFrom"))),
            run_time(now - number(ad, "LastHeardFrom")),
        ]
        for ad in ads
    ]
    screen.table(("ACCESS POINT", "POOL", "LAST HEARD", "SILENT FOR"), rows, right=_RIGHT)


def _slot(ad: Ad, now: float) -> list[Cell]:
    since = number(ad, "EnteredCurrentState")
    return [
        str(ad.get("Name", "?")),
        "Offline" if ad.get("Offline") is True else str(ad.get("State", "?")),
        str(ad.get("KettlePower") or ad.get("Activity", "?")),
        _of(ad, "Cpus", "TotalSlotCpus", _plain_number),
        _of(ad, "Memory", "TotalSlotMemory", _mebibytes),
        size(number(ad, "Disk")),
        run_time(now - since) if since else "-",
        f"{ad.get('Arch', '?')}/{ad.get('OpSys', '?')}",
    ]


def _of(ad: Ad, free: str, total: str, text: Callable[[float], str]) -> str:
    """What is left of what a partitionable slot has."""
    left, whole = number(ad, free), number(ad, total)
    if ad.get("SlotType") != "Partitionable" or not whole:
        return text(left)
    amount, unit = text(whole).partition(" ")[::2]
    return f"{text(left).removesuffix(f' {unit}')}/{amount}{f' {unit}' if unit else ''} free"


def _plain_number(number: float) -> str:
    return f"{number:g}"


def _mebibytes(mib: float) -> str:
    return size(mib * 1024)


def _show_jobs(ads: list[Ad], screen: Screen) -> None:
    screen.say()
    for ad in ads:
        counts = ", ".join(
            f"{int(number(ad, f'Total{status}Jobs'))} {status.lower()}"
            for status in ("Idle", "Running", "Held")
        )
        pool = f" of {ad[_SOURCE]}" if _SOURCE in ad else ""
        screen.say(f"Jobs at {ad.get('Name', '?')}{pool}: {counts}.")
    if not ads:
        screen.say("No schedd answers for jobs at the moment.")
