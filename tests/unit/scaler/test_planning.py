"""Plans: which machines are asked for, and why not more."""

from kettle_wire.events.plan import Bound, Obstacle

from .planning_lab import Lab, job, machines, offer, pool


def test_jobs_are_packed_on_as_few_machines_as_hold_them() -> None:
    """Sixty jobs of one core need eight machines of eight."""
    lab = Lab(pool())
    lab.queue(60)
    plan = lab.plan()
    assert {"small": 8} == machines(plan)
    [group] = plan.made.waiting
    assert (60, 60, []) == (group.jobs, group.planned, group.obstacles)
    assert "1.0" == group.example
