"""What a job asks for after it has run out of something."""

import pytest

from kettle_services.schedd.domain.jobs.resource_retry import grown
from kettle_wire.ads import Ad, Expr
from kettle_wire.attempts import Ending

MEMORY: Ad = {"RequestMemory": 1024}


def ran_out(subcode: int, code: int = 34) -> Ending:
    return Ending(code=code, subcode=subcode, reason="")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, {}),
        ({"RetryRequestMemory": Expr("{2048,4096}")}, {"RequestMemory": 2048}),
        ({"RequestMemory": 2048, "RetryRequestMemory": Expr("{2048,4096}")}, {"RequestMemory": 4096}),
        ({"RequestMemory": 4096, "RetryRequestMemory": Expr("{2048,4096}")}, {}),
        ({"RetryRequestMemory": Expr("{RequestMemory * 1.5}")}, {"RequestMemory": 1536}),
        ({"NextRequestMemory": Expr("RequestMemory * 2")}, {"RequestMemory": 2048}),
        ({"NextRequestMemory": Expr("RequestMemory * 2"), "MaxRequestMemory": 1500}, {"RequestMemory": 1500}),
        ({"RequestMemory": 1500, "NextRequestMemory": Expr("RequestMemory * 2"), "MaxRequestMemory": 1500}, {}),
        ({"RetryRequestMemory": "much"}, {}),
        ({"NextRequestMemory": Expr("Nothing + 1")}, {}),
        ({"RequestMemory": Expr("Nothing"), "RetryRequestMemory": Expr("{2048}")}, {}),
        ({"RetryRequestDisk": Expr("{1 << 40}")}, {}),
    ],
)  # fmt: skip
def test_it_asks_for_the_next_amount(said: Ad, expected: Ad) -> None:
    """The next one that is more; none if there is none, and then it is held."""
    assert expected == grown(MEMORY | said, ran_out(102), 0.0)


def test_other_holds_are_holds() -> None:
    """Only what it has run out of is asked for."""
    ad: Ad = {"RequestDisk": 5, "RetryRequestDisk": Expr("{7}"), "RetryRequestMemory": Expr("{7}")}
    assert {"RequestDisk": 7} == grown(ad, ran_out(104), 0.0)
    for code, subcode in ((34, 102), (34, 0), (3, 104), (12, 104)):
        assert {} == grown(ad, ran_out(subcode, code), 0.0)
