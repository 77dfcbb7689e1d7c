"""Workloads decided by Kettle's own queue, negotiator and accountant."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.invented.play import play
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import busy_between
from kettle_services.simulator.simulation import JobTooLargeError, Simulation
from kettle_services.simulator.simulation_file import SimulationFileError, read
from kettle_services.simulator.what_if_file import rules
from kettle_services.simulator.workloads.distributions import Uniform
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.events import ClusterSubmitted, Event

USUAL = rules(NegotiatorSettings(), worklife=0.0, factors={})
_SECOND = 1_000_000


def test_jobs_run_as_soon_as_there_is_a_core() -> None:
    """
    Two cores, four jobs of 10 s of which the last two wait for the first ones, and for the cycle after these.
    """
    result = Simulation(
        platform=Platform.star(hosts=1, cores=2), workload=Workload.generated(4, duration=10), rules=USUAL
    ).run()
    assert result.jobs["started"].tolist() == [0, 0, 10, 10]  # type: ignore[union-attr]
    assert result.figures().utilisation == 1.0


def test_factors_of_one_to_three_share_a_full_pool_three_to_one() -> None:
    """
    Effective priorities rise with usage times factor; who has a third of the factor has three times the pool.
    """
    until = 1200
    by = msgspec.structs.replace(USUAL, prio_factors={"ada": 1000.0, "bob": 3000.0}, half_life=1e9)
    work = Workload.generated(800, duration=Uniform(50, 70), user="ada", seed=1) + Workload.generated(
        400, duration=Uniform(50, 70), user="bob", seed=2
    )
    result = Simulation(
        platform=Platform.star(hosts=1, cores=40),
        workload=work,
        rules=by,
        until=until * _SECOND,
    ).run()
    begun = result.starts >= 0
    ends = np.where(result.ends < 0, until * _SECOND, result.ends)
    edges = np.array([300.0, 1100.0]) * _SECOND
    ada, both = (
        float(busy_between(edges, result.starts[some], ends[some], work.cores[some])[0])
        for some in (begun & (work.user == 0), begun)
    )
    assert both == pytest.approx(40.0, rel=0.02)
    assert ada / both == pytest.approx(0.75, abs=0.01)


def test_the_same_file_gives_the_same_events() -> None:
    def events() -> list[tuple[int, str, str, Event]]:
        found: list[tuple[int, str, str, Event]] = []
        work = Workload.generated(100, duration=Uniform(1, 90), every=1, poisson=True, seed=3)
        play(
            Platform.star(hosts=3, cores=4),
            work,
            USUAL,
            record=lambda at, shard, stream, event: found.append((at, shard, stream, event)),
        )
        return found

    once = events()
    assert once == events()
    assert any(isinstance(event, ClusterSubmitted) for _, _, _, event in once)


def test_no_core_is_used_twice() -> None:
    work = Workload.generated(300, duration=Uniform(1, 60), cores=1, seed=5) + Workload.generated(
        100, duration=Uniform(1, 60), cores=3, seed=6, user="bob"
    )
    result = Simulation(platform=Platform.star(hosts=4, cores=4), workload=work, rules=USUAL).run()
    changes = sorted(
        [(end, 0, -cores) for end, cores in zip(result.ends, work.cores, strict=True)]
        + [(start, 1, cores) for start, cores in zip(result.starts, work.cores, strict=True)]
    )
    busy = np.cumsum([change for _, _, change in changes])
    assert busy.max() <= 16
    assert busy[-1] == 0


@pytest.mark.parametrize("cores", [5])
def test_a_job_that_no_host_can_hold_is_told_before(cores: int) -> None:
    work = Workload.generated(1, duration=1) + Workload.generated(1, duration=1, cores=cores)
    with pytest.raises(JobTooLargeError, match="job 1: no host has 5 cores"):
        Simulation(platform=Platform.star(hosts=1, cores=4), workload=work, rules=USUAL).run()


_FILE = """\
model = "kettle"
[platform]
cores = 2
[workload]
jobs = 3
duration = "1 min"
[kettle]
step = "5 s"
"""


def test_a_file_can_ask_for_it(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(_FILE + "[factors]\nuser = 10\n")
    simulation = read(tmp_path / "study.toml").simulation
    assert isinstance(simulation.rules, PoolRules)
    assert simulation.rules.prio_factors == {"user": 10.0}
    assert simulation.run().figures().ended == 3


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("[delays]\nbefore = 1\n", "9: delays: this table says nothing to the model kettle"),
        ("[negotiator]\nprority_halflife = 1\n", "10: negotiator.prority_halflife: there is no such setting"),
        ("[factors]\nuser = 0.1\n", "10: factors.user: Expected `float` >= 1"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, more: str, sentence: str) -> None:
    (tmp_path / "study.toml").write_text(_FILE + more)
    with pytest.raises(SimulationFileError) as refused:
        read(tmp_path / "study.toml")
    assert f"{tmp_path}/study.toml:{sentence}" in str(refused.value)


def test_no_decision_knows_how_long_a_job_will_take() -> None:
    """
    Of jobs that still run at a moment others take their durations in a second run: until then both are the same.
    """
    work = Workload.generated(
        120, duration=Uniform(20, 90), every=1, poisson=True, seed=7
    ) + Workload.generated(60, duration=Uniform(20, 90), every=2, poisson=True, cores=2, seed=8, user="bob")
    platform = Platform.star(hosts=3, cores=4)
    before = Simulation(platform=platform, workload=work, rules=USUAL).run()
    moment = int(np.median(before.ends))
    left = np.flatnonzero(before.ends > moment)
    durations = work.work.copy()
    durations[left] = durations[left] + (moment - before.starts[left]).clip(0) + 7 * _SECOND
    columns: dict[str, Any] = {name: getattr(work, name) for name in Workload.COLUMNS} | {"work": durations}
    other = Workload(users=work.users, kinds=work.kinds, **columns)
    after = Simulation(platform=platform, workload=other, rules=USUAL).run()
    early = before.starts <= moment
    assert 60 < np.count_nonzero(early) < 180
    assert after.starts[early].tolist() == before.starts[early].tolist()
    assert (after.starts[~early] > moment).all()


def test_twice_as_fast_hosts_need_half_the_time(tmp_path: Path) -> None:
    """Of jobs that all come at once and that claims pass on without a cycle in between."""
    found: list[float] = []
    for speed in (1.0, 2.0):
        text = _FILE.replace("cores = 2", f"cores = 2\nspeed = {speed}").replace("jobs = 3", "jobs = 20")
        (tmp_path / "study.toml").write_text(text.replace('step = "5 s"', 'claim_worklife = "1 d"'))
        found.append(read(tmp_path / "study.toml").simulation.run().figures().makespan)
    assert found == [600.0, 300.0]
