"""`kettle doctor`: what is wrong here, and what to do about it."""

import argparse
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.client import home_directory
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kettle_services.cli.doctor.findings import Finding

HELP: Final = """\
Examine this host and its pool: versions, clocks, limits, control groups, ports, certificates, disk, permissions of secrets, the
configuration, NATS and PostgreSQL with their settings, daemons that do not stay up, tables that are behind.  Each thing that is not
as it should be is said with what, where and what to do.  It changes nothing, and says nothing to anybody.

Exit status 1 if something does not work or is not safe; warnings alone leave it at 0.

examples:
  kettle doctor                         what is not as it should be
  kettle doctor --all                   and what is
  kettle doctor --json | jq '.[] | select(.grade == "problem")'
  kettle doctor bundle                  what support asks for, in one file, without secrets
  kettle doctor bundle --output /tmp/pool.tar.gz
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "what", nargs="?", choices=["bundle"], metavar="bundle", help="also write what support asks for"
    )
    parser.add_argument("--all", action="store_true", help="also what is as it should be")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="of the bundle (default: kettle-support-TIME.tar.gz here)"
    )
    json_option(parser)
    home_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Examine, and print."""
    from kettle_services.cli.doctor.examination import examine

    home: Path = (arguments.home or home_directory()).expanduser().absolute()
    found = asyncio.run(examine(home))
    if arguments.what == "bundle":
        return _bundle(arguments, home, found, screen)
    if screen.as_json:
        screen.json(found)
    else:
        _print(found, screen, everything=arguments.all)
    return 1 if any(each.grade == "problem" for each in found) else 0


def _print(found: "Sequence[Finding]", screen: Screen, *, everything: bool) -> None:
    from kettle_services.cli.doctor.printing import STYLES, print_finding

    for each in found:
        if everything or each.grade != "good":
            print_finding(each, screen)
    counts = {grade: sum(each.grade == grade for each in found) for grade in STYLES}
    screen.say(
        f"{counts['problem']} problems, {counts['warning']} warnings, {counts['note']} notes; "
        f"{counts['good']} things are as they should be."
    )


def _bundle(arguments: argparse.Namespace, home: Path, found: "Sequence[Finding]", screen: Screen) -> int:
    from kettle_services.cli.doctor.bundle import write_bundle

    name = f"kettle-support-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar.gz"
    target: Path = (arguments.output or Path(name)).absolute()
    try:
        inside = write_bundle(home, found, target)
    except OSError as error:
        raise CommandError(
            f"{error.filename or target} cannot be read or written: {error.strerror}"
        ) from error
    if screen.as_json:
        screen.json({"bundle": str(target), "files": inside})
        return 0
    screen.say(f"{target}: {', '.join(inside)}")
    screen.note(
        "Secrets are struck out; names of people, hosts and jobs are in it: look at it before you send it."
    )
    return 0
