"""`kettle worker run`."""

import argparse
import os
import sys
from pathlib import Path

from kettle.client import home_directory
from kettle_services.cli.options import home_option
from kettle_services.cli.output.screen import Screen


def arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument(
        "--bootstrap",
        type=Path,
        required=True,
        metavar="FILE",
        help="what the machine is for; - is standard input",
    )
    home_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Become the program: what stays for the life of the machine is small."""
    del screen
    home: Path = arguments.home or home_directory()
    words = [str(arguments.bootstrap), "--home", str(home)]
    os.execv(sys.executable, [sys.executable, "-P", "-m", "kettle_services.worker", *words])  # noqa: S606 - the program itself
