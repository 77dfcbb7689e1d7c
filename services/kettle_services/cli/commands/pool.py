"""`kettle pool`: pools of workers that come when work waits and go when it is done."""

import argparse
import importlib
from collections.abc import Callable
from typing import Final

from kettle_services.cli.options import json_option, reach_options
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import moment_argument, span_up_to

HELP: Final = """\
Pools of workers: machines that come when jobs wait for them, and go when they are idle.  A pool file says which machines a
provider may make, how many, and what they cost; an administrator applies it, and everybody may look.

examples:
  kettle pool example > cloud.toml       a file to begin with
  kettle pool check cloud.toml           all that is wrong in it, and what its providers say; nothing is made
  kettle pool apply cloud.toml           have it be so; once more after each change
  kettle pool list                       the pools, and how many machines they have
  kettle pool explain cloud              why there are so many, and no more
  kettle pool leases cloud               its machines, each with its next deadline
  kettle pool pause cloud --reason 'the provider is maintained'

kettle pool COMMAND --help explains each.
"""

_EXAMPLE: Final = "Print a pool file with everything explained, to begin with."
_APPLY: Final = """\
Have a pool be as its file says.  It is recorded who applied it; the same again changes nothing.  Machines that are there stay,
with the offer that they were made from.

examples:
  kettle pool apply cloud.toml
"""
_CHECK: Final = """\
All that is wrong with a pool file, with file and line; then its providers are asked whether they could make such machines, by
the scaler and without making any.

Exit status: 0 nothing is wrong; 1 something is; 2 a mistake in what was typed.

examples:
  kettle pool check cloud.toml
  kettle pool check --offline cloud.toml      only the file
"""
_DIFF: Final = """\
What applying a file would change.  Exit status: 0 nothing; 1 something, or the file is wrong.

examples:
  kettle pool diff cloud.toml
"""
_SHOW: Final = """\
A pool: what it may have and has, and how each of its offers does: whether it is open, what its provider said, how long its machines
take to come, and which part of the orders is expected to work.  Of a static pool that hibernates also each machine: awake, asleep,
being woken until when, or broken and why.

examples:
  kettle pool show cloud
"""
_EXPLAIN: Final = """\
The last plan: the jobs that wait, by kind, and what is done for them; for each offer how many machines are ordered and what bound
their number; what is the matter with each offer for jobs that get none; and which machines are to go, and why.

examples:
  kettle pool explain cloud
  kettle pool explain cloud --job 12.3     only what concerns this job
  kettle pool explain cloud --dry-run      a plan of what waits now, which is not carried out
  kettle pool explain cloud --at 14:30     the plan that was in force then
"""
_PAUSE: Final = """\
Make no more machines for a pool until kettle pool resume; those that are there go on.  Jobs that wait are told so by kettle why.
"""
_RESUME: Final = """\
Let a pool have machines again, and try at once what is closed after failures: its offers, their templates and
providers, and machines that did not wake.
"""
_DRAIN: Final = """\
Have the machines of a pool go when their jobs have ended, and make no more until kettle pool resume; or have one machine go, by
its lease.

examples:
  kettle pool drain cloud
  kettle pool drain --lease cloud-17-3           one machine
  kettle pool drain --lease cloud-17-3 --force   with what runs on it, which runs again elsewhere
"""
_RETIRE: Final = """\
Give a pool up: its machines go when their jobs have ended, and none comes.  Applying its file again begins it again.
"""
_LEASES: Final = """\
The machines of a pool, or of all: how far each is, and until when something happens or is done about it.

examples:
  kettle pool leases
  kettle pool leases cloud --state in-doubt
  kettle pool leases cloud --state gone --state failed      those that are over
"""
_LEASE: Final = """\
What happened to one machine, from the plan that asked for it to the proof that it is gone.

examples:
  kettle pool lease cloud-17-3
  kettle pool lease cloud-17-3 --console      what it wrote while it started, as its provider has it
"""
_ORDER: Final = """\
Have one machine more of an offer, within the bounds of its pool, whether a job waits for it or not; it goes when it was idle.

examples:
  kettle pool order cloud small
"""
_REPORT: Final = """\
The machines that a pool had, how long they were there and what ran on them: seconds used and idle, how much more was provided
than used (over-provisioning), and the cost, by owner or job, and by day.

A machine costs its price for as long as its provider has it.  USED FOR is the price of the core time that ran; COST has the idle
time of the same machines too, in proportion.  What nobody used is paid by nobody.

examples:
  kettle pool report cloud
  kettle pool report cloud --since 7d
  kettle pool report cloud --by job
"""

_FILE: Final = "a pool file (TOML); - is standard input"
_POOL: Final = "the name of a pool of workers"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)

    def add(name: str, says: str, description: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=says, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )

    add("example", "a pool file to begin with", _EXAMPLE)
    _add_files(add)
    _add_looks(add)
    _add_orders(add)


Add = Callable[[str, str, str], argparse.ArgumentParser]


def _add_files(add: Add) -> None:
    for name, says, description in (
        ("apply", "have a pool be as a file says", _APPLY),
        ("check", "what is wrong with a file, and what its providers say", _CHECK),
        ("diff", "what applying a file would change", _DIFF),
    ):
        parser = add(name, says, description)
        parser.add_argument("file", metavar="FILE", help=_FILE)
        if name == "check":
            parser.add_argument("--offline", action="store_true", help="look at the file alone")
        _common(parser)


def _add_looks(add: Add) -> None:
    _common(add("list", "all pools", "All pools of workers, and how many machines they have."))
    show = add("show", "one pool and its offers", _SHOW)
    show.add_argument("pool", metavar="POOL", help=_POOL)
    _common(show)
    explain = add("explain", "the last plan and its reasons", _EXPLAIN)
    explain.add_argument("pool", metavar="POOL", help=_POOL)
    explain.add_argument("--job", default="", metavar="ID", help="only jobs of the kind of this one")
    explain.add_argument(
        "--name", default="", metavar="SCHEDD", help="whose job, if the pool has several schedds"
    )
    which = explain.add_mutually_exclusive_group()
    which.add_argument("--dry-run", action="store_true", help="make a plan now, and do not carry it out")
    which.add_argument(
        "--at", type=moment_argument, default=0, metavar="TIME", help="the plan that was in force then"
    )
    _common(explain)
    leases = add("leases", "the machines of a pool", _LEASES)
    leases.add_argument("pool", nargs="?", default="", metavar="POOL", help=f"{_POOL} (default: all)")
    leases.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="STATE",
        help="only those in this state, such as ready, in-doubt or gone; may be repeated",
    )
    _common(leases)
    lease = add("lease", "what happened to one machine", _LEASE)
    lease.add_argument("lease", metavar="LEASE", help="as the list of machines shows it")
    lease.add_argument("--console", action="store_true", help="what it wrote while it started")
    _common(lease)
    report = add("report", "what the machines of a pool were used for, and what they cost", _REPORT)
    report.add_argument("pool", metavar="POOL", help=_POOL)
    report.add_argument(
        "--since",
        type=span_up_to("400d"),
        default=86_400.0,
        metavar="TIME",
        help="machines that ended in this time, or are there (default: 1d)",
    )
    report.add_argument(
        "--by", choices=("owner", "job"), default="owner", help="who has used them (default: owner)"
    )
    _common(report)


def _add_orders(add: Add) -> None:
    for name, says, description in (
        ("pause", "make no more machines", _PAUSE),
        ("resume", "make machines again, and try what is closed", _RESUME),
        ("drain", "have its machines go when their jobs have ended", _DRAIN),
        ("retire", "give a pool up", _RETIRE),
        ("order", "have one machine more", _ORDER),
    ):
        parser = add(name, says, description)
        if name == "drain":
            parser.add_argument("pool", nargs="?", default="", metavar="POOL", help=_POOL)
            parser.add_argument("--lease", default="", metavar="LEASE", help="only this machine")
            parser.add_argument("--force", action="store_true", help="of one machine: with what runs on it")
        else:
            parser.add_argument("pool", metavar="POOL", help=_POOL)
        if name in {"pause", "drain"}:
            parser.add_argument("--reason", default="", metavar="TEXT", help="is recorded, and shown")
        if name == "order":
            parser.add_argument("offer", metavar="OFFER", help="the name of one of its offers")
        _common(parser)


def _common(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    reach_options(parser)


_MODULES: Final = {
    "example": ("files", "example"),
    "apply": ("files", "apply"),
    "check": ("files", "check"),
    "diff": ("files", "diff"),
    "list": ("showing", "pools"),
    "show": ("showing", "pool"),
    "explain": ("explaining", "run"),
    "leases": ("machines", "leases"),
    "lease": ("machines", "lease"),
    "report": ("reporting", "run"),
    "pause": ("ordering", "pause"),
    "resume": ("ordering", "resume"),
    "drain": ("ordering", "drain"),
    "retire": ("ordering", "retire"),
    "order": ("ordering", "order"),
}


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module, function = _MODULES[arguments.what]
    return int(
        getattr(importlib.import_module(f"kettle_services.cli.pools.{module}"), function)(arguments, screen)
    )
