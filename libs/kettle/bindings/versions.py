"""Which HTCondor clients take this for, and which Kettle it is."""

import platform as machine
from importlib import metadata
from typing import Final

from kettle.submit import architecture
from kettle_wire.ads.daemon import CONDOR_VERSION

LIKE: Final = CONDOR_VERSION.split()[1]
"""The version of HTCondor whose interface this is."""
__version__: Final = LIKE


def version() -> str:
    """As HTCondor's programs say it: clients read the number from it."""
    return CONDOR_VERSION


def classad_version() -> str:
    """The number alone."""
    return LIKE


def platform() -> str:
    """As HTCondor's programs say it."""
    return f"$CondorPlatform: {architecture()}_{machine.system()} $"


def kettle_version() -> str:
    """The version of Kettle."""
    return metadata.version("kettle")
