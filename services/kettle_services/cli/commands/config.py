"""`kettle config`: is the configuration right, what is in it, and what would change."""

import argparse
import os
from pathlib import Path
from typing import Final

from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
The configuration of this host: kettle.toml, and the variables of this shell.

examples:
  kettle config check                 is it right?  all that is wrong, with file and line
  kettle config check new.toml        would this file be right?
  kettle config show --changed        what is not the default, and where it was set
  kettle config show startd           all settings of the startd
  kettle config diff                  what `kettle reconfig` would change now

kettle config COMMAND --help explains each.
"""

_CHECK: Final = """\
Check the configuration as a whole: all services, the file, the variables of this shell, every expression.  `kettle up`,
`kettle reconfig` and `kettle restart` do the same before they change anything.

Mistakes are refused: exit status 1.  Warnings are not: attributes that no ad is known to have, programs and files that are
not there, times that do not fit together.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    check = commands.add_parser(
        "check", help="what is wrong with it", description=_CHECK, formatter_class=form
    )
    check.add_argument("file", nargs="?", type=Path, metavar="FILE", help="check this file instead")
    json_option(check)
    home_option(check)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return _check(arguments, screen)


def environ_of(home: Path | None) -> dict[str, str]:
    """The variables of this shell, with the pool's directory if one is named."""
    return {**os.environ, **({} if home is None else {"KETTLE_HOME": str(home)})}


def _check(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle_services.cli.configuration.check import check

    problems = check(environ_of(arguments.home), arguments.file)
    refused = any(not each.warning for each in problems)
    if screen.as_json:
        screen.json(problems)
        return 1 if refused else 0
    for each in problems:
        if each.warning:
            screen.note(f"warning: {each}")
        else:
            screen.trouble(str(each))
    if not refused:
        screen.say("The configuration is right.")
    return 1 if refused else 0
