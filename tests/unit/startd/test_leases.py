"""What a machine of a lease does beside what others do."""

from types import SimpleNamespace
from typing import cast

import pytest

from kettle.bus.ports import RefusedError
from kettle.classad import ClassAd, evaluate, parse
from kettle_services.startd.commands.handlers import Handlers
from kettle_services.startd.domain.policy import draining, failing
from kettle_services.startd.domain.policy.draining import DrainRefused
from kettle_services.startd.domain.state.claim import DrainInForce
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.startd import Startd
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord, Usage
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import CancelDrain, Drain
from kettle_wire.identity import daemon, user
from kettle_wire.jobs import JobId

from .hosts import NOW, claimed, machine


def result(code: int | None = 1, *, wall: float = 1.0) -> AttemptResult:
    usage = Usage(wall=wall)
    if code is None:
        lost = Ending(code=VacateCode.StarterError, reason="the starter died")
        return AttemptResult(ending=lost, usage=usage)
    return AttemptResult(exit=ExitRecord(code=code), usage=usage)


@pytest.mark.parametrize(
    ("found", "bad"),
    [(result(), True), (result(None), True), (result(0), False), (result(wall=11.0), False)],
)
def test_what_ends_soon_and_badly_has_failed(found: AttemptResult, *, bad: bool) -> None:
    """By itself or by the machine; what ran for a while may have been wrong itself."""
    assert bad == failing.failed(found, within=10.0)


def row(*jobs: str, most: int = 3) -> failing.Row:
    found: failing.Row = ()
    for job in jobs:
        found = failing.after(found, JobId.parse(job.strip("+")), failed="+" not in job, most=most)
    return found


@pytest.mark.parametrize(
    ("jobs", "condemned"),
    [
        (["1.0", "2.0"], False),
        (["1.0", "2.0", "1.1"], True),
        (["1.0", "1.0", "2.0"], False),
        (["1.0", "2.0", "3.0+", "1.1"], False),
        ([f"1.{number}" for number in range(11)], False),
        ([f"1.{number}" for number in range(12)], True),
    ],
)
def test_different_jobs_that_fail_in_a_row_condemn_the_machine(jobs: list[str], *, condemned: bool) -> None:
    """
    One job again and again, or one that did well (+), does not; of a single bad submission it takes four times as many.
    """
    assert condemned == failing.condemns(row(*jobs), 3)
    assert not failing.condemns(row(*jobs), 0)


def test_an_idle_machine_is_drained_and_another_is_not() -> None:
    """
    A claim that is there wins, as do results that have not arrived; said again by who has won it is no refusal.
    """
    wish = DrainInForce(id="w", speed="graceful", at=0.0)
    busy = machine()
    claimed(busy)
    with pytest.raises(DrainRefused, match=r"has 1 claim\(s\)"):
        draining.require_idle(busy, wish, results=0)
    idle = machine()
    with pytest.raises(DrainRefused, match="have not arrived"):
        draining.require_idle(idle, wish, results=2)
    draining.require_idle(idle, wish, results=0)
    for change in draining.begin(idle, wish, "", NOW):
        idle.apply(change)
    assert [] == claimed(idle).granted
    draining.require_idle(idle, wish, results=2)


@pytest.mark.parametrize(
    ("job", "taken"),
    [
        ({}, True),
        ({"AllowedExecuteDuration": 300}, True),
        ({"AllowedExecuteDuration": 301}, False),
        ({"AllowedJobDuration": 301}, False),
        ({"AllowedExecuteDuration": 10, "AllowedJobDuration": 301}, True),
    ],
)
def test_a_job_that_may_outlive_the_machine_is_not_taken(job: Ad, *, taken: bool) -> None:
    """As far as it says for how long it may run."""
    start = StartdSettings(lease_ends=9000.0, start="TARGET.Owner =!= undefined").policy["START"]
    mine, other = ClassAd.from_wire({"TimeToLive": 300}), ClassAd.from_wire({"Owner": "ada", **job})
    assert taken is evaluate(parse(start), mine, other)
    assert evaluate(parse(start), mine, ClassAd.from_wire(job)) is False


class Overseer:
    """Drains whatever it is told to."""

    def __init__(self) -> None:
        self.drained: list[str] = []

    def drain(self, wish: DrainInForce, check: str) -> None:
        assert not check
        self.drained.append(wish.id)

    def cancel(self, request: str) -> None:
        self.drained.remove(request)


@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "of nobody"])
async def test_who_may_drain_a_machine(*, scaled: bool) -> None:
    """
    The scaler those of leases and those that may hibernate, and no service any other one; administrators all.
    """
    overseer = Overseer()
    startd = SimpleNamespace(machine=machine(), overseer=overseer, reporter=SimpleNamespace(unconfirmed=0))
    handlers = Handlers(cast("Startd", startd), scaled=scaled)
    fence, release = Drain(id="hibernate", idle=True), CancelDrain(request="hibernate")
    if scaled:
        await handlers.drain(fence, daemon("scaler"))
        assert ["hibernate"] == overseer.drained
        await handlers.cancel_drain(release, daemon("scaler"))
    else:
        for asked in (
            handlers.drain(fence, daemon("scaler")),
            handlers.cancel_drain(release, daemon("scaler")),
        ):
            with pytest.raises(RefusedError, match="may not hibernate"):
                await asked
    assert [] == overseer.drained
    await handlers.drain(fence, user("root"))
    assert ["hibernate"] == overseer.drained
