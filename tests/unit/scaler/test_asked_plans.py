"""Plans that people ask for."""

from kettle_services.scaler.asked_plans import AskedPlans
from kettle_services.scaler.domain.plans import of_pool
from kettle_wire.events.lease import Shape
from kettle_wire.events.plan import PlanMade, PlannedMachines, Removal, RemovalCause


def plan(number: int) -> PlanMade:
    machines = [
        PlannedMachines(pool=pool, offer="o", shape=Shape.SHARED, machines=1, wanted=1) for pool in ("p", "q")
    ]
    removals = [Removal(pool=pool, lease=f"{pool}-1-1", cause=RemovalCause.IDLE) for pool in ("p", "q")]
    return PlanMade(number=number, inputs="", slots=0, leases=0, machines=machines, removals=removals)


def test_questions_of_many_take_a_tenth_of_the_time() -> None:
    """
    A plan that took 2 s is told to all who ask in the 18 s after it, each with the moment at which it was made.
    """
    clock, made = [100.0], list[int]()

    def make() -> PlanMade:
        made.append(len(made))
        clock[0] += 2.0
        return plan(made[-1])

    asked = AskedPlans(make, clock=lambda: clock[0], wall=lambda: 1000.0 + clock[0])
    first = asked.now()
    assert (0, 1102.0) == (first[0].number, first[1])
    clock[0] = 119.9
    assert first == asked.now()
    clock[0] = 120.0
    assert (1, 1122.0) == ((later := asked.now())[0].number, later[1])
    assert 2 == len(made)


def test_who_asks_about_a_pool_is_told_of_its_machines() -> None:
    """Neither those that another pool gets nor those that it loses."""
    found = of_pool(plan(1), "p")
    assert (["p"], ["p"]) == ([each.pool for each in found.machines], [each.pool for each in found.removals])
