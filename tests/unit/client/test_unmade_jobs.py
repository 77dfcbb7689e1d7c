"""Which jobs that are still to be made will meet a condition."""

import pytest

from kettle.client.events.unmade_jobs import meeting
from kettle_wire.ads.types import Expr
from kettle_wire.events.cluster import ClusterSubmitted

SUBMITTED = ClusterSubmitted(
    cluster=7,
    owner="ada",
    ad={"Cmd": "/bin/true", "JobSetName": "night", "Large": Expr("Size > 1")},
    columns=["Size"],
    rows=[[0], [1], [2], [3]],
)


@pytest.mark.parametrize(
    ("constraint", "procs"),
    [
        ('JobSetName == "night"', [1, 2, 3]),
        ('JobSetName == "day"', []),
        ('JobStatus == 1 && Owner == "ada"', [1, 2, 3]),
        ("Size == 2", [2]),
        ("Large", [2, 3]),
        ("ProcId % 2 == 1", [1, 3]),
        ('eval("Size") == 3', [3]),
        ("Unknown", []),
        ("Size - 1", [2, 3]),
        ("2.0", [1, 2, 3]),
        ("Owner", []),
    ],
)
def test_those_that_will_meet_it(constraint: str, procs: list[int]) -> None:
    """By what all have, what each has of its own, and what an expression makes of that."""
    assert procs == list(meeting(constraint, SUBMITTED, 0, range(1, 4)))
    assert [] == list(meeting(constraint, SUBMITTED, 0, range(4, 4)))
