"""`kettle convert`: what others' configurations become here."""

import argparse
from pathlib import Path
from typing import Final

from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Turn an HTCondor configuration into a kettle.toml.  Macros, conditionals, included files and `use CATEGORY : NAME` are
carried out as HTCondor does; what its LOCAL_CONFIG_DIR and LOCAL_CONFIG_FILE name is read too, where it is on this machine.
Each setting says from which knob it came; what cannot be carried over is listed with its place and the reason.

examples:
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
        screen.json({"settings": conversion.carried, "not_carried": conversion.not_carried})
        return 0
    if not arguments.output:
        screen.block(text.rstrip("\n"))
    for each in conversion.not_carried:
        screen.note(f"not carried over: {each}")
    screen.note(f"{len(conversion.carried)} settings, {len(conversion.not_carried)} lines not carried over.")
    return 0
