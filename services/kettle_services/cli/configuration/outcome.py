"""What the check of the configuration found, for the person who asked or who wants to start a pool."""

import os
from collections.abc import Sequence
from pathlib import Path

from kettle.runtime.settings_problems import Problem
from kettle_services.cli.errors import CommandError
from kettle_services.cli.output.screen import Screen


def environ_of(home: Path | None) -> dict[str, str]:
    """The variables of this shell, with the pool's directory if one is named."""
    return {**os.environ, **({} if home is None else {"KETTLE_HOME": str(home)})}


def tell(problems: Sequence[Problem], screen: Screen) -> bool:
    """Print what is wrong; returns whether the configuration can be used."""
    for each in problems:
        if each.warning:
            screen.note(f"warning: {each}")
        else:
            screen.trouble(str(each))
    return all(each.warning for each in problems)


def check_first(home: Path, screen: Screen) -> None:
    """
    Raises:
        CommandError: the configuration cannot be used; what is wrong with it has been printed.
    """
    from kettle_services.cli.configuration.check import check  # it loads what all services can be told

    if not tell(check(environ_of(home)), screen):
        raise CommandError("nothing was started: mend this first, and look again with: kettle config check")
