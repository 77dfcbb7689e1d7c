"""
What the accountant knows of a principal, who is a submitter: on the stream `principal/<name>`.

Priorities, usage and factors follow from these alone, by the formulas of `PrincipalCharged`.
"""

from typing import Literal

from kettle_wire.events.base import Event

Setting = Literal["priority", "factor", "accumulated", "begin", "last", "floor", "ceiling"]
"""What an administrator may set of a principal, by condor_userprio's words."""


class PrincipalCharged(Event, frozen=True, tag="principal.charged/1"):
    """
    What was used from `since` to `at`, seconds since the epoch; nothing was used between that and the charge before.

        beta         = 0.5 ^ (seconds / half_life)
        recent       = weight + weighted_uncharged / seconds
        priority     = max(0.5, priority * beta + recent * (1 - beta))
        accumulated += slots * seconds + uncharged, and the same weighted

    If `at` is not after `since` somebody has put the clock back: then nothing is charged, and time goes on from `at`.
    """

    principal: str
    since: float
    at: float
    half_life: float
    """Seconds (PRIORITY_HALFLIFE)."""
    slots: float = 0.0
    """In use at the end (ResourcesUsed)."""
    weight: float = 0.0
    """What they count for (WeightedResourcesUsed)."""
    uncharged: float = 0.0
    """
    Seconds of slots that were used and are not any more, less those of slots that have not been all the time.
    """
    weighted_uncharged: float = 0.0


class PrincipalSet(Event, frozen=True, tag="principal.set/1"):
    """An administrator set something of a principal. All that was used until `at` was charged before."""

    principal: str
    setting: Setting
    value: float
    at: float
    by: str


class PrincipalReset(Event, frozen=True, tag="principal.reset/1"):
    """An administrator set the accumulated usage of a principal to nothing; priority and factor stay."""

    principal: str
    at: float
    by: str


class PrincipalDeleted(Event, frozen=True, tag="principal.deleted/1"):
    """An administrator had a principal forgotten; if it uses something again it begins as somebody new."""

    principal: str
    at: float
    by: str


PrincipalEvent = PrincipalCharged | PrincipalSet | PrincipalReset | PrincipalDeleted
