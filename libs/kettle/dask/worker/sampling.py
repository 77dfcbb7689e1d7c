"""
How often a worker looks at itself: as seldom as on a machine on which it has many neighbours.

Dask's own defaults are those of a worker that has a machine for itself: with them fifty workers that have nothing to do take more than a
core of it.
"""

# dask has no types:
# pyright: reportUnknownMemberType=false

from typing import Any, Final

from dask import config

_SAMPLING: Final[dict[str, Any]] = {
    "distributed": {
        "worker": {"profile": {"interval": "100ms"}},
        "admin": {"tick": {"interval": "100ms"}},
    }
}
"""Of the profile of what it computes, which the dashboard shows, and of how late its event loop is."""


def sample_seldom() -> None:
    """
    Have these be the defaults in this process; what somebody has configured otherwise, in a file or by a variable, holds.
    """
    config.update_defaults(_SAMPLING)
