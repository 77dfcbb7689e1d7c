"""Simulations held against each other over seeds."""

import random
import statistics

import msgspec
import pytest

from kettle_services.simulator.results.differences import changed, differences
from kettle_services.simulator.results.student import t_within
from kettle_wire.simulations import Figures

_NOTHING = Figures(
    jobs=1,
    ended=1,
    makespan=100.0,
    wait_mean=10.0,
    wait_median=None,
    wait_p95=None,
    slowdown_mean=None,
    core_hours=1.0,
    lost_core_hours=0.0,
    utilisation=0.5,
)


@pytest.mark.parametrize(
    ("freedom", "wanted"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (10, 2.228), (29, 2.045), (100, 1.984)],
)
def test_t_is_what_tables_have(freedom: int, wanted: float) -> None:
    """Values at 95 % on both sides, from the NIST/SEMATECH handbook, 1.3.6.7.2."""
    assert t_within(0.95, freedom) == pytest.approx(wanted, abs=0.0006)


def test_an_interval_holds_the_truth_in_95_of_100_cases() -> None:
    draw = random.Random(4)
    held = 0
    for _ in range(2000):
        first = [msgspec.structs.replace(_NOTHING, wait_mean=draw.gauss(50, 5)) for _ in range(6)]
        second = [
            msgspec.structs.replace(each, wait_mean=(each.wait_mean or 0) + draw.gauss(3, 2))
            for each in first
        ]
        found = next(each for each in differences(first, second) if each.measure == "wait_mean")
        assert found.margin is not None
        held += abs(found.difference - 3) <= found.margin
    assert held / 2000 == pytest.approx(0.95, abs=0.015)


def test_what_seeds_have_in_common_is_no_chance() -> None:
    """Runs that differ much from seed to seed, and by the same in each: that is told."""
    waits = [5.0, 500.0, 50.0]
    first = [msgspec.structs.replace(_NOTHING, wait_mean=wait) for wait in waits]
    second = [msgspec.structs.replace(_NOTHING, wait_mean=wait + 1) for wait in waits]
    found = {each.measure: each for each in differences(first, second)}
    assert set(found) == {"ended", "wait_mean", "makespan", "utilisation"}
    assert found["wait_mean"].first == statistics.fmean(waits)
    assert found["wait_mean"].is_beyond_chance
    assert not found["makespan"].is_beyond_chance
    assert differences(first[:1], second[:1])[0].margin is None


def test_changes_of_a_file_are_named() -> None:
    one = {"seed": 1, "platform": [{"hosts": 2, "cores": 4}], "queue": {"batch": True}}
    other = {"seed": 1, "platform": [{"hosts": 3, "cores": 4}], "delays": {"after": 1}}
    assert changed(one, other) == [
        "platform.0.hosts: 2 -> 3",
        "queue.batch: True -> (nothing)",
        "delays.after: (nothing) -> 1",
    ]
