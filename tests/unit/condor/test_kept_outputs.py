"""What jobs of nodes say so that results stay on machines and are found there."""

from collections.abc import Sequence

import pytest

from kettle.classad import ClassAd, evaluate_attribute
from kettle.submit.expansion import Submission
from kettle_services.condor.dagman.kept_outputs import with_kept_outputs
from kettle_wire.ads import Ad
from kettle_wire.ads.types import Scalar


def made(ad: Ad, columns: Sequence[str] = (), row: Sequence[Scalar] = ()) -> Submission:
    return Submission(ad=ad, columns=[*columns], rows=[[*row]])


def rank(submission: Submission, machine: Ad) -> object:
    """What a machine is worth to the job."""
    return evaluate_attribute("Rank", ClassAd.from_wire(submission.ad), ClassAd.from_wire(machine))


@pytest.mark.parametrize(
    ("says", "worth"),
    [
        ({"KeptOutputsOf": "ap#7"}, 1),
        ({"KeptOutputsOf": "ap#7,b#8,ap#9"}, 2),
        ({"KeptOutputsOf": "ap#77,other#7"}, 0),
        ({"KeptOutputsOf": 7}, 0),
        ({}, 0),
    ],
)
def test_machines_are_worth_as_many_parents_as_they_have_results_of(says: Ad, worth: int) -> None:
    """One that keeps nothing is as good as any other, and nobody's words make it worse."""
    job = with_kept_outputs(made({"Rank": 0.0}), schedd="ap", parents=[7, 9], has_children=False)
    assert worth == rank(job, says)
    assert "KeepOutputsOnMachine" not in job.ad


def test_a_node_that_nobody_waits_for_keeps_nothing_and_a_rank_of_its_own_stays() -> None:
    """Nor does what a node says itself change."""
    own = made({"Rank": 5, "KeepOutputsOnMachine": False})
    assert own is with_kept_outputs(own, schedd="ap", parents=[7], has_children=True)
    first = with_kept_outputs(made({"Rank": 0.0}), schedd="ap", parents=[], has_children=True)
    assert {"Rank": 0.0, "KeepOutputsOnMachine": True} == first.ad
    in_a_column = made({}, columns=["Rank"], row=[1])
    assert in_a_column is with_kept_outputs(in_a_column, schedd="ap", parents=[7], has_children=False)
