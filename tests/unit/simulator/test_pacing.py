"""Simulations that are watched: each event comes when its time has come, and not later than needed."""

import pytest

from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.pacing import Paced
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.what_if_file import rules
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.events import Event


class _Clock:
    """Each look at it takes a thousandth of a second."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        self.now += 0.001
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_a_minute_takes_a_second_at_sixty_times_the_speed() -> None:
    """Three jobs of a minute on one core: three seconds, and nobody sleeps between events of one moment."""
    clock = _Clock()
    seen: list[tuple[int, int, int]] = []
    recorded: list[Event] = []
    paced = Paced(
        60.0,
        lambda at, running, ended: seen.append((at // 1_000_000, running, ended)),
        record=lambda _at, _shard, _stream, event: recorded.append(event),
        clock=clock,
        sleep=clock.sleep,
    )
    Simulation(
        platform=Platform.star(hosts=1),
        workload=Workload.generated(3, duration=60),
        rules=rules(NegotiatorSettings(), worklife=1200.0, factors={}),
    ).run(paced)
    assert clock.now - 1000.0 == pytest.approx(3.0, abs=0.05)
    assert 3 == len(clock.slept)
    assert (0, 1, 0) in seen
    assert (60, 1, 1) in seen
    assert (180, 0, 3) in seen
    assert len(recorded) == len(seen)
