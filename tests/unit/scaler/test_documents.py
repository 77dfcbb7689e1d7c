"""What PROMINENCE documents say of machines has an effect on what is planned for their jobs."""

import json
from typing import Any, Final

import pytest

from kettle.prominence.job_ads import Surroundings, submission
from kettle.prominence.job_documents import read_job
from kettle_wire.ads import Ad
from kettle_wire.events.plan import Obstacle

from .planning_lab import Lab, offer, pool

HERE: Final = Surroundings(
    arch="X86_64", upload=lambda name: f"https://store/{name}", output=lambda path: f"https://store/{path}"
)
RUNS: Final = {"HasContainer": "true", "HasDockerURL": "true"}


def of_document(**policies: Any) -> Ad:
    """The ad of a job of a document, as the queue has it."""
    document = {
        "resources": {"cpus": 1, "memory": 1, "walltime": 60},
        "tasks": [{"image": "centos:7", "runtime": "singularity", "cmd": "true"}],
        "policies": {"autoScalingType": "shared", **policies},
    }
    ad = submission(read_job(json.dumps(document)), HERE).ad
    return {"Owner": "ann", "ClusterId": 1, "ProcId": 0, "JobUniverse": 5, **ad}


def lab(**policies: Any) -> Lab:
    """One job, and three offers at different sites, of which the cheapest takes long to be ready."""
    offers = [
        offer("here", site="CERN", boot=90.0, attributes=RUNS, price=1.0, currency="EUR"),
        offer("there", site="RAL", boot=90.0, attributes=RUNS, price=1.0, currency="EUR"),
        offer("late", site="DESY", boot=600.0, attributes=RUNS, price=0.1, currency="EUR"),
    ]
    made = Lab(pool(offers=offers))
    made.queue(1, of_document(**policies))
    return made


def planned(**policies: Any) -> list[str]:
    """The offers of which machines are made, and what is recorded of how long jobs wait for these."""
    return [
        lease.offer.name + (f" {lease.attributes['KettlePatience']}" if lease.attributes else "")
        for lease in lab(**policies).plan().leases
    ]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({}, ["late"]),
        ({"autoScalingType": "none"}, []),
        ({"autoScalingType": "dedicated"}, ["late"]),
        ({"placement": {"requirements": {"sites": ["RAL"]}}}, ["there"]),
        ({"placement": {"requirements": {"sites": ["Moon"]}}}, []),
        ({"placement": {"requirements": {"sites": ["CERN", "RAL"]}, "preferences": {"sites": ["RAL"]}}}, ["there"]),
        ({"placement": {"requirements": {"sites": ["CERN", "RAL"]}, "preferences": {"sites": ["CERN"]}}}, ["here"]),
        ({"maximumIdleTimePerResource": 20}, ["late 1200"]),
        ({"maximumTimeInQueue": 11}, ["late"]),
        ({"maximumTimeInQueue": -1}, ["late"]),
        ({"maximumTimeInQueue": 0}, ["late"]),
        ({"maximumTimeInQueue": 1}, []),
    ],
)  # fmt: skip
def test_each_policy_changes_the_plan(policies: dict[str, Any], expected: list[str]) -> None:
    """Which machines are made for the job, if any, and for how long they are waited for."""
    assert expected == planned(**policies)


def test_no_machine_is_made_that_comes_after_the_job_has_left_the_queue() -> None:
    """
    Offers that are quick enough are taken instead of the cheap one; without any, the reason is told of each.
    """
    [quick] = planned(maximumTimeInQueue=5)
    assert quick in {"here", "there"}
    [waiting] = lab(maximumTimeInQueue=1).plan().made.waiting
    assert {Obstacle.SCALING} == {each.obstacle for each in waiting.obstacles}
    assert "the jobs wait 60 s at most, and a machine takes 600 s to be ready" in {
        each.words for each in waiting.obstacles
    }


def test_a_dedicated_machine_is_for_one_job() -> None:
    """`dedicated` has a machine for each job, and `shared` packs them."""
    for wish, expected in (("shared", 1), ("dedicated", 3)):
        made = lab(autoScalingType=wish)
        made.set_queue(3, of_document(autoScalingType=wish))
        assert expected == len(made.plan().leases)
