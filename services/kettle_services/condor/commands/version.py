"""condor_version."""

import sys
from typing import Final

from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.configuration import platform, version

OPTIONS: Final = {"debug": Option(), "verbose": Option()}
HELP: Final = {
    "condor_version": """\
usage: condor_version

The version of HTCondor whose commands these are like, and the machine they run on.
""",
}


def run(_name: str, words: list[str]) -> int:
    """Say it."""
    understood(words, OPTIONS)
    sys.stdout.write(f"{version()}\n{platform()}\n")
    return 0
