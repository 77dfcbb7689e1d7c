"""
No person's jobs take a whole pool that is everybody's, where its file says how many machines they may have.
"""

from collections import Counter

from kettle_services.scaler.domain.planning.owner_bounds import made_for, person_of
from kettle_wire.events.plan import Bound, Obstacle

from .planning_lab import Lab, job, offer, pool


def of_people(lab: Lab) -> Counter[str]:
    """How many machines were ordered for each person."""
    return Counter(made_for(lease) for lease in lab.plan().leases)


def test_one_queue_does_not_take_the_pool() -> None:
    """Who has many jobs has two machines, others theirs, and both are told what keeps them from more."""
    lab = Lab(pool(max=4, max_machines_per_owner=2))
    lab.queue(200, submitter="ann")
    lab.queue(24, submitter="bob")
    plan = lab.plan()
    assert {"ann": 2, "bob": 2} == Counter(made_for(lease) for lease in plan.leases)
    told = {each.submitter: each.obstacles[0] for each in plan.made.waiting}
    assert {(Obstacle.BOUND, Bound.POOL_MAX.value)} == {(each.obstacle, each.words) for each in told.values()}

    wide = Lab(pool(max=100, max_machines_per_owner=2))
    wide.queue(200, submitter="ann")
    plan = wide.plan()
    [obstacle] = plan.made.waiting[0].obstacles
    assert (2, Bound.OWNER_MAX.value) == (len(plan.leases), obstacle.words)
    assert Bound.OWNER_MAX is plan.made.machines[0].bound


def test_machines_that_there_are_count() -> None:
    """Also those that are on their way; when one is gone there may be another."""
    lab = Lab(pool(max_machines_per_owner=2))
    lab.queue(200)
    first = lab.cycle()
    assert (2, 0) == (len(first.leases), len(lab.cycle().leases))
    del lab.leases[first.leases[0].lease]
    assert 1 == len(lab.plan().leases)


def test_a_person_is_one_in_all_accounting_groups() -> None:
    """And for machines of all offers, and those that run one job."""
    lab = Lab(pool(offers=[offer("small"), offer("large", 64, 131_072)], max_machines_per_owner=3))
    lab.queue(100, submitter="group_a.ann@pool")
    lab.queue(100, job(60, 100_000), submitter="group_b.ann@pool")
    assert {"ann": 3} == of_people(lab)
    assert "ann" == person_of("ann") == person_of("group_a.sub.ann@pool")


def test_without_the_setting_nobody_is_bound() -> None:
    """The pool's own maximum is all there is."""
    lab = Lab(pool(max=25))
    lab.queue(400)
    assert {"ann": 25} == of_people(lab)
