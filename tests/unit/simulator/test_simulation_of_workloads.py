"""Simulations as people ask for them: files, traces and generated jobs."""

import math
from pathlib import Path

import numpy as np
import pytest

from kettle_services.simulator.platforms.network import Link
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.platforms.quantities import QuantityError, bytes_per_second, mebibytes, seconds
from kettle_services.simulator.simulation import JobTooLargeError, Simulation
from kettle_services.simulator.simulation_file import SimulationFileError, read
from kettle_services.simulator.workloads.distributions import (
    Exponential,
    LogNormal,
    Pareto,
    Randomness,
    Uniform,
)
from kettle_services.simulator.workloads.swf import TraceError, read_swf
from kettle_services.simulator.workloads.workload import Workload


def test_one_seed_gives_the_same_jobs_and_another_one_others() -> None:
    def jobs(seed: int) -> Workload:
        return Workload.generated(50, duration=LogNormal(60, 1), every=1, poisson=True, seed=seed)

    assert jobs(1).work.tolist() == jobs(1).work.tolist()
    assert jobs(1).submitted.tolist() != jobs(2).submitted.tolist()
    # Known numbers, so that another machine, or another version of a library, cannot differ without being seen.
    assert [606072, 1127240, 1585679] == jobs(1).submitted[:3].tolist()


@pytest.mark.parametrize(
    ("distribution", "mean"),
    [
        (Uniform(2, 4), 3.0),
        (Exponential(5), 5.0),
        (LogNormal(2, 0.5), 2 * math.exp(0.125)),
        (Pareto(1, 3), 1.5),
    ],
)
def test_a_distribution_has_its_mean(
    distribution: Uniform | Exponential | LogNormal | Pareto, mean: float
) -> None:
    assert distribution.draw(Randomness(9), 100_000).mean() == pytest.approx(mean, rel=0.02)


def test_figures_and_use_over_time_follow_from_the_jobs() -> None:
    work = Workload.generated(4, duration=10) + Workload.generated(1, duration=20, cores=2, user="bob")
    result = Simulation(platform=Platform.star(hosts=1, cores=2), workload=work).run()
    assert result.jobs["started"].tolist() == [0, 0, 10, 10, 20]  # type: ignore[union-attr]
    assert result.jobs["user"] == ["user"] * 4 + ["bob"]
    figures = result.figures()
    assert (figures.makespan, figures.utilisation, figures.core_hours) == (40, 1.0, 80 / 3600)
    assert (figures.wait_mean, figures.wait_median) == (8.0, 10.0)
    assert result.figures("bob").slowdown_mean == 2.0
    edges, cores = result.in_use(4)
    assert edges.tolist() == [0, 10, 20, 30, 40]
    assert cores == pytest.approx(np.full(4, 2.0))
    assert result.in_use(4, "bob")[1] == pytest.approx(np.array([0.0, 0.0, 2.0, 2.0]))


def test_a_job_that_no_host_can_hold_is_told_before_anything_runs() -> None:
    simulation = Simulation(
        platform=Platform.star(hosts=3, cores=4), workload=Workload.generated(2, duration=1, cores=5)
    )
    with pytest.raises(JobTooLargeError, match="job 0: no host has 5 cores"):
        simulation.check()


def test_two_hosts_reach_each_other_over_the_links_that_they_do_not_share() -> None:
    site = Platform.star(hosts=2, link="1 Gbit/s", latency="1ms").below(Link(name="uplink", bandwidth=1e9))
    both = site + site
    assert [both.links[link].name for link in both.way(0, 1)] == ["host1-link", "host2-link"]
    assert [both.links[link].name for link in both.way(0, 3)] == [
        "host1-link",
        "uplink",
        "host2-link",
        "uplink",
    ]


def test_quantities_have_units() -> None:
    assert seconds("1.5 h") == 5400
    assert seconds(3) == 3
    assert bytes_per_second("1Gbit/s") == 125e6
    assert mebibytes("16 GiB") == 16384
    with pytest.raises(QuantityError, match=r"'5 parsecs' is not a duration: .* us, ms, s, min"):
        seconds("5 parsecs")


_TRACE = """\
; MaxNodes: 4
1 0 5 100 2 -1 -1 2 120 -1 1 7 1 -1 1 -1 -1 -1
2 10 5 -1 1 -1 -1 1 60 2048 1 8 1 -1 1 -1 -1 -1
"""


def test_a_trace_is_read_with_what_is_unknown_in_it(tmp_path: Path) -> None:
    (tmp_path / "trace.swf").write_text(_TRACE)
    work = read_swf(tmp_path / "trace.swf").workload
    assert work.submitted.tolist() == [0, 10_000_000]
    assert work.work.tolist() == [100_000_000, 0]
    assert work.limit.tolist() == [120_000_000, 60_000_000]
    assert work.nodes.tolist() == [2, 1]
    assert work.memory.tolist() == [0, 2]
    assert work.users == ("user7", "user8")
    asked = read_swf(tmp_path / "trace.swf", requested_time=True).workload
    assert asked.work.tolist() == [120_000_000, 60_000_000]


def test_bad_lines_of_a_trace_are_named_and_left_out_only_on_request(tmp_path: Path) -> None:
    bad = "1 0 5 100 2 -1 -1 2 120 -1 1 7 1 -1 1 -1 -1 -1\n3 4\n4 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n5 x\n"
    (tmp_path / "trace.swf").write_text(_TRACE + bad)
    with pytest.raises(TraceError) as refused:
        read_swf(tmp_path / "trace.swf")
    assert str(refused.value).splitlines() == [
        f"{tmp_path}/trace.swf:4: there is a job 1 before",
        f"{tmp_path}/trace.swf:5: it has 2 fields, and a job has 18",
        f"{tmp_path}/trace.swf:6: it has no processors",
        f"{tmp_path}/trace.swf:7: a field is no number",
        "--skip-bad leaves them out",
    ]
    trace = read_swf(tmp_path / "trace.swf", skip_bad=True)
    assert (len(trace.workload), [each.line for each in trace.skipped]) == (2, [4, 5, 6, 7])


_FILE = """\
[platform]
hosts = 2
cores = 2

[[workload]]
jobs = 4
duration = "1 min"

[[workload]]
jobs = 1
duration = { kind = "uniform", low = 60, high = 60 }
user = "bob"
"""


def test_a_file_describes_a_simulation(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(_FILE)
    result = read(tmp_path / "study.toml").simulation.run()
    assert result.figures().makespan == 120
    assert result.figures("bob").wait_mean == 60


@pytest.mark.parametrize(
    ("was", "now", "sentence"),
    [
        ("hosts = 2", "host = 2", "2: platform.host: there is no such key, did you mean hosts?"),
        ("[platform]", "[[platforms]]", "1: platforms: there is no such key, did you mean platform?"),
        ('"1 min"', '"1 mile"', "5: workload.0: '1 mile' is not a duration"),
        ("jobs = 1", "jobs = 0", "9: workload.1: jobs says how many there are"),
        ('"uniform"', '"unified"', "workload.1.duration.kind: Invalid value 'unified'"),
        ("cores = 2", "cores = 0", "3: platform.cores: Expected `int` >= 1"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, was: str, now: str, sentence: str) -> None:
    (tmp_path / "study.toml").write_text(_FILE.replace(was, now))
    with pytest.raises(SimulationFileError) as refused:
        read(tmp_path / "study.toml")
    assert str(refused.value).startswith(f"{tmp_path}/study.toml")
    assert sentence in str(refused.value)


def test_a_run_ends_when_it_is_told_to(tmp_path: Path) -> None:
    """A job of two days on a host that fails twice a day never ends; one of an hour does."""
    (tmp_path / "study.toml").write_text(
        'until = "40 d"\n[[platform]]\nmtbf = "1 h"\nrepair = "1 h"\n[[platform]]\n'
        '[[workload]]\njobs = 2\nduration = "100 d"\n'
    )
    result = read(tmp_path / "study.toml").simulation.run()
    figures = result.figures()
    assert (figures.jobs, figures.ended, figures.makespan) == (2, 0, 40 * 86_400)
    assert len(result.lost) > 100
    assert 0.5 < figures.utilisation <= 1.0
    assert result.in_use(bins=10)[1].min() >= 1.0, "the second host always runs a job"
