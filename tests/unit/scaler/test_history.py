"""What was planned, and how many machines there were, at moments of the past."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest

from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.shard import Shard
from kettle_services.scaler.domain.history import MachineHistory, moments
from kettle_services.scaler.plan_views import PlanLog
from kettle_services.scaler.record import SHARD
from kettle_wire.events import Event
from kettle_wire.events.lease import (
    LeaseAccepted,
    LeaseGone,
    LeaseReady,
    LeaseRequested,
    LeaseSubmitting,
    Shape,
)
from kettle_wire.events.plan import PlanMade, PlannedMachines

from .planning_lab import offer

BEGAN = 1_790_000_000.0


def plan(number: int, *, wanted: int = 0) -> tuple[str, PlanMade]:
    machines = [PlannedMachines(pool="p", offer="small", shape=Shape.SHARED, machines=0, wanted=wanted)]
    made = PlanMade(number=number, inputs="", slots=0, leases=0, machines=machines if wanted else [])
    return "plan/made", made


def requested(lease: str = "p-1-0", pool: str = "p") -> tuple[str, LeaseRequested]:
    event = LeaseRequested(lease=lease, pool=pool, offer=offer(), life=600.0, until=BEGAN + 600)
    return f"lease/{lease}", event


STORY: Sequence[tuple[float, list[tuple[str, Event]]]] = (
    (0, [plan(1, wanted=2), requested(), requested("q-1-0", "q")]),
    (10, [("lease/p-1-0", LeaseSubmitting(attempt=1, until=BEGAN + 100))]),
    (20, [("lease/p-1-0", LeaseAccepted(handle="i", until=BEGAN + 100))]),
    (30, [plan(2), ("lease/p-1-0", LeaseReady(until=BEGAN + 600))]),
    (50, [("lease/p-1-0", LeaseGone(words="gone", seconds=30.0))]),
)
"""Seconds, and what is recorded then in one frame."""


def test_machines_are_counted_as_they_were_at_each_moment() -> None:
    """
    One comes, is ready and goes; as long as a bound keeps two more back, they are wanted as well; other pools are left out.
    """
    history = MachineHistory("p", [BEGAN + each for each in (-1, 5, 25, 35, 55)])
    for seconds, recorded in STORY:
        history.goes_on(BEGAN + seconds)
        for stream, event in recorded:
            if isinstance(event, PlanMade):
                history.planned(event.machines)
            else:
                history.lease(stream, event, BEGAN + seconds)
    history.goes_on(float("inf"))
    assert {"wanted": [0, 3, 3, 1, 0], "coming": [0, 1, 1, 0, 0], "ready": [0, 0, 0, 1, 0]} == history.series


def test_moments_are_equally_far_from_each_other() -> None:
    """The first and the last are among them."""
    assert [0.0, 2.5, 5.0, 7.5, 10.0] == moments(0.0, 10.0, 5)


@asynccontextmanager
async def told() -> AsyncGenerator[tuple[PlanLog, int]]:
    """The story in a log, and the number of its last frame."""
    log = MemoryLog()
    async with Shard.own(log, SHARD, owner="me") as shard:
        committer = asyncio.create_task(shard.run())
        for seconds, recorded in STORY:
            await shard.record(recorded, now_us=int((BEGAN + seconds) * 1e6))
        yield PlanLog(log), shard.frame
        committer.cancel()
        await asyncio.gather(committer, return_exceptions=True)


@pytest.mark.parametrize(("seconds", "number"), [(-1, 0), (0, 1), (29, 1), (30, 2), (1000, 2)])
async def test_the_plan_in_force_is_the_last_one_before_the_moment(seconds: float, number: int) -> None:
    """Before the first plan there is none; frames without a plan are passed over."""
    async with told() as (log, head):
        found = await log.at(BEGAN + seconds, head=head)
    assert number == (found.plan.number if found is not None else 0)


async def test_the_log_tells_how_many_machines_there_were() -> None:
    """The series have a value for each moment, and nothing is missing in a log that is read whole."""
    async with told() as (log, head):
        found = await log.machines("p", since=BEGAN + 5, until=BEGAN + 35, points=3, head=head)
    assert ([3, 3, 1], [1, 1, 0], [0, 0, 1]) == (found.wanted, found.coming, found.ready)
    assert 0.0 == found.complete_since
