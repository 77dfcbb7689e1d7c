"""Which HTCondor clients take this for, and which Kettle it is."""

import platform as machine
from importlib import metadata
from typing import Final

from kettle.submit import architecture

LIKE: Final = "25.0.1"
"""The version of HTCondor whose interface this is."""
__version__: Final = LIKE
_DATE: Final = "2026-01-01"


def version() -> str:
    """As HTCondor's programs say it: clients read the number from it."""
    return f"$CondorVersion: {LIKE} {_DATE} BuildID: Kettle $"


def classad_version() -> str:
    """The number alone."""
    return LIKE


def platform() -> str:
    """As HTCondor's programs say it."""
    return f"$CondorPlatform: {architecture()}_{machine.system()} $"


def kettle_version() -> str:
    """The version of Kettle."""
    return metadata.version("kettle")
