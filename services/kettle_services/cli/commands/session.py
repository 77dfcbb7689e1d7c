"""`kettle session`: interactive sessions."""

import argparse
import importlib
from collections.abc import Callable
from typing import Final

from kettle_services.cli.options import json_option, pool_options
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.sessions.ranges import adapt_argument, size_argument
from kettle_services.cli.times import span_argument

HELP: Final = """\
Interactive sessions: a cluster of Dask, a notebook, or a program of your own, as jobs of the pool.  The pool keeps as many workers
running as you want: what is lost is replaced, what waits says why, and what is not wanted any more hands over what it holds first.

examples:
  kettle session create dask --workers 4         a scheduler and four workers
  kettle session create process --wait --command python3 -m http.server 8000
  kettle session list                            how yours are, and why they wait
  kettle session show fits                       its members, and what happened to it
  kettle session scale fits 20
  kettle session adapt fits 0:50                 as many as the load wants
  kettle session stop fits

kettle session COMMAND --help explains each.
"""
_LIST: Final = """\
Your sessions, and those that others share with you.

examples:
  kettle session list
  kettle session list --ended           also those that were over in the last day
  kettle session list --everybody       of all people, for administrators
"""
_SHOW: Final = """\
A session: how it is and why, its members with the jobs that they are, and what happened to it last.

examples:
  kettle session show fits
  kettle session show fits --events 100
"""
_CREATE: Final = """\
Begin a session.  It is on its way when the command ends; with --wait the command ends when it is ready, and says meanwhile what
it waits for.  A profile says what is started, in which image, and which sizes there are: kettle session profiles.

examples:
  kettle session create dask --workers 4 --memory 2048
  kettle session create dask --profile cms-2026 --as fits --adapt 0:50 --idle 2h
  kettle session create notebook --cpus 2 --life 8h
  kettle session create process --services web:8000/http --command python3 -m http.server 8000
"""
_SCALE: Final = """\
Have so many workers, and no longer as many as the load wants.  Those that wait go first; one that runs hands over what it holds,
and is ended after that.

examples:
  kettle session scale fits 20
"""
_ADAPT: Final = """\
Have as many workers as the load of the scheduler wants, between two numbers; with --off as many as there are wanted now.

examples:
  kettle session adapt fits 0:50
  kettle session adapt fits --off
"""
_SHARE: Final = """\
Let others use a session: these people and groups, and nobody else.  They see it in their lists and reach what it publishes; only
you change it.

examples:
  kettle session share fits bob group:atlas
  kettle session share fits --nobody
"""
_RESTART: Final = """\
Start the scheduler or server of a session again, and its workers with it.  What they hold in memory is lost.

examples:
  kettle session restart fits
"""
_STOP: Final = """\
End sessions and their jobs.

examples:
  kettle session stop fits
  kettle session stop fits other --reason 'done for today'
"""
_PROFILES: Final = """\
The kinds of sessions that there are to be had, with their images and sizes; what is wrong with a file of profiles that is not in force.

examples:
  kettle session profiles
"""
_SESSION: Final = "its name or id, as kettle session list shows it"

Add = Callable[[str, str, str], argparse.ArgumentParser]


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)

    def add(name: str, says: str, description: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=says, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        json_option(made)
        pool_options(made)
        return made

    _add_looks(add)
    _add_create(add("create", "begin one", _CREATE))
    _add_changes(add)


def _add_looks(add: Add) -> None:
    listed = add("list", "your sessions", _LIST)
    listed.add_argument("--ended", action="store_true", help="also those that are over")
    listed.add_argument("--everybody", action="store_true", help="of all people, for administrators")
    show = add("show", "one of them", _SHOW)
    show.add_argument("session", metavar="SESSION", help=_SESSION)
    show.add_argument(
        "--events", type=int, default=10, metavar="N", help="the last N things that happened (default: 10)"
    )
    add("profiles", "the kinds of sessions that there are", _PROFILES)


def _add_create(create: argparse.ArgumentParser) -> None:
    create.add_argument(
        "kind", choices=("dask", "notebook", "process"), metavar="KIND", help="dask, notebook or process"
    )
    create.add_argument(
        "--profile", default="", metavar="NAME", help="default: the one that is called as the kind is"
    )
    create.add_argument("--as", dest="session_name", metavar="NAME", help="how it is called")
    create.add_argument("--workers", type=size_argument, metavar="N", help="how many workers")
    create.add_argument(
        "--adapt",
        type=adapt_argument,
        metavar="MIN:MAX",
        help="as many workers as the load wants, within these",
    )
    create.add_argument("--cpus", type=size_argument, metavar="N", help="of each worker, or of the program")
    create.add_argument("--memory", type=size_argument, metavar="MIB", help="likewise")
    create.add_argument("--gpus", type=size_argument, metavar="N", help="likewise")
    create.add_argument("--disk", type=size_argument, metavar="MIB", help="likewise")
    create.add_argument("--image", default="", metavar="IMAGE", help="the container image")
    create.add_argument("--site", default="", metavar="SITE", help="where all of it runs (SiteName)")
    create.add_argument(
        "--spread", action="store_true", help="workers may run at other sites than the scheduler"
    )
    create.add_argument("--life", type=span_argument, metavar="TIME", help="end it after so long, as 8h")
    create.add_argument(
        "--idle", type=span_argument, metavar="TIME", help="end it when nobody has used it for so long"
    )
    create.add_argument(
        "--share", action="append", default=[], metavar="WHO", help="a person or group:NAME; may be repeated"
    )
    create.add_argument(
        "--services", default="", metavar="LIST", help="what the program publishes, as web:8000/http"
    )
    create.add_argument("--wait", action="store_true", help="until it is ready")
    create.add_argument(
        "--command",
        dest="program",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="...",
        help="the program and its arguments: all that stands behind it",
    )


def _add_changes(add: Add) -> None:
    for name, says, description in (
        ("scale", "have another number of workers", _SCALE),
        ("adapt", "have as many workers as the load wants", _ADAPT),
        ("share", "let others use one", _SHARE),
        ("restart", "start one again", _RESTART),
    ):
        parser = add(name, says, description)
        parser.add_argument("session", metavar="SESSION", help=_SESSION)
        if name == "scale":
            parser.add_argument("workers", type=size_argument, metavar="N", help="how many workers")
        if name == "adapt":
            parser.add_argument(
                "range", nargs="?", type=adapt_argument, metavar="MIN:MAX", help="between these"
            )
            parser.add_argument("--off", action="store_true", help="keep as many as there are wanted now")
        if name == "share":
            parser.add_argument("who", nargs="*", metavar="WHO", help="people by their names, and group:NAME")
            parser.add_argument("--nobody", action="store_true", help="use it alone again")
    stop = add("stop", "end one", _STOP)
    stop.add_argument("sessions", nargs="+", metavar="SESSION", help=_SESSION)
    stop.add_argument("--reason", default="", metavar="TEXT", help="is recorded, and shown")


_MODULES: Final = {
    "list": ("showing", "sessions"),
    "show": ("showing", "session"),
    "profiles": ("showing", "profiles"),
    "create": ("creating", "create"),
    "scale": ("changing", "scale"),
    "adapt": ("changing", "adapt"),
    "share": ("changing", "share"),
    "restart": ("changing", "restart"),
    "stop": ("changing", "stop"),
}


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module, function = _MODULES[arguments.what]
    found = importlib.import_module(f"kettle_services.cli.sessions.{module}")
    return int(getattr(found, function)(arguments, screen))
