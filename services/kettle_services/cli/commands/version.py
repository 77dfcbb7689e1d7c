"""`kettle version`."""

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Which Kettle this is.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Say it."""
    del arguments
    try:
        ours = version("kettle")
    except PackageNotFoundError:
        ours = "unknown"
    if screen.as_json:
        screen.json({"kettle": ours, "python": platform.python_version()})
    else:
        screen.say(f"kettle {ours} (Python {platform.python_version()})")
    return 0
