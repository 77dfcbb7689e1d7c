"""Plans: which machines are asked for, and why not more."""

import pytest

from kettle.matchmaking import Claimant, GroupRule, LimitRules, Policy, Tree
from kettle_services.scaler.domain.leases.breakers import Closure, OfferRecord, TemplateRecord
from kettle_services.scaler.domain.planning.inputs import Room
from kettle_services.scaler.domain.planning.launches import patience_of
from kettle_services.scaler.domain.planning.matching import Rights
from kettle_wire.ads import Expr
from kettle_wire.events.lease import Shape
from kettle_wire.events.plan import Bound, Obstacle
from kettle_wire.worker_pools import PoolKind

from .planning_lab import REQUIREMENTS, Lab, job, machine_slot, machines, offer, pool


def test_jobs_are_packed_on_as_few_machines_as_hold_them() -> None:
    """Sixty jobs of one core need eight machines of eight."""
    lab = Lab(pool())
    lab.queue(60)
    plan = lab.plan()
    assert {"small": 8} == machines(plan)
    [group] = plan.made.waiting
    assert (60, 60, [], "1.0") == (group.jobs, group.planned, group.obstacles, group.example)


def test_what_is_free_is_used_first() -> None:
    """Machines are asked for what does not fit on those that are there."""
    lab = Lab(pool())
    lab.slots["desk.slot1"] = machine_slot("desk", 4, 100_000)
    lab.queue(12)
    plan = lab.plan()
    assert {"small": 1} == machines(plan)
    assert (4, 8) == (plan.made.waiting[0].free, plan.made.waiting[0].planned)


def test_slots_of_a_machine_without_a_lease_are_not_counted_on() -> None:
    """A machine that was taken back cannot say so: its slots are shown until the collector forgets them."""
    lab = Lab(pool())
    lab.queue(8)
    (lease,) = lab.act(lab.plan())
    lab.ready(lease)
    lab.slots[f"{lease}.slot1"]["KettlePool"] = "p"
    assert {} == machines(lab.cycle())
    del lab.leases[lease]
    assert {"small": 1} == machines(lab.cycle())


def test_memory_counts_as_much_as_cores() -> None:
    """A machine with free cores and no memory is of no use, so others are asked for."""
    lab = Lab(pool())
    lab.slots["desk.slot1"] = machine_slot("desk", 64, 100)
    lab.queue(4, job(1, 8_000))
    assert {"small": 2} == machines(lab.plan())


def test_machines_on_their_way_are_not_asked_for_twice() -> None:
    """A slow provider makes no waves: however often is planned, there are as many as were needed once."""
    lab = Lab(pool())
    lab.queue(60)
    first = lab.cycle()
    others = [lab.cycle() for _ in range(5)]
    assert 8 == len(first.leases) == len(lab.leases)
    assert [0] * 5 == [len(plan.leases) for plan in others]
    assert 60 == others[-1].made.waiting[0].coming


def test_a_large_job_gets_the_smallest_machine_that_holds_it_for_itself() -> None:
    """No small job goes there."""
    lab = Lab(pool(offers=[offer(), offer("middle", 16, 65_536), offer("large", 64, 262_144)]))
    lab.queue(2, job(40, 1024, Owner="bob"), submitter="bob")
    lab.queue(8)
    plan = lab.plan()
    shapes = {(lease.offer.name, lease.shape) for lease in plan.leases}
    assert {("large", Shape.DEDICATED), ("small", Shape.SHARED)} == shapes
    assert {"large": 2, "small": 1} == machines(plan)
    lab.act(plan)
    lab.ready(*(lease.lease for lease in plan.leases if lease.shape is Shape.DEDICATED))
    again = lab.plan()
    counts = {group.submitter: (group.free, group.coming) for group in again.made.waiting}
    assert {"bob": (2, 0), "ann": (0, 8)} == counts


def test_a_dedicated_machine_runs_exactly_one_job() -> None:
    """Two jobs that would fit on one machine of a pool of dedicated machines get one each."""
    lab = Lab(pool(kind=PoolKind.DEDICATED))
    lab.queue(2)
    assert {"small": 2} == machines(lab.plan())


def test_a_job_that_no_machine_can_hold_says_which_clause_refuses() -> None:
    """Nothing is asked for, and each offer has its reason."""
    lab = Lab(pool(offers=[offer(), offer("gpu", 8, 16_384, gpus=2)]))
    lab.queue(1, job(64, 1024))
    lab.queue(1, job(1, 1024, Requirements=Expr(f'{REQUIREMENTS} && TARGET.Color == "red"')))
    plan = lab.plan()
    assert [] == plan.leases
    large, red = plan.made.waiting
    assert [("small", Obstacle.CLAUSE), ("gpu", Obstacle.CLAUSE)] == [
        (each.offer, each.obstacle) for each in large.obstacles
    ]
    assert {"TARGET.Cpus >= RequestCpus"} == {each.words for each in large.obstacles}
    assert {'TARGET.Color == "red"'} == {each.words for each in red.obstacles}


def test_a_job_that_runs_longer_than_machines_live_gets_none() -> None:
    """Not one machine is made for it, and the reason has both numbers."""
    lab = Lab(pool(life=3600.0, offers=[offer(boot=60.0)]))
    lab.queue(1, job(AllowedExecuteDuration=3600))
    plan = lab.plan()
    assert [] == plan.leases
    [obstacle] = plan.made.waiting[0].obstacles
    assert Obstacle.LIFE is obstacle.obstacle
    assert "3600" in obstacle.words
    assert "3480" in obstacle.words


def test_pools_are_for_those_whom_they_name() -> None:
    """The machines take nobody else's jobs either."""
    lab = Lab(pool(owners=["bob"], kind=PoolKind.USER))
    lab.queue(1)
    plan = lab.plan()
    assert [] == plan.leases
    assert [Obstacle.OWNER] == [each.obstacle for each in plan.made.waiting[0].obstacles]
    lab.queue(1, job(Owner="bob"), submitter="bob")
    plan = lab.plan()
    assert {"small": 1} == machines(plan)
    [lease] = plan.leases
    assert "bob" == lease.owner
    lab.act(plan)
    lab.ready(lease.lease)
    assert [0, 1] == [
        group.free for group in sorted(lab.plan().made.waiting, key=lambda each: each.submitter)
    ]


def test_pools_of_groups_serve_their_groups() -> None:
    """Also the groups below them."""
    lab = Lab(pool(groups=["physics"]))
    lab.queue(1, job(Owner="bob"), submitter="Physics.theory.bob")
    lab.queue(1, job(Owner="eve"), submitter="physicists.eve")
    plan = lab.plan()
    assert [("Physics.theory.bob", 1), ("physicists.eve", 0)] == [
        (group.submitter, group.planned) for group in plan.made.waiting
    ]


@pytest.mark.parametrize(
    ("wish", "kind", "expected"),
    [
        ("none", PoolKind.SHARED, {}),
        ("shared", PoolKind.SHARED, {"small": 1}),
        ("shared", PoolKind.DEDICATED, {}),
        ("dedicated", PoolKind.SHARED, {"small": 2}),
        ("dedicated", PoolKind.DEDICATED, {"small": 2}),
    ],
)
def test_the_scaling_that_a_document_asks_for(wish: str, kind: PoolKind, expected: dict[str, int]) -> None:
    """`autoScalingType` of a document decides which machines are made for its jobs, if any."""
    lab = Lab(pool(kind=kind))
    lab.queue(2, job(ProminenceAutoScalingType=wish))
    plan = lab.plan()
    assert expected == machines(plan)
    if not expected:
        assert [(Obstacle.SCALING, wish)] == [
            (each.obstacle, each.words) for each in plan.made.waiting[0].obstacles
        ]


def test_required_and_preferred_places() -> None:
    """
    Placement of a document: a required site is the only one, and of two that cost the same the preferred one is taken.
    """
    places = [offer("here", site="CERN"), offer("there", site="RAL")]
    lab = Lab(pool(offers=places))
    lab.queue(1, job(Requirements=Expr(f'{REQUIREMENTS} && member(TARGET.Site, {{"RAL"}})')))
    assert {"there": 1} == machines(lab.plan())
    lab.set_queue(1, job(Rank=Expr('(member(TARGET.Site, {"RAL"}) =?= true) ? 2 : 0')))
    assert {"there": 1} == machines(lab.plan())
    lab.set_queue(1, job(Rank=Expr('(member(TARGET.Site, {"CERN"}) =?= true) ? 2 : 0')))
    assert {"here": 1} == machines(lab.plan())


def test_a_preferred_site_that_is_dead_is_not_insisted_on() -> None:
    """What is liked wins against small differences, and not against failures."""
    lab = Lab(pool(offers=[offer("here", site="CERN"), offer("there", site="RAL")]))
    lab.queue(1, job(Rank=Expr('TARGET.Site == "RAL" ? 2 : 0')))
    lab.offers["p.there"] = OfferRecord(bad=10.0, at=lab.now)
    assert {"here": 1} == machines(lab.plan())


def test_the_cheaper_offer_is_taken_and_a_preference_can_change_that() -> None:
    """Price, preference and the time to boot all count."""
    offers = [offer("dear", price=1.1, currency="EUR"), offer("cheap", price=1.0, currency="EUR")]
    lab = Lab(pool(offers=offers))
    lab.queue(1)
    assert {"cheap": 1} == machines(lab.plan())
    lab.apply(pool(offers=[offer("dear", price=1.1, currency="EUR", preference=90.0), offers[1]]))
    assert {"dear": 1} == machines(lab.plan())
    lab.apply(pool(offers=[offers[0], offer("cheap", price=1.0, currency="EUR", boot=1200.0)]))
    assert {"dear": 1} == machines(lab.plan())


def test_what_never_failed_is_better_than_what_did() -> None:
    """Of two offers that are alike the one that failed lately is left alone."""
    lab = Lab(pool(offers=[offer("one"), offer("two")]))
    lab.queue(1)
    assert {"one": 1} == machines(lab.plan())
    lab.offers["p.one"] = OfferRecord(bad=3.0, good=1.0, at=lab.now)
    assert {"two": 1} == machines(lab.plan())


def test_never_more_than_the_pool_and_the_offer_may_have() -> None:
    """What is left waits for its bound."""
    lab = Lab(pool(max=3))
    lab.queue(100)
    plan = lab.plan()
    assert {"small": 3} == machines(plan)
    [planned] = plan.made.machines
    assert (3, 13, Bound.POOL_MAX) == (planned.machines, planned.wanted, planned.bound)
    [obstacle] = plan.made.waiting[0].obstacles
    assert (Obstacle.BOUND, "pool max") == (obstacle.obstacle, obstacle.words)
    lab.apply(pool(offers=[offer(max=2), offer("large", 64, 65_536, max=1)]))
    assert {"small": 2, "large": 1} == machines(lab.plan())


def test_machines_in_doubt_count() -> None:
    """A provider that was asked and did not answer may have made it."""
    lab = Lab(pool(max=2))
    lab.queue(100)
    lab.cycle()
    lab.queue(100)
    assert [] == lab.plan().leases


def test_those_with_the_better_right_come_first_where_there_is_not_room_for_all() -> None:
    """The one machine that there may be is for who has used less."""
    lab = Lab(pool(max=1))
    lab.rights = Rights(
        claimants=[Claimant(name="ann", priority=1000.0), Claimant(name="bob", priority=500.0)]
    )
    lab.queue(8, submitter="ann")
    lab.queue(5, submitter="bob")
    plan = lab.plan()
    assert [("bob", 5), ("ann", 3)] == [(group.submitter, group.planned) for group in plan.made.waiting]


def test_what_the_provider_has_no_room_for_is_made_elsewhere() -> None:
    """What was asked for since the room was asked counts as used."""
    lab = Lab(pool(offers=[offer("one", provider="one"), offer("two", 8, 20_000, provider="two")]))
    lab.rooms["one"] = Room(cpus=16, at=lab.now - 1)
    lab.queue(24)
    plan = lab.cycle()
    assert {"one": 2, "two": 1} == machines(plan)
    lab.queue(8)
    assert {"two": 1} == machines(lab.plan())


def test_a_budget_is_not_exceeded() -> None:
    """A machine costs an hour at least; demand for a hundred hours gets what ten hours pay for."""
    lab = Lab(pool(budget=10.0, currency="EUR", offers=[offer(price=1.0, currency="EUR")]))
    lab.queue(800)
    plan = lab.plan()
    assert {"small": 10} == machines(plan)
    assert Bound.BUDGET is plan.made.machines[0].bound
    lab.spent["p"] = 4.5
    assert {"small": 5} == machines(lab.plan())


def test_a_new_template_is_tried_with_one_machine() -> None:
    """Others are not bought elsewhere meanwhile."""
    lab = Lab(
        pool(offers=[offer("new"), offer("large", 64, 131_072, price=50.0, currency="EUR")]), proven=False
    )
    lab.queue(60)
    plan = lab.cycle()
    assert {"new": 1} == machines(plan)
    assert {("new", Bound.CANARY)} == {(each.offer, each.bound) for each in plan.made.machines}
    assert [] == lab.cycle().leases
    lab.ready(*lab.leases)
    lab.templates = dict.fromkeys(lab.templates, TemplateRecord(proven=True))
    assert {"new": 7} == machines(lab.plan())


def test_while_machines_fail_few_are_tried() -> None:
    """Four, or twice as many as became ready lately."""
    lab = Lab(pool())
    lab.offers["p.small"] = OfferRecord(bad=5.0, good=5.0, at=lab.now)
    lab.queue(200)
    plan = lab.plan()
    assert {"small": 4} == machines(plan)
    assert Bound.RAMP is plan.made.machines[0].bound


def test_a_closed_offer_is_left_alone_until_its_time() -> None:
    """The next one is taken at once, and the reason has the time and the provider's words."""
    lab = Lab(pool(offers=[offer("one"), offer("two", cpus=4)]))
    lab.offers["p.one"] = OfferRecord(closed=Closure("InsufficientInstanceCapacity", lab.now + 300, 1))
    lab.queue(4)
    lab.queue(1, job(6, 1024))
    plan = lab.plan()
    assert {"two": 1} == machines(plan)
    closed = plan.made.waiting[1].obstacles[0]
    assert (Obstacle.CLOSED, lab.now + 300) == (closed.obstacle, closed.until)
    assert "InsufficientInstanceCapacity" in closed.words
    lab.now += 301
    lab.queue(100)
    assert 1 == machines(lab.plan()).get("one")


def test_a_plan_asks_for_so_many_at_most() -> None:
    """The rest comes with the next plan."""
    lab = Lab(pool())
    lab.max_actions = 5
    lab.queue(60)
    plans = [lab.cycle() for _ in range(3)]
    assert [5, 3, 0] == [len(plan.leases) for plan in plans]
    assert Bound.ACTIONS is plans[0].made.machines[0].bound


def test_a_paused_pool_makes_nothing() -> None:
    """The jobs say that it is paused."""
    lab = Lab(pool())
    lab.pause("p")
    lab.queue(1)
    plan = lab.plan()
    assert [] == plan.leases
    assert [Obstacle.PAUSED] == [each.obstacle for each in plan.made.waiting[0].obstacles]


def test_who_may_not_run_more_wants_no_machines() -> None:
    """Ceilings, quotas of groups and concurrency limits bound what is asked for."""
    lab = Lab(pool())
    lab.rights = Rights(claimants=[Claimant(name="ann", used=6.0, ceiling=16.0)])
    lab.queue(80)
    plan = lab.plan()
    assert ({"small": 2}, 70) == (machines(plan), plan.made.waiting[0].limited)
    lab.rights = Rights(groups=Policy(Tree({"a": GroupRule(quota=8.0)})))
    lab.requests = {}
    lab.queue(80, submitter="a.ann")
    plan = lab.plan()
    assert ({"small": 1}, 72) == (machines(plan), plan.made.waiting[0].limited)
    lab.rights = Rights(limits=LimitRules({"license": 3.0}), in_use={"license": 1.0})
    lab.requests = {}
    lab.queue(80, job(ConcurrencyLimits="license"))
    plan = lab.plan()
    assert ({"small": 1}, 78) == (machines(plan), plan.made.waiting[0].limited)


def test_a_part_of_a_pool_that_is_empty_is_not_nothing() -> None:
    """A dynamic quota is a part of what the pool may become."""
    lab = Lab(pool(max=10))
    lab.rights = Rights(groups=Policy(Tree({"a": GroupRule(quota_dynamic=0.5)})))
    lab.queue(80, submitter="a.ann")
    plan = lab.plan()
    assert ({"small": 5}, 40) == (machines(plan), plan.made.waiting[0].limited)


def test_jobs_wait_for_what_is_there_before_machines_are_made() -> None:
    """Jobs that come and go one after the other need no more machines; those that stay do."""
    lab = Lab(pool(waits=5.0))
    lab.slots["desk.slot1"] = machine_slot("desk", 1, 2000)
    lab.set_queue(3)
    first = lab.cycle()
    assert ([], 2) == (first.leases, first.made.waiting[0].young)
    for _ in range(10):
        lab.set_queue(1)
        assert [] == lab.cycle().leases
        lab.set_queue(3)
        assert [] == lab.cycle().leases
    plans = [lab.cycle() for _ in range(3)]
    assert [0, 0, 1] == [len(plan.leases) for plan in plans]


def test_nobody_waits_for_what_never_comes() -> None:
    """If nothing that is there could ever take a job, machines for it are asked for at once."""
    lab = Lab(pool(waits=5.0))
    lab.slots["desk.slot1"] = machine_slot("desk", 1, 2000)
    lab.queue(1, job(4))
    assert {"small": 1} == machines(lab.plan())


def test_what_other_pools_may_take_waits_for_them() -> None:
    """Although nothing that is there could ever take it."""
    lab = Lab(pool(waits=5.0))
    lab.flocks.add("ann")
    lab.queue(1)
    assert {} == machines(lab.plan())
    lab.now += 4.0
    assert {} == machines(lab.plan())
    lab.now += 1.0
    assert {"small": 1} == machines(lab.plan())


def test_a_job_that_has_just_got_a_slot_is_no_reason_for_a_machine() -> None:
    """Its schedd still shows it as idle, and its slot is taken already."""
    lab = Lab(pool(waits=0.0))
    lab.settles = 1.5
    lab.slots["desk.slot1"] = machine_slot("desk", 1, 2000, State="Claimed", PartitionableSlot=False)
    lab.set_queue(1)
    assert [] == lab.cycle().leases
    assert {"small": 1} == machines(lab.plan()), "it has not got it after all"


def test_a_job_of_several_nodes_gets_all_of_its_machines_or_none() -> None:
    """All are of one offer, and carry the name of their gang."""
    lab = Lab(
        pool(max=6, offers=[offer("one", zone="a", max=3), offer("two", zone="b", price=9.0, currency="EUR")])
    )
    lab.queue(1, job(2), nodes=4)
    plan = lab.plan()
    assert {"two": 4} == machines(plan)
    assert (1, {4}, 1) == (
        plan.made.waiting[0].planned,
        {lease.gang_size for lease in plan.leases},
        len({lease.gang for lease in plan.leases}),
    )
    lab.apply(pool(max=3))
    plan = lab.plan()
    assert [] == plan.leases
    assert ["gang"] == [each.words for each in plan.made.waiting[0].obstacles]


def test_what_is_missing_of_a_gang_is_made_and_no_more() -> None:
    """One of four machines failed: one more is asked for."""
    lab = Lab(pool())
    lab.queue(1, job(2), nodes=4)
    lab.cycle()
    first, *others = list(lab.leases)
    lab.ready(*others)
    del lab.leases[first]
    assert {"small": 1} == machines(lab.plan())


def test_machines_that_are_always_there() -> None:
    """`min` in all, and `spare` without a job."""
    lab = Lab(pool(min=3))
    assert {"small": 3} == machines(lab.cycle())
    assert [] == lab.cycle().leases
    lab.apply(pool(min=3, spare=2))
    lab.queue(16)
    assert {"small": 1} == machines(lab.plan())


def test_static_pools_are_never_made() -> None:
    """Nor are their machines removed."""
    lab = Lab(pool(kind=PoolKind.STATIC, min=3))
    lab.queue(60)
    assert [] == lab.plan().leases


def test_the_patience_of_jobs_goes_with_their_machines() -> None:
    """`maximumIdleTimePerResource` of a document."""
    lab = Lab(pool())
    lab.queue(1, job(ProminenceMaximumIdleTime=120))
    assert [120.0] == [patience_of(lease) for lease in lab.plan().leases]


def test_a_job_that_asks_for_more_than_before_is_planned_anew() -> None:
    """The machine that was ordered for it does not hold it any more, and another is."""
    lab = Lab(pool(offers=[offer(), offer("large", 8, 65_536)]))
    lab.queue(1, job(1, 10_000))
    lab.cycle()
    lab.set_queue(1, job(1, 20_000))
    plan = lab.plan()
    assert {"large": 1} == machines(plan)


def test_the_same_inputs_give_the_same_plan() -> None:
    """Also its digest is the same, and another one with a difference in any input."""

    def made(count: int) -> tuple[object, str]:
        lab = Lab(pool(offers=[offer(), offer("large", 64, 262_144)]))
        lab.queue(count)
        lab.queue(3, job(3, 20_000), submitter="bob")
        plan = lab.plan()
        return plan, plan.made.inputs

    assert made(60) == made(60)
    assert made(60)[1] != made(61)[1]


def test_a_moldable_job_takes_what_a_machine_has() -> None:
    """A request that depends on the machine is asked of each offer."""
    lab = Lab(pool())
    lab.queue(3, job(RequestCpus=Expr("TARGET.Cpus < 4 ? TARGET.Cpus : 4")))
    assert {"small": 2} == machines(lab.plan())


def test_what_machines_were_seen_to_say_is_believed_of_others() -> None:
    """A template is known better when the first of its machines is there."""
    lab = Lab(pool())
    lab.queue(1, job(Requirements=Expr("TARGET.HasContainer")))
    assert [] == lab.plan().leases
    template = next(iter(lab.templates))
    lab.learned = {template: {"HasContainer": True}}
    assert {"small": 1} == machines(lab.plan())
