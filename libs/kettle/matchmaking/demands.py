"""What a cycle is asked for, and what it comes to: demands, grants, and what is left."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from kettle.classad import ClassAd
from kettle.matchmaking.hierarchy import GroupShare
from kettle.matchmaking.request import Amounts

Limit: TypeAlias = Literal["", "share", "ceiling", "quota", "concurrency"]
"""
What keeps jobs from slots that there are: nothing, their submitter's share of those that others have, its ceiling, what its
group may have, or that of what they use there are only so many.
"""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Idle jobs of one autocluster of one submitter."""

    submitter: str
    schedd: str
    autocluster: int
    count: int
    """Slots that they want."""
    job: ClassAd
    nodes: int = 1
    """Slots that each of them needs at the same time: it gets as many, or none."""
    more: int = 0
    """Slots that each of them takes besides, as many as there are at that time; they do not count in `count`."""
    near: bool = False
    """Whether these are to be on machines of the same ParallelSchedulingGroup."""
    key: str = ""
    """The caller's key of the ad from which it came."""

    @property
    def is_whole(self) -> bool:
        """Whether a job may get several slots at the same time."""
        return self.nodes + self.more > 1


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """So many jobs of a demand may go to the slot in a row of the table, each taking `amounts` of it."""

    demand: Demand
    row: int
    count: int
    amounts: Amounts
    uses: dict[str, float] = {}
    """How much of its concurrency limits each job uses there."""
    nodes: int = 1
    """Slots that each of these jobs is given at the same time."""
    instead: tuple[int, ...] = ()
    """Rows of the parts of the slot whose jobs have to make room together."""


class Unmet(msgspec.Struct, frozen=True, kw_only=True):
    """
    How many jobs are left of a demand; `fault` says what is wrong with the demand itself, if that is the reason.
    """

    demand: Demand
    count: int
    fault: str | None = None
    limit: Limit = ""
    """There may be slots for it, which its submitter may not have."""
    reached: tuple[str, ...] = ()
    """Its concurrency limits that are reached, if it is that."""
    there: int = 0
    """How many slots there are for a job that needs several."""
    kept: bool = False
    """They are kept for it."""


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one cycle."""

    grants: list[Grant]
    unmet: list[Unmet]
    taken: dict[str, float] = {}
    """What each submitter was given, in slot weights."""
    groups: list[GroupShare] = []
    """How the accounting groups stand, the one of those without a group first."""
