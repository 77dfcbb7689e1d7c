"""
The mark that every process of a pool inherits in its environment, and by which a master finds them all.

Its value says what a process is a part of: of a service, or of a starter and its job, which outlive services and master.
"""

from collections.abc import Mapping
from typing import Final

MARK: Final = "_KETTLE_ANCESTOR_"
"""The beginning of the variable's name; the pool's id follows.  A job that is a pool itself has two."""

SERVICE: Final = "1"
STARTER: Final = "starter"


def of_a_starter(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process whose descendants are starters and jobs."""
    return {name: STARTER if name.startswith(MARK) else value for name, value in environ.items()}
