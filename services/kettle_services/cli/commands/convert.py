"""`kettle convert`: what others' configurations become here."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kettle_services.cli.condor_config.account import AccountLine

_STYLES: Final = {"taken": "good", "used": "dim", "no meaning": "dim", "decide": "held"}

HELP: Final = """\
Turn an HTCondor configuration into a kettle.toml.  Macros, conditionals, included files and `use CATEGORY : NAME` are
carried out as HTCondor does; what its LOCAL_CONFIG_DIR and LOCAL_CONFIG_FILE name is read too, where it is on this machine.
Each setting says from which knob it came; what cannot be carried over is listed with its place and the reason.

With --account it prints what became of each knob in place of the new file: taken (and as which settings), used by other knobs, without a
meaning here, or for you to decide.

examples:
  kettle convert condor_config --account /etc/condor/condor_config
  kettle convert condor_config /etc/condor/condor_config -o kettle.toml
  kettle convert condor_config condor_config condor_config.local > kettle.toml
  kettle config check kettle.toml
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    condor = commands.add_parser("condor_config", help="HTCondor's", description=HELP, formatter_class=form)
    condor.add_argument("files", nargs="+", type=Path, metavar="FILE", help="later ones are stronger")
    condor.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    condor.add_argument("--account", action="store_true", help="print what became of each knob")
    json_option(condor)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the new file, and beside it what is not in it."""
    from kettle_services.cli.condor_config.conversion import convert, render

    try:
        conversion = convert(arguments.files)
        text = render(conversion, arguments.files)
        if arguments.output:
            arguments.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from error
    if screen.as_json:
        screen.json(
            {
                "settings": conversion.carried,
                "not_carried": conversion.not_carried,
                "account": conversion.account,
            }
        )
        return 0
    if arguments.account:
        return _account(conversion.account, screen)
    if not arguments.output:
        screen.block(text.rstrip("\n"))
    for each in conversion.not_carried:
        screen.note(f"not carried over: {each}")
    screen.note(f"{len(conversion.carried)} settings, {len(conversion.not_carried)} lines not carried over.")
    return 0


def _account(lines: "Sequence[AccountLine]", screen: Screen) -> int:
    screen.table(
        ("PLACE", "KNOB", "FATE", "AS, OR WHY"),
        [(each.place, each.knob, each.fate, each.why) for each in lines],
        styles=[_STYLES[each.fate] for each in lines],
    )
    counts = {fate: sum(each.fate == fate for each in lines) for fate in _STYLES}
    screen.note(
        f"{len(lines)} knobs: {counts['taken']} taken, {counts['used']} used by others, {counts['no meaning']} without a meaning "
        f"here, {counts['decide']} for you to decide."
    )
    return 0
