"""Which leases end, and which stay."""

import msgspec
import pytest

from kettle_services.scaler.domain.planning.shrinking import next_idle
from kettle_wire.events.lease import LeaseRequested
from kettle_wire.events.plan import PlanMade, RemovalCause
from kettle_wire.leases import LeaseState
from kettle_wire.worker_pools import PoolKind, ScaleDown, WorkerPool

from .planning_lab import Lab, job, offer, pool


def removed(plan: PlanMade) -> dict[str, RemovalCause]:
    return {each.lease: each.cause for each in plan.removals}


def grown(count: int, *pools: WorkerPool) -> tuple[Lab, list[str]]:
    """A pool whose machines are there, and nothing waits any more."""
    lab = Lab(*pools)
    lab.queue(8 * count)
    leases = lab.act(lab.plan())
    lab.ready(*leases)
    lab.requests = {}
    return lab, leases


def test_a_machine_goes_when_it_was_idle_long_enough() -> None:
    """Not a second before."""
    lab, leases = grown(2, pool(idle=600.0))
    lab.now += 599
    assert {} == removed(lab.plan().made)
    lab.now += 1
    assert dict.fromkeys(leases, RemovalCause.IDLE) == removed(lab.plan().made)


def test_when_the_next_machine_was_idle_long_enough_is_known() -> None:
    """
    A plan is made then, whatever else happens; machines with jobs, and those that are due already, are no reason.
    """
    lab, [first, second] = grown(2, pool(idle=600.0))
    assert 600.0 == next_idle(lab.leases.values(), lab.pools, lab.now)
    lab.busy(first)
    assert 600.0 == next_idle(lab.leases.values(), lab.pools, lab.now)
    lab.now += 599
    assert 1.0 == next_idle(lab.leases.values(), lab.pools, lab.now)
    lab.now += 1
    assert dict.fromkeys([second], RemovalCause.IDLE) == removed(lab.plan().made)
    assert float("inf") == next_idle(lab.leases.values(), lab.pools, lab.now)


def test_a_machine_on_which_something_would_run_stays() -> None:
    """A job that came at the last second keeps one of two."""
    lab, leases = grown(2, pool(idle=600.0))
    lab.now += 600
    lab.queue(1)
    assert {leases[1]: RemovalCause.IDLE} == removed(lab.plan().made)


def test_machines_with_jobs_stay() -> None:
    """However long their pool has nothing to do."""
    lab, [first, second] = grown(2, pool())
    lab.busy(first)
    lab.now += 10_000
    assert {second: RemovalCause.IDLE} == removed(lab.plan().made)


def test_a_pool_keeps_its_least_and_its_spare_machines() -> None:
    """`min` in all; `spare` of those that have no job."""
    lab, leases = grown(4, pool(min=3))
    lab.now += 600
    assert 1 == len(removed(lab.plan().made))
    lab.apply(pool(spare=2))
    assert 2 == len(removed(lab.plan().made))
    lab.busy(*leases[:3])
    assert {} == removed(lab.plan().made)


def test_a_machine_that_was_made_for_one_job_does_not_stay_without_it() -> None:
    """Thirty seconds, whatever its pool says of others."""
    lab = Lab(pool())
    lab.queue(1, job(8))
    [lease] = lab.act(lab.plan())
    lab.ready(lease)
    lab.requests = {}
    lab.now += 29
    assert {} == removed(lab.plan().made)
    lab.now += 1
    lab.leases[lease] = msgspec.structs.replace(lab.leases[lease], made=lab.now - 601)
    assert {lease: RemovalCause.IDLE} == removed(lab.plan().made)


def test_what_was_not_asked_for_yet_is_withdrawn_with_its_demand() -> None:
    """What is being made stays: it may be of use to the next who comes."""
    lab = Lab(pool())
    lab.queue(16)
    first, second = lab.act(lab.plan())
    lab.accept(first)
    lab.requests = {}
    assert {second: RemovalCause.UNNEEDED} == removed(lab.plan().made)


def test_what_a_person_has_ordered_comes_and_stays_as_long_as_it_may_be_idle() -> None:
    """No job waits for it, and may never: that is for the person to know. Then it goes as all others do."""
    lab = Lab(pool(idle=300.0))
    ordered = LeaseRequested(
        lease="p-by-1", pool="p", offer=offer(), life=10_000.0, until=lab.now + 600.0, by="root"
    )
    lab.record("p-by-1", ordered)
    assert {} == removed(lab.plan().made)
    lab.accept("p-by-1")
    assert {} == removed(lab.plan().made)
    lab.ready("p-by-1")
    lab.now += 299
    assert {} == removed(lab.plan().made)
    lab.now += 302
    assert {"p-by-1": RemovalCause.IDLE} == removed(lab.plan().made)


def test_a_pool_does_not_grow_and_shrink_in_one_plan() -> None:
    """What is idle waits until what is needed is there."""
    lab, leases = grown(1, pool(idle=600.0))
    lab.now += 700
    lab.queue(1, job(1, 15_000, Owner="bob"))
    lab.slots[f"{leases[0]}.slot1"]["Start"] = False
    plan = lab.plan()
    assert (1, {}) == (len(plan.leases), removed(plan.made))


@pytest.mark.parametrize("mode", ScaleDown)
def test_what_is_done_when_a_pool_is_to_be_smaller(mode: ScaleDown) -> None:
    """
    A queue of a batch system is asked for less; idle machines go at once; those with jobs only by force.
    """
    lab, [busy, idle] = grown(2, pool(idle=600.0))
    lab.busy(busy)
    lab.queue(16)
    [queued, *others] = lab.act(lab.plan())
    lab.accept(*others)
    lab.requests = {}
    lab.queue(100)
    lab.apply(pool(max=0, scale_down=mode, idle=600.0))
    plan = lab.plan().made
    expected = {
        ScaleDown.STOP_ASKING: {queued, *others},
        ScaleDown.DRAIN: {queued, *others, idle},
        ScaleDown.FORCE: {queued, *others, idle, busy},
    }
    assert dict.fromkeys(expected[mode], RemovalCause.MAX) == removed(plan)
    assert {mode is ScaleDown.FORCE} == {each.force for each in plan.removals}


def test_batch_queues_keep_what_they_have_given() -> None:
    """With `stop-asking` an idle machine stays until its time is over, and what is queued is withdrawn."""
    lab, _ = grown(1, pool(scale_down=ScaleDown.STOP_ASKING))
    lab.now += 10_000
    assert {} == removed(lab.plan().made)
    lab.queue(16)
    [queued] = lab.act(lab.plan())
    lab.accept(queued)
    lab.requests = {}
    assert {queued: RemovalCause.UNNEEDED} == removed(lab.plan().made)


def test_a_pool_that_is_paused_with_its_machines_or_given_up_has_them_all_go() -> None:
    """Also those with jobs, which end there first."""
    lab, leases = grown(2, pool())
    lab.busy(leases[0])
    lab.pause("p")
    assert {} == removed(lab.plan().made)
    lab.pause("p", drain=True)
    assert dict.fromkeys(leases, RemovalCause.POOL) == removed(lab.plan().made)


def test_a_pool_that_has_spent_its_budget_gives_up_its_machines_until_midnight() -> None:
    """And makes none."""
    lab, leases = grown(2, pool(budget=10.0, currency="EUR", offers=[offer(price=1.0, currency="EUR")]))
    lab.spent["p"] = 10.0
    lab.queue(100)
    plan = lab.plan()
    assert (dict.fromkeys(leases, RemovalCause.BUDGET), []) == (removed(plan.made), plan.leases)


def test_what_is_dear_goes_first_and_what_is_not_made_any_more_before_it() -> None:
    """Of machines that are all idle."""
    dear, cheap = offer("dear", price=2.0, currency="EUR"), offer("cheap", price=1.0, currency="EUR")
    lab = Lab(pool(offers=[dear, cheap], min=3))
    for name, one in (("p-1-1", cheap), ("p-1-2", dear), ("p-1-3", offer("old", price=0.5, currency="EUR"))):
        lab.record(name, LeaseRequested(lease=name, pool="p", offer=one, life=86_400.0, until=lab.now))
        lab.ready(name)
    lab.now += 700
    order: list[str] = []
    for least in (2, 1, 0):
        lab.apply(pool(offers=[dear, cheap], min=least))
        plan = lab.plan()
        order += removed(plan.made)
        lab.act(plan)
    assert ["p-1-3", "p-1-2", "p-1-1"] == order


def test_the_others_of_a_gang_go_when_one_did_not_come_in_time() -> None:
    """They are kept for a while, for what is missing to come."""
    lab = Lab(pool(max=4))
    lab.queue(1, job(2), nodes=4)
    leases = lab.act(lab.plan())
    lab.ready(*leases[1:])
    lab.accept(leases[0])
    assert {} == removed(lab.plan().made)
    lab.now += 301
    assert dict.fromkeys(leases, RemovalCause.GANG) == removed(lab.plan().made)


def test_a_machine_is_given_up_when_its_jobs_have_waited_long_enough_for_it() -> None:
    """`maximumIdleTimePerResource`: another is tried."""
    lab = Lab(pool())
    lab.queue(1, job(ProminenceMaximumIdleTime=120))
    [lease] = lab.act(lab.plan())
    lab.accept(lease)
    lab.now += 119
    assert {} == removed(lab.plan().made)
    lab.now += 1
    assert {lease: RemovalCause.PATIENCE} == removed(lab.plan().made)


def test_static_machines_and_young_ones_stay() -> None:
    """`least_life` is kept."""
    lab, _ = grown(1, pool(least_life=3000.0))
    lab.now += 1000
    assert {} == removed(lab.plan().made)
    lab.apply(pool(kind=PoolKind.STATIC))
    lab.now += 10_000
    assert {} == removed(lab.plan().made)


def test_silence_is_no_reason_to_remove_machines() -> None:
    """While nothing is heard on the bus, that nothing waits means nothing."""
    lab, _ = grown(2, pool())
    lab.now += 10_000
    lab.sound = False
    assert {} == removed(lab.plan().made)


def test_a_machine_with_few_jobs_takes_no_more_if_others_have_room_for_them() -> None:
    """One after the other, when that was so for as long as the pool says, and while nothing waits."""
    lab, leases = grown(3, pool(consolidate=120.0, max=3))
    lab.runs(leases[0], (4, 4096))
    lab.runs(leases[1], (1, 1024))
    lab.runs(leases[2], (6, 8192))
    assert {} == removed(lab.plan().made)
    lab.now += 119
    assert {} == removed(lab.plan().made)
    lab.now += 1
    assert {leases[1]: RemovalCause.SPARSE} == removed(lab.plan().made)
    lab.set_queue(40)
    assert {} == removed(lab.plan().made)
    lab.requests = {}
    assert {} == removed(lab.plan().made)


def test_no_more_machines_go_than_the_pool_can_spare() -> None:
    """One that has been idle too long is counted among those that have few jobs."""
    lab, leases = grown(3, pool(consolidate=120.0, idle=600.0, min=2, max=3))
    lab.runs(leases[0], (4, 4096))
    lab.runs(leases[1], (1, 1024))
    lab.plan()
    lab.now += 600
    assert {leases[2]: RemovalCause.IDLE} == removed(lab.plan().made)


def test_a_machine_whose_jobs_have_no_room_elsewhere_goes_on() -> None:
    """Cores alone are not enough, and a pool that does not want it keeps all."""
    for consolidate in (60.0, 0.0):
        lab, leases = grown(2, pool(max=2, consolidate=consolidate))
        lab.runs(leases[0], (4, 16_000))
        lab.runs(leases[1], (1, 1024))
        lab.plan()
        lab.now += 600
        assert {} == removed(lab.plan().made)


def test_a_trickle_of_jobs_makes_no_waves() -> None:
    """
    For half an hour a job comes every half minute and runs for twenty seconds: one machine is made, and stays.
    """
    lab = Lab(pool(idle=600.0, waits=5.0))
    made, gone = 0, 0
    for step in range(360):
        lab.now += 5
        states = {lease.state: name for name, lease in lab.leases.items()}
        if step % 6 == 0:
            lab.set_queue(1)
        elif step % 6 == 1 and LeaseState.READY in states:
            lab.set_queue(0)
            lab.busy(states[LeaseState.READY])
        elif step % 6 == 5:
            lab.ready(*lab.leases)
        plan = lab.plan()
        lab.act(plan)
        made, gone = made + len(plan.leases), gone + len(plan.made.removals)
    assert (1, 0) == (made, gone)
