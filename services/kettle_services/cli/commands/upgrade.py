"""`kettle upgrade`: whether this version can serve the pool, and the last step of an upgrade."""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.client import home_directory
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import json_option, reach_options
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from kettle_services.cli.upgrade.readiness import ReadinessFacts

HELP: Final = """\
Say whether the version that is installed here can serve the pool, and take the last step of an upgrade.  Old and new services may run
beside each other: the database is brought up to date before with what older ones can work with, and after it with the rest.

examples:
  kettle upgrade check       exit status 1 if this version cannot serve the pool
  kettle upgrade finish      when every host runs the new version

Step by step: docs/how-to/upgrade-a-pool.md
"""

_CHECK: Final = """\
Look whether the version that is installed here can serve the pool: the schema of its database, the types of the events that were
recorded last, the versions of all hosts, tables that will be built again.  It changes nothing.
"""

_FINISH: Final = """\
Take the steps of the schema that older services cannot work with.  While a host runs another version this is refused: after it, that
host could not serve, and there is no way back but a backup.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    for name, says, description in (
        ("check", "can this version serve the pool?", _CHECK),
        ("finish", "the last step, when every host is new", _FINISH),
    ):
        each = commands.add_parser(name, help=says, description=description, formatter_class=form)
        json_option(each)
        reach_options(each)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Look, or do it."""
    from kettle.eventsourcing.log import LogError
    from kettle_services.cli.doctor.printing import print_finding
    from kettle_services.cli.upgrade.readiness import readiness
    from kettle_services.cli.upgrade.reading import facts_of

    home: Path = (arguments.home or home_directory()).expanduser().absolute()
    try:
        facts = asyncio.run(facts_of(home, patience=arguments.patience))
        if arguments.what == "finish":
            return _finish(home, arguments, screen, facts)
    except LogError as error:
        raise CommandError(str(error)) from error
    found = list(readiness(facts))
    ready = all(each.grade != "problem" for each in found)
    if screen.as_json:
        screen.json({"ready": ready, "version": facts.version, "findings": found})
        return 0 if ready else 1
    for each in found:
        print_finding(each, screen)
    verdict = "can" if ready else "CANNOT"
    screen.say(f"Kettle {facts.version} {verdict} serve this pool.")
    if ready:
        screen.note("Make a backup first, and prove it: kettle backup create, kettle backup verify.")
    return 0 if ready else 1


def _finish(home: Path, arguments: argparse.Namespace, screen: Screen, facts: "ReadinessFacts") -> int:
    from kettle_services.cli.upgrade.reading import finish

    if not facts.hosts:
        raise CommandError(
            "the pool does not say which versions run, and nothing was changed: start it with the new version, see kettle status, "
            "and say this again"
        )
    if older := [host for host, version in facts.hosts if version != facts.version]:
        raise CommandError(
            f"{', '.join(older)} runs another version than the one installed here: upgrade and restart it first"
        )
    ran, state = asyncio.run(finish(home, patience=arguments.patience))
    if screen.as_json:
        screen.json({"ran": ran, "pending": [step.name for step in state.pending]})
        return 0
    screen.say(f"Took {', '.join(ran)}." if ran else "Nothing was left to do.")
    return 0
