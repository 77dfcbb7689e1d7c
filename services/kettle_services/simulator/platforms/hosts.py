"""Hosts of a simulated platform."""

from typing import Annotated

import msgspec

from kettle_services.simulator.platforms.lives import Failures

PLENTY = 1 << 50
"""MiB of memory or disk of a host of which none was said: more than any job wants."""

STAYS = -1
"""A host never leaves."""

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Speed = Annotated[float, msgspec.Meta(gt=0)]


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine: what it has, and how fast it is."""

    name: str
    cores: Count = 1
    speed: Speed = 1.0
    """Seconds of work that a core does in a second; the run times of jobs are those on a core of speed 1."""
    memory: Annotated[int, msgspec.Meta(ge=0)] = PLENTY
    """MiB."""
    disk: Annotated[int, msgspec.Meta(ge=0)] = PLENTY
    """MiB."""
    gpus: Annotated[int, msgspec.Meta(ge=0)] = 0
    joins: Annotated[int, msgspec.Meta(ge=0)] = 0
    """When it comes, in microseconds."""
    leaves: int = STAYS
    """When it goes, with whatever runs on it."""
    notice: Annotated[int, msgspec.Meta(ge=0)] = 0
    """So many microseconds before it goes it takes no more jobs."""
    failures: Failures | None = None
    """How it is away in between."""
    price: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """What it costs for each hour between its coming and its going, whether it is used or not."""

    @property
    def is_always_there(self) -> bool:
        """Whether it neither comes later nor goes."""
        return not self.joins and self.leaves == STAYS and self.failures is None
