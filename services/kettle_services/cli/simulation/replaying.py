"""`kettle simulate run --from log`: a simulation that begins with a recorded period, with a change."""

import argparse
from typing import Any, Final

from kettle_services.cli.errors import UsageError
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.reports import what_if_command

_OF_PLATFORMS: Final = ("seed", "events", "pace", "jobs", "svg", "png", "skip_bad", "progress")
"""Options that say nothing of a period."""


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """The file is a change, and the answer that of `kettle what-if`."""
    for name in _OF_PLATFORMS:
        if getattr(arguments, name):
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} is about a platform and a workload, and a recorded period has its own"
            )
    if arguments.since is None:
        raise UsageError("--from log needs --since: when the period begins")
    asked: dict[str, Any] = {**vars(arguments), "change": arguments.file, "names": [], "svg": None}
    return what_if_command.run(argparse.Namespace(**asked), screen)
