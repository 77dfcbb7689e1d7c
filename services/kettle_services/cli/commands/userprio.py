"""`kettle userprio`."""

import argparse
from datetime import datetime
from typing import Final

import msgspec

from kettle.client import Client
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.negotiator import Administered, GroupStanding, Priorities, Priority
from kettle_wire.events.principal import Setting

HELP: Final = """\
The priorities of submitters: the one with the smallest effective priority is served first, and has the largest
share.  It is the real priority, which follows the use of the pool with a half-life, times the priority factor.
Where the pool has accounting groups, their quotas come first.
Everybody may read them; only administrators of the pool may change anything.

examples:
  kettle userprio                             all submitters, the best first
  kettle userprio alice physics.bob           these two; a name in an accounting group begins with the group
  kettle userprio '<physics>'                 the group, with all groups below it
  kettle userprio --setfactor alice 100       ten times the share of a submitter with the usual 1000
  kettle userprio --setprio alice 0.5         as if she had used nothing for long
  kettle userprio --setceiling alice 200      at most 200 cores at a time; -1: no ceiling
  kettle userprio --setfloor alice 50         served first, within her share, until she has 50 cores
  kettle userprio --setaccum alice 0          weighted usage so far, in seconds
  kettle userprio --resetusage alice          usage to 0; --resetall: everybody's
  kettle userprio --delete alice              remove her: priority, usage, factor
"""

_SETTINGS: Final[dict[str, tuple[Setting, str]]] = {
    "setprio": ("priority", "real priority, at least 0.5"),
    "setfactor": ("factor", "priority factor, at least 1"),
    "setaccum": ("accumulated", "weighted usage so far, in seconds"),
    "setbegin": ("begin", "when usage began, in seconds since 1970"),
    "setlast": ("last", "when usage was last, in seconds since 1970"),
    "setfloor": ("floor", "served first until this is in use, in slot weights"),
    "setceiling": ("ceiling", "the most in use at a time, in slot weights; -1: as much as there is"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("names", metavar="SUBMITTER", nargs="*", help="only these")
    change = parser.add_argument_group("for administrators").add_mutually_exclusive_group()
    for option, (_, says) in _SETTINGS.items():
        change.add_argument(f"--{option}", nargs=2, metavar=("SUBMITTER", "VALUE"), help=says)
    change.add_argument("--resetusage", metavar="SUBMITTER", help="set usage so far to 0")
    change.add_argument("--resetall", action="store_true", help="everybody's")
    change.add_argument("--delete", metavar="SUBMITTER", help="remove a submitter")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show, or change."""
    chosen = [option for option in (*_SETTINGS, "resetusage", "delete") if getattr(arguments, option)]
    if not chosen and not arguments.resetall:
        names = list(arguments.names)
        show(with_pool(arguments, lambda pool: pool.accountant.priorities(names)), screen)
        return 0
    if arguments.names:
        raise UsageError(f"say either whom to show ({' '.join(arguments.names)}) or what to change")
    option = chosen[0] if chosen else "resetall"
    value = _number(option, arguments.__dict__[option][1]) if option in _SETTINGS else 0.0

    async def work(pool: Client) -> Administered:
        if option in _SETTINGS:
            name, _ = getattr(arguments, option)
            return await pool.accountant.set(name, _SETTINGS[option][0], value)
        if option == "delete":
            return await pool.accountant.delete(arguments.delete)
        return await pool.accountant.reset_usage(arguments.resetusage)

    done = with_pool(arguments, work)
    if screen.as_json:
        screen.json(done)
    else:
        screen.say(_told(option, arguments, done.submitters))
    return 0


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--{option} takes a number, not '{text}': {_SETTINGS[option][1]}") from None


def _told(option: str, arguments: argparse.Namespace, submitters: int) -> str:
    if option in _SETTINGS:
        name, value = getattr(arguments, option)
        return f"The {_SETTINGS[option][0]} of {name} is {value}."
    if option == "delete":
        return f"{arguments.delete} is forgotten."
    return f"The usage of {arguments.resetusage or 'everybody'} is 0 ({submitters} changed)."


def show(found: Priorities, screen: Screen) -> None:
    """A table, or JSON for programs."""
    if screen.as_json:
        screen.json(msgspec.to_builtins(found))
        return
    if found.groups:
        _show_groups(found, screen)
    titles = (
        "SUBMITTER",
        "EFFECTIVE",
        "REAL",
        "FACTOR",
        "IN USE",
        "HOURS",
        "FLOOR",
        "CEILING",
        "SINCE",
        "LAST",
    )
    rows = [_row(each) for each in found.submitters]
    styles = ["running" if each.weight else "" for each in found.submitters]
    screen.table(titles, rows, styles=styles, right=frozenset(titles[1:8]))
    screen.note(
        f"{len(rows)} submitters; HOURS are weighted by SLOT_WEIGHT; half of what was used is forgotten in "
        f"{found.half_life / 3600:g} hours."
    )


def _show_groups(found: Priorities, screen: Screen) -> None:
    titles = (
        "GROUP",
        "SET",
        "QUOTA",
        "SUBTREE",
        "ALLOTTED",
        "IN USE",
        "REQUESTED",
        "SURPLUS",
        "REGROUP",
        "REAL",
        "HOURS",
    )
    rows = [_group_row(each) for each in found.groups]
    styles = ["running" if each.used else "" for each in found.groups]
    screen.table(titles, rows, styles=styles, right=frozenset({*titles[1:7], *titles[9:]}))


def _group_row(one: GroupStanding) -> tuple[str | float, ...]:
    standing = one.standing
    return (
        one.name,
        f"{one.config_quota:.0%}" if one.dynamic else f"{one.config_quota:g}" if one.config_quota else "-",
        f"{one.quota:g}",
        f"{one.subtree_quota:g}",
        f"{one.allotted:g}",
        f"{one.used:g}",
        f"{one.requested:g}",
        "yes" if one.accept_surplus else "no",
        "yes" if one.autoregroup else "no",
        standing.priority if standing is not None else "-",
        standing.weighted_accumulated / 3600 if standing is not None else "-",
    )


def _row(one: Priority) -> tuple[str | float, ...]:
    return (
        one.name,
        one.effective,
        one.priority,
        f"{one.factor:g}",
        f"{one.weight:g}",
        one.weighted_accumulated / 3600,
        f"{one.floor:g}" if one.floor else "-",
        f"{one.ceiling:g}" if one.ceiling >= 0 else "-",
        _when(one.begun),
        "now" if one.weight else _when(one.last),
    )


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}" if at else "never"
