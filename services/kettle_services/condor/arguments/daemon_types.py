"""The types of daemons, as words of a command line."""

from typing import Final

from kettle_services.condor.errors import ToolError, do_you_mean

ROLES: Final = (
    "schedd",
    "collector",
    "negotiator",
    "startd",
    "master",
    "shadow",
    "accounting",
    "gateway",
    "iam",
)
"""Daemons of a pool, by the role that serves them."""
OTHERS: Final = (
    "any",
    "credd",
    "generic",
    "had",
    "hdfs",
    "kbdd",
    "starter",
    "view_collector",
    "cluster",
)
"""Types of HTCondor that no daemon here has."""


def require_type(typed: str) -> str:
    """The role of a daemon by its type; raises ToolError, in HTCondor's words."""
    found = typed.lower()
    if found in {*ROLES, *OTHERS}:
        return found
    raise ToolError(f"ERROR: unrecognized daemon type: {typed}{do_you_mean(found, ROLES)}")
