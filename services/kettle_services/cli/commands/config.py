"""`kettle config`: is the configuration right, what is in it, and what would change."""

import argparse
from pathlib import Path
from typing import Final

from kettle_services.cli.configuration.outcome import environ_of, tell
from kettle_services.cli.errors import CommandError, UsageError
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


_SHOW: Final = """\
Each setting with its value and its origin: the default, the line of a file, or a variable of this shell.  What all services
share is under "kettle" once.  Passwords are not shown.
"""

_DIFF: Final = """\
What `kettle reconfig` would change now: what the running daemons work with, against the file and the variables with which
their master was started.  A service whose settings have changed starts again, and its jobs go on; some settings of the
master wait for `kettle restart`.
"""


_LONGEST: Final = 40
"""Characters of a value in a table: the origin stands behind it, and JSON has all of it."""


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

    show = commands.add_parser(
        "show", help="each value and its origin", description=_SHOW, formatter_class=form
    )
    show.add_argument(
        "daemon", nargs="*", metavar="SERVICE", help="of these alone: schedd, or schedd.NAME, or kettle"
    )
    show.add_argument("--changed", action="store_true", help="only what is not the default")
    show.add_argument("--file", type=Path, metavar="FILE", help="what this file would set")
    json_option(show)
    home_option(show)
    diff = commands.add_parser(
        "diff", help="what a reconfiguration would change", description=_DIFF, formatter_class=form
    )
    json_option(diff)
    home_option(diff)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what:
        case "show":
            return _show(arguments, screen)
        case "diff":
            return _diff(arguments, screen)
        case _:
            return _check(arguments, screen)


def _show(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.runtime import SettingsError
    from kettle.terminal.nearest_names import did_you_mean
    from kettle_services.cli.configuration.origins import ALL, DEFAULT, origins
    from kettle_services.cli.configuration.services import of_host

    try:
        found = of_host(environ_of(arguments.home), arguments.file)
    except SettingsError as error:
        raise CommandError(str(error)) from error
    known = {ALL, *(name for each in found for name in (each.daemon, each.reading.role))}
    if strangers := [name for name in arguments.daemon if name not in known]:
        raise UsageError(f"there is no service {strangers[0]}{did_you_mean(strangers[0], known)}")
    rows = [
        each
        for each in origins(found)
        if (not arguments.daemon or {each.daemon, each.daemon.partition(".")[0]} & set(arguments.daemon))
        and not (arguments.changed and each.origin == DEFAULT)
    ]
    if screen.as_json:
        screen.json(rows)
    else:
        cells = [(each.daemon, each.setting, _text(each.value), each.origin) for each in rows]
        screen.table(
            ("SERVICE", "SETTING", "VALUE", "ORIGIN"),
            cells,
            styles=["dim" if each.origin == DEFAULT else "" for each in rows],
        )
    problems = [problem for each in found for problem in each.reading.problems]
    return 0 if tell(list(dict.fromkeys(problems)), screen) else 1


def _diff(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.client import home_directory
    from kettle_services.cli.configuration.comparison import changes

    found = changes((arguments.home or home_directory()).expanduser().resolve())
    if screen.as_json:
        screen.json(found)
    elif not found:
        screen.say("Nothing: the daemons work with these settings.")
    else:
        screen.table(
            ("SERVICE", "SETTING", "IN USE", "NEW", "ORIGIN", "TAKES EFFECT"),
            [
                (each.daemon, each.setting, _text(each.now), _text(each.new), each.origin, each.effect)
                for each in found
            ],
        )
    return 0


def _text(value: object) -> str:
    import msgspec

    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _check(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle_services.cli.configuration.check import check

    problems = check(environ_of(arguments.home), arguments.file)
    if screen.as_json:
        screen.json(problems)
        return 0 if all(each.warning for each in problems) else 1
    if not tell(problems, screen):
        return 1
    screen.say("The configuration is right.")
    return 0
