"""What changes between a plan and its machines, and between two plans."""

import msgspec

from kettle_services.scaler.domain.leases.breakers import TemplateRecord, template_of
from kettle_services.scaler.domain.leases.machines import retirement
from kettle_services.scaler.domain.planning.inputs import Room
from kettle_wire.commands.scaler import Phase
from kettle_wire.events.lease import LeaseGone
from kettle_wire.events.plan import Bound, RemovalCause

from .leases_lab import LeaseLab
from .leases_lab import machine as found
from .planning_lab import Lab, job, machines, offer, pool


def test_a_machine_costs_what_its_offer_said_when_it_was_planned() -> None:
    """The file says another price while it boots: that is for those which are planned from then on."""
    lab = Lab(pool(offers=[offer(price=1.0, currency="EUR")]))
    lab.queue(8)
    [lease] = lab.act(lab.plan())
    lab.apply(pool(offers=[offer(price=5.0, currency="EUR")]))
    lab.queue(8)
    plan = lab.plan()
    assert (1.0, [5.0]) == (lab.leases[lease].offer.price, [each.offer.price for each in plan.leases])


def test_two_pools_share_the_last_machine_of_a_provider() -> None:
    """One of them gets it, and the other one says what keeps it waiting."""
    lab = Lab(
        pool("a", [offer("one", provider="cloud")], owners=["ann"]),
        pool("b", [offer("two", provider="cloud")], owners=["bob"]),
    )
    lab.rooms["cloud"] = Room(machines=1, at=lab.now - 1)
    lab.queue(8)
    lab.queue(8, job(Owner="bob"), submitter="bob")
    plan = lab.cycle()
    assert 1 == sum(machines(plan).values())
    short = [one for group in plan.made.waiting if not group.planned for one in group.obstacles]
    assert Bound.ROOM.value in {one.words for one in short}
    assert {} == machines(lab.plan())


def test_machines_of_an_offer_that_the_file_has_no_more_go_when_they_are_idle() -> None:
    """Those with jobs stay as long as these run, count as machines of the pool, and no more are made."""
    lab = Lab(pool(max=2, idle=600.0, offers=[offer("old"), offer("new", 4, 8_192)]))
    lab.queue(16)
    old = lab.act(lab.plan())
    lab.ready(*old)
    lab.busy(*old)
    lab.apply(pool(max=2, idle=600.0, offers=[offer("new", 4, 8_192)]))
    lab.queue(16)
    plan = lab.plan()
    assert ({}, []) == (machines(plan), plan.made.removals)
    lab.requests = {}
    lab.ready(*old)
    lab.now += 601
    assert dict.fromkeys(old, RemovalCause.IDLE) == {
        each.lease: each.cause for each in lab.plan().made.removals
    }


def test_another_template_is_tried_while_machines_of_the_last_one_boot() -> None:
    """
    Those that come are counted on as they were ordered; of the new one there is a single machine until that is ready.
    """
    before = pool(offers=[offer(template="image-1")])
    lab = Lab(before)
    lab.queue(16)
    first = lab.act(lab.plan())
    after = msgspec.structs.replace(before, offers=[offer(template="image-2")])
    lab.apply(after)
    lab.templates[template_of("p", after.offers[0])] = TemplateRecord(proven=False)
    assert {} == machines(lab.cycle())
    lab.queue(32)
    plan = lab.plan()
    assert ["image-2"] == [each.offer.template for each in plan.leases]
    assert set(first) <= set(lab.leases)


def test_a_hundred_thousand_jobs_that_are_alike_are_one_group() -> None:
    """A plan takes no longer for more of them, and asks for as many machines as it may."""
    lab = Lab(pool(max=5000))
    lab.queue(100_000)
    plan = lab.plan()
    assert (1, 100_000) == (len(plan.made.waiting), plan.made.waiting[0].jobs)
    assert {"small": 1000} == machines(plan)


def test_a_slow_provider_is_not_asked_for_more_than_is_needed() -> None:
    """
    None of its machines comes for a long time, while jobs come and others leave: at no moment there are too many.
    """
    lab = Lab(pool(max=1000))
    for waiting in [400, *range(400, 1000, 75), 1000, *[1000] * 20]:
        lab.set_queue(waiting)
        lab.cycle(seconds=5.0)
        assert len(lab.leases) <= -(-waiting // 8)
    assert 125 == len(lab.leases)


def test_machines_that_were_made_together_do_not_leave_together() -> None:
    """A hundred of them retire over more than an hour of a day."""
    lab = LeaseLab()
    names = lab.ready(100)
    retires = sorted(retirement(lab.lease(name)) for name in names)
    assert retires[-1] - retires[0] > 3600.0
    ends = {lab.lease(name).ends for name in names}
    assert max(retires) < min(ends)
    busiest = max(sum(moment <= each < moment + 60.0 for each in retires) for moment in retires)
    assert busiest <= 10


def test_a_machine_that_joins_after_its_lease_was_given_up_is_told_to_end() -> None:
    """
    Its provider has said that it is gone, and it speaks: the lease stays over; once it is listed, it is nobody's and goes.
    """
    lab = LeaseLab()
    [lease] = lab.ready(1)
    lab.gone(f"i-{lease}", proven=True)
    assert isinstance(lab.events[-1], LeaseGone)
    count = len(lab.events)
    lab.says(lease, Phase.JOINED)
    assert ({}, count) == (dict(lab.book.leases), len(lab.events))
    lab.lists(found(lease))
    assert [f"i-{lease}"] == [each.found.handle for each in lab.book.orphans.values()]
