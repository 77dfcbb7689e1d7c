"""
Which attributes of a job decide whether a machine takes it: jobs that have the same ones are asked about once.

Some always do; the others are those that the expressions of the machines ask for.
"""

from typing import Final

BASIC: Final = (
    "AllowedExecuteDuration",
    "AllowedJobDuration",
    "ConcurrencyLimits",
    "FlockTo",
    "GridResource",
    "JobLeaseDuration",
    "JobUniverse",
    "ProminenceAutoScalingType",
    "ProminenceMaximumIdleTime",
    "ProminenceMaximumTimeInQueue",
    "Rank",
    "Requirements",
    "WantFlocking",
)
_ASKING: Final = ("request", "require")
"""
How the names of amounts begin, and of what is required of each piece: any machine may have resources of its own.
"""
MOST: Final = 300
"""Attributes that machines may make significant: each may split the jobs of everybody into more autoclusters."""


def asks(name: str) -> bool:
    """Whether the attribute of this name, in lower case, is an amount that a job asks for."""
    return name.startswith(_ASKING)
