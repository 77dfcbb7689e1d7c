"""The plan that was recorded last."""

from typing import Final

import msgspec

from kettle_wire.events.plan import PlanMade

KIND: Final = "plan"
NAME: Final = "made"
STREAM: Final = f"{KIND}/{NAME}"
"""All plans are on one stream: the number of a plan is the version of its event."""
_FIGURES_S: Final = 60.0
"""A plan that differs in nothing but how many jobs wait is recorded after so many seconds."""


class LastPlan(msgspec.Struct, frozen=True):
    """A plan, and when it was recorded, in seconds since the epoch."""

    plan: PlanMade
    at: float


def fold(before: LastPlan | None, event: PlanMade, at: float) -> LastPlan:
    """The newest plan is the one that holds."""
    del before
    return LastPlan(event, at)


def is_news(made: PlanMade, last: LastPlan | None, *, now: float) -> bool:
    """Whether a plan that changes nothing says something that the one before does not."""
    if last is None:
        return bool(made.waiting or made.machines or made.removals or made.wakes or made.sleeps)
    if _without_figures(made) != _without_figures(last.plan):
        return True
    return now - last.at >= _FIGURES_S and _without_moment(made) != _without_moment(last.plan)


def _without_moment(plan: PlanMade) -> PlanMade:
    return msgspec.structs.replace(plan, number=0, inputs="", took=0.0, slots=0)


def _without_figures(plan: PlanMade) -> PlanMade:
    """What is left are the groups, and whether there is something of each kind."""
    waiting = [
        msgspec.structs.replace(
            one,
            example="",
            jobs=min(one.jobs, 1),
            free=min(one.free, 1),
            coming=min(one.coming, 1),
            planned=0,
            limited=min(one.limited, 1),
            young=min(one.young, 1),
            leases=[],
        )
        for one in plan.waiting
    ]
    machines = [msgspec.structs.replace(one, wanted=0, machines=0, score=0.0) for one in plan.machines]
    return msgspec.structs.replace(_without_moment(plan), leases=0, waiting=waiting, machines=machines)


def of_pool(plan: PlanMade, pool: str) -> PlanMade:
    """
    The part of a plan that is about one pool.  Jobs that wait are in it whatever pool serves them, and what others do about them, too.
    """
    return msgspec.structs.replace(
        plan,
        machines=[each for each in plan.machines if each.pool == pool],
        removals=[each for each in plan.removals if each.pool == pool],
        wakes=[each for each in plan.wakes if each.pool == pool],
        sleeps=[each for each in plan.sleeps if each.pool == pool],
    )
