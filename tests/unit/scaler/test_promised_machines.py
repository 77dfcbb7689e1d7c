"""Machines on their way are first for the jobs that they were ordered for."""

import pytest

from kettle.matchmaking import Claimant, GroupRule, Policy, Tree
from kettle_services.scaler.domain.planning.matching import Rights
from kettle_services.scaler.domain.planning.templates import learned_from
from kettle_wire.ads import Ad, Expr
from kettle_wire.worker_pools import WorkerPool

from .planning_lab import REQUIREMENTS, Lab, job, machine_slot, machines, offer, pool


def mixed() -> WorkerPool:
    """Of a few machines one has what only some jobs need."""
    return pool(offers=[offer(price=0.4), offer("gpu", 8, 16_384, gpus=4, price=3.0)])


def test_small_jobs_take_no_room_that_scarce_ones_were_promised() -> None:
    """
    However often is planned, one machine with a GPU is ordered for a job that needs one, although many small jobs are served before it.
    """
    lab = Lab(mixed())
    lab.queue(1, job(RequestGPUs=1), submitter="zoe")
    assert {"gpu": 1} == machines(lab.cycle())
    lab.queue(15)
    assert {"small": 1} == machines(lab.cycle())
    later = [lab.cycle() for _ in range(3)]
    assert [{}] * 3 == [machines(plan) for plan in later]
    assert {"ann": 15, "zoe": 1} == {each.submitter: each.coming for each in later[-1].made.waiting}


def test_what_is_not_promised_is_for_everybody() -> None:
    """Jobs that come later go to what the others leave of machines on their way, and to no new ones."""
    lab = Lab(mixed())
    lab.queue(1, job(RequestGPUs=1))
    lab.cycle()
    lab.queue(7)
    assert {} == machines(lab.cycle())
    lab.queue(1, submitter="bob")
    assert {"small": 1} == machines(lab.cycle())


def test_what_is_free_is_used_before_what_was_promised() -> None:
    """A job that can run now leaves the machine that was ordered for it to others."""
    lab = Lab(pool())
    lab.queue(8)
    lab.cycle()
    lab.slots["desk.slot1"] = machine_slot("desk", 8, 16_384)
    lab.queue(8, job(1, 1500))
    plan = lab.cycle()
    assert {} == machines(plan)
    assert [(8, 0), (0, 8)] == [(each.free, each.coming) for each in plan.made.waiting]


def test_nothing_is_promised_to_jobs_that_are_gone() -> None:
    """The machine that was ordered for them is for those who wait now."""
    lab = Lab(pool())
    lab.queue(8)
    lab.cycle()
    lab.requests = {}
    lab.queue(8, submitter="bob")
    assert {} == machines(lab.cycle())


def test_a_promise_to_jobs_that_want_more_now_is_none() -> None:
    """
    The matcher is asked whether the machine still suits them: a schedd may give the number of an autocluster to others.
    """
    lab = Lab(pool(offers=[offer(), offer("large", 16, 65_536)], dedicated_fraction=1.0))
    lab.set_queue(8)
    assert {"small": 1} == machines(lab.cycle())
    lab.set_queue(1, job(12, 1024))
    assert {"large": 1} == machines(lab.cycle())


def test_who_may_not_run_more_keeps_no_machine_from_others() -> None:
    """A ceiling, or the quota of a group, that came after the order bounds what was promised."""
    for rights, name in (
        (Rights(claimants=[Claimant(name="ann", ceiling=2.0)]), "ann"),
        (Rights(groups=Policy(Tree({"a": GroupRule(quota=2.0)}))), "a.ann"),
    ):
        lab = Lab(pool())
        lab.queue(8, submitter=name)
        lab.cycle()
        lab.rights = rights
        lab.queue(6, submitter="bob")
        plan = lab.cycle()
        assert {} == machines(plan)
        assert {name: (2, 6), "bob": (6, 0)} == {
            each.submitter: (each.coming, each.limited) for each in plan.made.waiting
        }


def test_machines_that_start_nothing_of_theirs_are_promised_to_nobody() -> None:
    """
    Who runs the pool changes START of an offer: the machines on their way still have the one with which they were ordered.
    """
    lab = Lab(pool())
    lab.queue(8)
    lab.cycle()
    strict = offer(start='TARGET.Owner == "bob"')
    lab.apply(pool(offers=[strict]))
    assert {} == machines(lab.cycle())
    lab.set_queue(8, job(Requirements=Expr("false")))
    assert {} == machines(plan := lab.cycle())
    assert 0 == plan.made.waiting[0].coming


def test_what_a_machine_does_not_say_yet_is_not_believed_of_others() -> None:
    """One that tries its containers will say what they are, and is looked at until then."""
    trying: Ad = {"OpSys": "LINUX", "HasFileTransfer": True, "TryingContainers": True}
    assert learned_from(trying) is None
    tried: Ad = {"OpSys": "LINUX", "HasFileTransfer": True, "HasContainer": True, "Memory": 4096}
    assert {"OpSys": "LINUX", "HasFileTransfer": True, "HasContainer": True} == learned_from(tried)


@pytest.mark.parametrize(
    "clause",
    [
        'stringListIMember("https",TARGET.HasFileTransferPluginMethods)',
        "TARGET.HasJobTransferPlugins",
        "TARGET.HasPerFileEncryption",
        "TARGET.HasSelfCheckpointTransfers",
        "TARGET.HasJobDeferral",
    ],
)
def test_what_every_machine_can_do_is_counted_on_before_one_was_seen(clause: str) -> None:
    """Submit adds these clauses to Requirements, so jobs with them must not wait in an empty pool."""
    lab = Lab(pool(), proven=False)
    lab.queue(1, job(Requirements=Expr(f"{REQUIREMENTS} && {clause}")))
    assert {"small": 1} == machines(lab.plan())
