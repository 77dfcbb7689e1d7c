"""Plans that wake machines of static pools, and have them sleep."""

from typing import Any, Final

import msgspec
import pytest

from kettle_services.scaler.domain.hosts.host import Host
from kettle_services.scaler.domain.outlooks import outlooks
from kettle_services.scaler.domain.planning.planning import Plan
from kettle_wire.ads import Expr
from kettle_wire.commands.outlooks import OutlookKind
from kettle_wire.events.lease import Demand
from kettle_wire.events.plan import Bound
from kettle_wire.worker_pools import Hibernation, HostState, PoolKind, StaticMachine, WorkerPool

from .planning_lab import Lab, job, machine_slot, machines, offer, pool

LONG: Final = 10_000.0


def desks(count: int = 3, **more: Any) -> WorkerPool:
    there = [StaticMachine(name=f"desk{number}") for number in range(1, count + 1)]
    said: dict[str, Any] = {"kind": PoolKind.STATIC, "hibernate": Hibernation.S3, "waking": 0, **more}
    return pool("desks", [offer("desk", 4, 8192, provider="power", machines=there)], **said)


def asleep(lab: Lab, *names: str, **more: Any) -> None:
    for number, name in enumerate(names):
        said: dict[str, Any] = {"state": HostState.ASLEEP, "since": lab.now - 1000 + number, **more}
        lab.hosts[name] = Host(machine=name, pool="desks", offer="desk", **said)


def awake(lab: Lab, *names: str, **more: Any) -> None:
    """They have been awake and idle for long."""
    for name in names:
        lab.slots[f"{name}.slot1"] = machine_slot(name, 4, 8192, CanHibernate=True, **more)
        lab.idle[name] = lab.now - LONG


def woken(plan: Plan) -> list[str]:
    return [each.machine for each in plan.made.wakes]


def slept(plan: Plan) -> list[str]:
    return [each.machine for each in plan.made.sleeps]


def test_a_job_wakes_one_machine_and_no_more_while_that_wakes() -> None:
    """The one that has slept longest; then it counts as coming."""
    lab = Lab(desks())
    asleep(lab, "desk1", "desk2", "desk3")
    lab.queue(1)
    plan = lab.plan()
    assert (["desk1"], []) == (woken(plan), plan.leases)
    [demand] = plan.made.wakes[0].demand
    asleep(lab, "desk1", state=HostState.WAKING, until=lab.now + 100, demand=[demand])
    lab.now += 2
    plan = lab.plan()
    assert [] == woken(plan)
    assert 1 == plan.made.waiting[0].coming


def test_a_machine_that_has_just_woken_is_waited_for_until_it_shows_its_slot() -> None:
    """Else a second one would be woken in between."""
    lab = Lab(desks())
    asleep(lab, "desk2", "desk3")
    lab.hosts["desk1"] = Host(machine="desk1", pool="desks", offer="desk", since=lab.now - 1)
    lab.slots["desk1.slot1"] = machine_slot("desk1", 4, 8192, Draining=True)  # from before
    lab.queue(1)
    assert [] == woken(lab.plan())
    lab.now += 120
    assert 1 == len(woken(lab.plan()))


def test_machines_are_packed_and_what_sleeps_comes_before_what_is_bought() -> None:
    """Ten jobs of a core need three machines of four cores; two sleep, so that the rest is bought."""
    lab = Lab(desks(2), pool("p", [offer(cpus=4, memory=8192)]))
    asleep(lab, "desk1", "desk2")
    lab.queue(10)
    plan = lab.plan()
    assert (["desk1", "desk2"], {"small": 1}) == (sorted(woken(plan)), machines(plan))


def test_what_a_machine_said_when_it_was_awake_decides_whether_it_is_woken() -> None:
    """Its own START refuses, which the pool file does not know."""
    lab = Lab(desks(1))
    slot = machine_slot("desk1", 4, 8192, Start=Expr('TARGET.Owner == "bob"'), Draining=True, State="Claimed")
    asleep(lab, "desk1", slots=[slot])
    lab.queue(1)
    plan = lab.plan()
    assert [] == woken(plan)
    assert "bob" in plan.made.waiting[0].obstacles[0].words
    lab.set_queue(1, job(Owner="bob"))
    assert ["desk1"] == woken(lab.plan())


def test_a_job_that_no_machine_holds_wakes_none() -> None:
    """And is told which clause it is."""
    lab = Lab(desks())
    asleep(lab, "desk1")
    lab.queue(1, job(cpus=5))
    plan = lab.plan()
    assert [] == woken(plan)
    assert "clause" == plan.made.waiting[0].obstacles[0].obstacle


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ({"state": HostState.BROKEN}, Bound.AWAKE),
        ({"again": 2e9}, Bound.AWAKE),
        ({"state": HostState.HIBERNATING}, Bound.AWAKE),
    ],
    ids=["broken", "tried lately", "going to sleep"],
)
def test_machines_that_cannot_be_woken_now_are_not_counted_on(more: dict[str, Any], bound: Bound) -> None:
    """The job waits, and hears why."""
    lab = Lab(desks(1))
    asleep(lab, "desk1", **more)
    lab.queue(1)
    plan = lab.plan()
    assert [] == woken(plan)
    assert [bound.value] == [each.words for each in plan.made.waiting[0].obstacles]


def test_machines_that_failed_are_woken_last() -> None:
    """Of those that may be tried."""
    lab = Lab(desks())
    asleep(lab, "desk1", failures=2)
    asleep(lab, "desk2", "desk3")
    lab.queue(8, job(cpus=1))
    assert ["desk2", "desk3"] == woken(lab.plan())


def test_so_many_wake_at_the_same_time_at_most() -> None:
    """ROOSTER_MAX_UNHIBERNATE."""
    lab = Lab(desks(3, waking=2))
    asleep(lab, "desk1", state=HostState.WAKING, until=lab.now + 100)
    asleep(lab, "desk2", "desk3")
    lab.queue(12)
    plan = lab.plan()
    assert 1 == len(woken(plan))
    assert [Bound.WAKING] == [each.bound for each in plan.made.machines]


def test_idle_machines_sleep_when_nothing_needs_them() -> None:
    """Those that have no job for as long as the pool lets them, and whose owner lets them sleep."""
    lab = Lab(desks(5, idle=600.0))
    awake(lab, "desk1", "desk2", "desk3", "desk4", "desk5")
    lab.idle["desk2"] = lab.now - 599
    lab.slots["desk3.slot1"]["CanHibernate"] = False
    lab.slots["desk4.slot1_1"] = machine_slot("desk4", 1, 1024, State="Claimed", DynamicSlot=True)
    plan = lab.plan()
    assert (["desk1"], {"desk1", "desk2", "desk5"}) == (slept(plan)[:1], set(plan.idle))
    assert ["desk1", "desk5"] == slept(plan)


def test_all_slots_of_a_machine_must_agree() -> None:
    """One with a job keeps it awake."""
    lab = Lab(desks(1))
    awake(lab, "desk1")
    lab.slots["desk1.slot2"] = machine_slot("desk1", 1, 1024, State="Claimed", CanHibernate=True)
    assert [] == slept(lab.plan())


def test_a_job_that_waits_keeps_the_machine_that_it_will_run_on() -> None:
    """And a plan that wakes one puts none to sleep."""
    lab = Lab(desks(2))
    awake(lab, "desk1", "desk2")
    lab.queue(1)
    assert 1 == len(slept(lab.plan()))
    lab.set_queue(12)
    assert [] == slept(lab.plan())


@pytest.mark.parametrize(
    ("more", "left"), [({"min": 2}, 1), ({"spare": 1}, 2), ({}, 3)], ids=["min", "spare", "all"]
)
def test_some_stay_awake_if_the_pool_says_so(more: dict[str, Any], left: int) -> None:
    """The others sleep."""
    lab = Lab(desks(3, **more))
    awake(lab, "desk1", "desk2", "desk3")
    assert left == len(slept(lab.plan()))


def test_a_pool_that_keeps_machines_awake_wakes_them() -> None:
    """`min` of a static pool."""
    lab = Lab(desks(3, min=2))
    asleep(lab, "desk1", "desk2", "desk3")
    assert 2 == len(woken(lab.plan()))


def test_nothing_sleeps_while_we_are_deaf_and_nothing_wakes_while_paused() -> None:
    """Silence on the bus is no idleness; a paused pool says so."""
    lab = Lab(desks(2))
    awake(lab, "desk1")
    lab.sound = False
    assert [] == slept(lab.plan())
    asleep(lab, "desk1", "desk2")
    del lab.slots["desk1.slot1"]
    lab.pause("desks")
    lab.queue(1)
    plan = lab.plan()
    assert [] == woken(plan)
    assert ["paused"] == [each.obstacle for each in plan.made.waiting[0].obstacles]


def test_the_last_ads_of_a_machine_that_sleeps_count_for_nothing() -> None:
    """It cannot take them back."""
    lab = Lab(desks(1))
    lab.slots["desk1.slot1"] = machine_slot("desk1", 4, 8192)
    asleep(lab, "desk1", state=HostState.HIBERNATING)
    lab.queue(1)
    assert 0 == lab.plan().made.waiting[0].free


def test_a_static_pool_that_does_not_hibernate_is_let_be() -> None:
    """Its machines are used, and nothing is decided about them."""
    quiet = msgspec.structs.replace(desks(1), hibernate=Hibernation.NONE)
    lab = Lab(quiet)
    awake(lab, "desk1", KettlePool="desks")
    asleep(lab, "desk1")
    assert ([], []) == (slept(lab.plan()), woken(lab.plan()))
    lab.queue(1)
    assert 1 == lab.plan().made.waiting[0].free


def test_a_job_is_told_which_machine_is_woken_for_it() -> None:
    """And until when."""
    lab = Lab(desks(1))
    asleep(lab, "desk1")
    number = lab.queue(1)
    waiting = lab.plan().made.waiting[0]
    demand = [Demand("ann", "s", str(number), 1)]
    asleep(lab, "desk1", state=HostState.WAKING, until=lab.now + 100, demand=demand)
    [outlook] = outlooks(waiting, lab.pools, {}, lab.hosts)
    assert (OutlookKind.WAKING, ["desk1"], lab.now + 100) == (
        outlook.kind,
        outlook.machines,
        outlook.next_try,
    )
