"""Simulated pools whose machines are made by plans of the real planner, when jobs wait."""

from pathlib import Path

import numpy as np
import pytest

from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation import JobTooLargeError
from kettle_services.simulator.simulation_file import SimulationFileError, read

_MINUTE = 60_000_000
_POOL = """
[[pool]]
name = "cloud"
max = {most}
idle = "5m"
waits = 0
[[pool.offer]]
name = "large"
provider = "any"
cpus = 8
memory = "16 GB"
boot = "60s"
price = "0.5 EUR"
"""


def _run(directory: Path, text: str, most: int = 10) -> Result:
    path = directory / "study.toml"
    path.write_text('model = "kettle"\n' + text + _POOL.format(most=most))
    return read(path).simulation.run()


def test_machines_come_when_jobs_wait_and_no_more_than_are_needed(tmp_path: Path) -> None:
    """Sixteen jobs, no machine: two of eight cores boot for a minute, and all jobs run at once."""
    found = _run(tmp_path, "[workload]\njobs = 16\nduration = 600\n")
    assert [host.name for host in found.platform.hosts] == ["cloud-1-1", "cloud-1-2"]
    assert (found.starts >= _MINUTE).all()
    assert (found.starts <= _MINUTE + 10_000_000).all()
    assert found.hosts is not None
    assert sorted(found.hosts.tolist()) == [0] * 8 + [1] * 8
    figures = found.figures()
    since = min(host.joins for host in found.platform.hosts) / 1e6
    assert figures.cost == pytest.approx(2 * 0.5 * (figures.makespan - since) / 3600)


def test_there_are_never_more_than_the_pool_may_have(tmp_path: Path) -> None:
    found = _run(tmp_path, "[platform]\ncores = 2\n[workload]\njobs = 60\nduration = 600\n", most=2)
    assert len(found.platform.hosts) == 3
    assert found.platform.cores == 18
    times = sorted([(end, -1) for end in found.ends.tolist()] + [(at, 1) for at in found.starts.tolist()])
    assert 18 == np.cumsum([change for _, change in times]).max()


def test_idle_machines_go_and_others_come_for_later_jobs(tmp_path: Path) -> None:
    """A job, and another one two hours later: in between the machine goes, five minutes after it had work."""
    found = _run(
        tmp_path,
        "[[workload]]\njobs = 1\nduration = 600\n[[workload]]\njobs = 1\nduration = 600\nafter = 7200\n",
    )
    first, second = found.platform.hosts
    assert found.ends[0] + 5 * _MINUTE <= first.leaves <= found.ends[0] + 7 * _MINUTE
    assert second.joins >= 7200_000_000
    assert found.figures().ended == 2
    cost, whole = found.figures().cost, 0.5 * found.figures().makespan / 3600
    assert cost is not None
    assert cost < whole / 2


def test_a_machine_that_has_lived_takes_no_more_jobs_and_loses_none(tmp_path: Path) -> None:
    """
    Machines live for half an hour; 30 jobs of ten minutes on one machine at a time need more than one after another.
    """
    text = "[kettle]\nclaim_worklife = 0\n[workload]\njobs = 48\nduration = 600\n"
    path = tmp_path / "study.toml"
    path.write_text(
        'model = "kettle"\n' + text + _POOL.format(most=1).replace('idle = "5m"', 'idle = "5m"\nlife = "30m"')
    )
    found = read(path).simulation.run()
    assert found.figures().ended == 48
    assert len(found.lost) == 0
    assert len(found.platform.hosts) > 1
    for one, other in zip(found.platform.hosts, found.platform.hosts[1:], strict=False):
        assert one.leaves >= 0
        assert other.joins >= one.joins


def test_the_same_file_makes_the_same_machines(tmp_path: Path) -> None:
    text = "[workload]\njobs = 40\nevery = 60\narrivals = 'poisson'\nduration = { kind = 'exponential', mean = 900 }\n"
    once, again = _run(tmp_path, text), _run(tmp_path, text)
    assert once.platform == again.platform
    assert once.ends.tolist() == again.ends.tolist()
    assert len(once.platform.hosts) > 1


def test_a_job_that_only_an_offer_can_hold_is_no_mistake(tmp_path: Path) -> None:
    text = "[platform]\ncores = 2\n[workload]\njobs = 1\ncores = {cores}\nduration = 60\n"
    assert 1 == _run(tmp_path, text.format(cores=8)).figures().ended
    with pytest.raises(JobTooLargeError, match="no host has 9 cores"):
        _run(tmp_path, text.format(cores=9))


@pytest.mark.parametrize(
    ("was", "now", "sentence"),
    [
        ('"60s"', '"soon"', "study.toml:15: "),
        ("max = 10", "mux = 10", "study.toml:7: "),
        ('name = "cloud"', "", "study.toml:"),
    ],
)
def test_a_pool_that_cannot_be_is_refused_with_its_line(
    tmp_path: Path, was: str, now: str, sentence: str
) -> None:
    path = tmp_path / "study.toml"
    text = 'model = "kettle"\n[workload]\njobs = 1\n' + _POOL.format(most=10)
    path.write_text(text.replace(was, now))
    with pytest.raises(SimulationFileError) as refused:
        read(path)
    assert sentence in str(refused.value)
