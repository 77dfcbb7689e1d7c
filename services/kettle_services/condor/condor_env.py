"""`kettle condor-env`: the condor_* commands for a shell."""

import argparse
import os
import shlex
from pathlib import Path
from typing import Final

from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen
from kettle_services.condor import launchers

HELP: Final = """\
The condor_* commands, for programs and people that use HTCondor.  They are kept apart, so that those of an HTCondor on the
same machine are not hidden by accident: this prints the commands that put them first in a shell.

examples:
  eval "$(kettle condor-env)"                      in sh, bash and zsh
  eval `kettle condor-env --csh`                   in csh and tcsh
  PATH="$(kettle condor-env --bin):$PATH" my-workflow
  kettle condor-env --into /opt/kettle-condor      for an image, or for all users of a machine
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--into",
        type=Path,
        metavar="DIR",
        help="where to put them (default: libexec/kettle/condor beside the interpreter, if that may be written)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csh", action="store_true", help="print it for csh")
    form.add_argument("--bin", action="store_true", help="print only the directory of the commands")
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Write what is missing, and print the variables."""
    directory = (arguments.into or launchers.default_directory()).absolute()
    try:
        place = launchers.install(directory)
    except OSError as error:
        raise CommandError(
            f"the commands cannot be put into {directory}: {error.strerror}; name another place with --into"
        ) from error
    if arguments.bin:
        screen.say(str(place))
        return 0
    variables = {"PATH": str(place)}
    if launchers.bindings() is not None:
        variables["PYTHONPATH"] = str(directory / launchers.PYTHON)
    if screen.as_json:
        screen.json(variables)
        return 0
    for name, value in variables.items():
        screen.say(_csh(name, value) if arguments.csh else _sh(name, value))
    return 0


def _sh(name: str, value: str) -> str:
    """The directory before what the variable has, unless it is there already."""
    first = shlex.quote(value)
    return f'{name}={first}"${{{name}:+:${name}}}"; export {name};'


def _csh(name: str, value: str) -> str:
    first = shlex.quote(value)
    before = os.environ.get(name)
    return f"setenv {name} {first}:${{{name}}};" if before else f"setenv {name} {first};"
