"""The plan that was recorded last."""

from typing import Final

import msgspec

from kettle_wire.events.plan import PlanMade

KIND: Final = "plan"
STREAM: Final = f"{KIND}/made"
"""All plans are on one stream: the number of a plan is the version of its event."""


class LastPlan(msgspec.Struct, frozen=True):
    """A plan, and when it was recorded, in seconds since the epoch."""

    plan: PlanMade
    at: float


def fold(before: LastPlan | None, event: PlanMade, at: float) -> LastPlan:
    """The newest plan is the one that holds."""
    del before
    return LastPlan(event, at)
