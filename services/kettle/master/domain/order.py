"""
Which service is started and stopped when, and which needs what.
"""

from collections.abc import Sequence
from typing import Final

DAEMON_LIST: Final = ("collector", "negotiator", "schedd", "shadow", "startd", "accounting")
"""HTCondor's name for what a master runs; here a pool of one machine."""

NEEDS_DATABASE: Final = frozenset({"accounting", "collector", "negotiator", "schedd"})
"""The others learn everything over the bus, so they are not given a way into the database."""

_WORK_ENDS: Final = ("startd", "shadow", "schedd")
"""Each of these can finish cleanly only while the later ones still listen to it."""


def stop_stages(daemons: Sequence[str]) -> list[list[str]]:
    """
    The services in the order in which they are stopped; those of one stage together.

    First the machine ends its work and reports, then the submit side records it, then all others.
    """
    stages = [[name] for name in _WORK_ENDS if name in daemons]
    rest = [name for name in reversed(daemons) if name not in _WORK_ENDS]
    return [*stages, rest] if rest else stages
