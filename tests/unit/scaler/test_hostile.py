"""Machines, jobs and pools that make no sense: plans are made, and no machine is bought for nothing."""

import pytest

from kettle_services.scaler.domain.planning.launches import patience_of
from kettle_wire.ads import Expr

from .planning_lab import Lab, job, machine_slot, machines, offer, pool


@pytest.mark.parametrize("amount", [float("inf"), float("-inf"), float("nan"), 1e308, Expr("1e400")])
@pytest.mark.parametrize("name", ["Cpus", "Memory"])
def test_no_machine_keeps_others_from_being_planned(name: str, amount: float | Expr) -> None:
    """Whatever it says that it has; anybody may have one that says it of itself."""
    lab = Lab(pool())
    lab.slots["odd.slot1"] = machine_slot("odd", 8, 8_192, **{name: amount, "Start": False})
    lab.queue(8)
    assert {"small": 1} == machines(lab.plan())


def test_a_budget_is_no_bound_for_what_costs_next_to_nothing() -> None:
    """However many machines it would pay for."""
    lab = Lab(pool(budget=1e9, currency="EUR", offers=[offer(price=1e-300, currency="EUR")]))
    lab.queue(8)
    assert {"small": 1} == machines(lab.plan())


@pytest.mark.parametrize(
    ("said", "counts"),
    [(0.01, 60.0), (-5, 0.0), *((Expr(f'real("{each}")'), 0.0) for each in ("INF", "-INF", "NaN"))],
    ids=str,
)
def test_no_job_is_so_impatient_that_machines_are_bought_for_nothing(
    said: float | Expr, counts: float
) -> None:
    """They have the time to boot at least, and what is no span is not said."""
    lab = Lab(pool(offers=[offer(boot=60.0)]))
    lab.queue(1, job(ProminenceMaximumIdleTime=said))
    assert [counts] == [patience_of(lease) for lease in lab.plan().leases]
