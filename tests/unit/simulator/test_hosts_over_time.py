"""Hosts that come, go and fail, and what becomes of the jobs on them."""

import random
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from kettle_services.simulator.platforms.host_changes import changes
from kettle_services.simulator.platforms.lives import Failures, outages_of, read_outages
from kettle_services.simulator.platforms.network import Correction
from kettle_services.simulator.platforms.platform import Level, Platform
from kettle_services.simulator.results.drawings.all_of_them import drawn
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.simulation_file import SimulationFileError, read
from kettle_services.simulator.workloads.dependencies import Dependencies
from kettle_services.simulator.workloads.distributions import Randomness
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.batch_service import Discipline
from kettle_services.simulator.wrench.delays import Delays

_S = 1_000_000


def _away(*spans: tuple[float, float]) -> Failures:
    return Failures(outages=outages_of(list(spans)))


def _run(platform: Platform, work: Workload, delays: Delays | None = None) -> Result:
    return Simulation(platform=platform, workload=work, delays=delays or Delays()).run()


def test_a_job_begins_again_on_a_host_that_is_there() -> None:
    """
    Two hosts; the first fails after 4 s, and its job waits for the second one, which is busy until 10 s.
    """
    platform = Platform.star(hosts=2).failing([_away((4, 100)), None])
    result = _run(platform, Workload.generated(2, duration=10))
    assert (result.starts / _S).tolist() == [10, 0]
    assert (result.ends / _S).tolist() == [20, 10]
    assert result.lost.tolist() == [[0, 0, 4 * _S]]
    figures = result.figures()
    assert figures.lost_core_hours == 4 / 3600
    assert figures.core_hours == 20 / 3600
    assert figures.utilisation == 24 / 40
    assert result.in_use(2)[1] == pytest.approx(np.array([1.4, 1.0]))


def test_a_host_that_comes_takes_what_waits() -> None:
    platform = Platform.star(hosts=1).between(30) + Platform.star(hosts=1).between(45, 52)
    result = _run(platform, Workload.generated(3, duration=10))
    assert (result.lost / _S)[:, 1:].tolist() == [[45, 52]]
    assert (result.starts / _S).tolist() == [30, 40, 52]


def test_a_loss_costs_the_manager_what_an_end_costs() -> None:
    """
    Lost after 4 s, known of 3 s later, and placed in the next cycle, which takes 1 s and 2 s for the job.
    """
    platform = Platform.star(hosts=1).failing([_away((7, 8))])
    delays = Delays(negotiator=_S, non_grid_pre=2 * _S, non_grid_post=3 * _S)
    result = _run(platform, Workload.generated(1, duration=10), delays)
    assert result.lost.tolist() == [[0, 3 * _S, 7 * _S]]
    assert result.starts[0] == (7 + 3 + 1 + 2) * _S
    assert result.figures().makespan == 13 + 10 + 3


@pytest.mark.parametrize("discipline", list(Discipline))
def test_a_batch_service_loses_jobs_with_any_of_their_nodes(discipline: Discipline) -> None:
    platform = Platform.star(hosts=2).failing([None, _away((4, 6))])
    work = Workload(submitted=[0, 0], work=[10 * _S] * 2, nodes=[2, 1], grid=True)
    result = Simulation(platform=platform, workload=work, discipline=discipline).run()
    assert result.lost.tolist() == [[0, 0, 4 * _S]]
    assert sorted((result.starts / _S).tolist()) == [4, 14]


def test_what_no_host_that_is_left_can_hold_waits_for_ever_and_the_simulation_ends() -> None:
    """One host goes for good; the other one fails again and again, and is too small."""
    large = Platform.star(hosts=1, cores=4, name="large").between(0, 5)
    small = Platform.star(hosts=1, name="small").failing([Failures(mean_up=20, mean_down=5)])
    work = Workload.generated(1, duration=10, cores=4) + Workload.generated(3, duration=1)
    result = _run(large + small, work)
    assert (result.figures().jobs, result.figures().ended) == (4, 3)
    assert result.ends[0] == -1
    assert all(svg for svg in drawn(result).values())


def test_data_on_their_way_to_a_host_that_fails_leave_the_network_to_others() -> None:
    """
    Two share a link of 1 Gbit/s for 1 s, then one has it alone: 125 MB need half of the second second of the other way.
    """
    platform = Platform.tree([Level(width=1, link="1 Gbit/s"), Level(width=2, link="100 Gbit/s")])
    work = Workload.generated(2, duration=0, reads=125_000_000)
    result = Simulation(
        platform=platform.failing([_away((1, 100)), None]), workload=work, correction=Correction()
    ).run()
    assert result.ends[1] / _S == pytest.approx(1.5, abs=1e-4)
    assert result.ends[0] / _S == pytest.approx(2.5, abs=1e-4)


@pytest.mark.parametrize("seed", range(15))
def test_nothing_runs_on_a_host_that_is_away_and_nothing_is_forgotten(seed: int) -> None:
    draw = random.Random(seed)
    failures = [Failures(mean_up=300, mean_down=60) for _ in range(4)]
    platform = Platform.star(hosts=4, cores=3).failing(failures)
    work = Workload(
        submitted=[draw.randint(0, 500) * _S for _ in range(150)],
        work=[draw.randint(1, 120) * _S + n for n in range(150)],
        cores=[draw.randint(1, 3) for _ in range(150)],
    )
    delays = Delays(negotiator=_S, non_grid_post=_S // 2)
    result = Simulation(platform=platform, workload=work, delays=delays, seed=seed).run()
    again = Simulation(platform=platform, workload=work, delays=delays, seed=seed).run()
    assert result.reported.tolist() == again.reported.tolist()
    assert result.figures().ended == 150
    assert len(result.lost) > 0
    assert ((result.ends - result.starts) == work.work).all()
    assert result.hosts is not None
    for place, host in enumerate(platform.hosts):
        until = int(result.reported.max())
        of_host = islice(changes(host, Randomness(seed, f"failures of {host.name}").one), 1000)
        known = [(at, up) for at, up in of_host if at <= until]
        away = [(at, back) for (at, up), (back, _) in pairwise([*known, (until, True)]) if not up]
        runs = list(zip(result.starts, result.ends, strict=True))
        for job in np.flatnonzero(result.hosts == place):
            start, end = runs[job]
            assert not any(start < back and since < end for since, back in away)
    cores = [(int(end), 0, -int(c)) for end, c in zip(result.ends, work.cores, strict=True)]
    cores += [(int(start), 1, int(c)) for start, c in zip(result.starts, work.cores, strict=True)]
    for job, start, end in result.lost.tolist():
        cores += [(end, 0, -int(work.cores[job])), (start, 1, int(work.cores[job]))]
    busy = np.cumsum([change for _, _, change in sorted(cores)])
    assert 0 <= busy.min() <= busy.max() <= 12


def test_failures_have_their_means() -> None:
    found = islice(Failures(mean_up=90, mean_down=10).spans(0, Randomness(3).one), 10_000)
    spans = np.diff(np.array(list(found)).ravel()) / _S
    assert spans[0::2].mean() == pytest.approx(10, rel=0.05)
    assert spans[1::2].mean() == pytest.approx(90, rel=0.05)


_FILE = """\
[[platform]]
hosts = 2
outages = "outages.csv"

[[platform]]
joins = "10 min"
boot = "1 min"
leaves = "1 h"

[[workload]]
jobs = 5
duration = "5 min"
"""


def test_a_file_says_when_hosts_are_there(tmp_path: Path) -> None:
    (tmp_path / "outages.csv").write_text("host,from,until\nhost0-1,60,120\nhost0-1,600,700\n")
    (tmp_path / "study.toml").write_text(_FILE)
    result = read(tmp_path / "study.toml").simulation.run()
    assert result.lost[:, 0].tolist() == [0, 3]
    assert (result.lost / _S)[:, 1:].tolist() == [[0, 60], [420, 600]]
    assert (result.starts / _S).tolist() == [120, 0, 300, 660, 600]


@pytest.mark.parametrize(
    ("was", "now", "sentence"),
    [
        ("host0-1,60", "host9,60", "outages.csv:2: the platform has no host host9"),
        ("host0-1,600", "host0-1,100", "they end after they begin"),
        (",700", "", "outages.csv:3: this is not a host, from and until"),
        ("outages = ", "mtbf = 3\noutages = ", "1: platform.0: either outages name a file, or mtbf"),
        ("outages.csv", "outage.csv", "3: platform.0.outages: outage.csv: No such file"),
        ("[[workload]]", "[kettle]\n[[workload]]", "this table says nothing to the model wrench"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, was: str, now: str, sentence: str) -> None:
    table = "host,from,until\nhost0-1,60,120\nhost0-1,600,700\n"
    (tmp_path / "outages.csv").write_text(table.replace(was, now))
    (tmp_path / "study.toml").write_text(_FILE.replace(was, now))
    with pytest.raises(SimulationFileError) as refused:
        read(tmp_path / "study.toml")
    assert sentence in str(refused.value)


def test_outages_are_read_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("a,5,6\na,1,2\n")
    assert read_outages(tmp_path / "o.csv", ["a"]) == {"a": ((_S, 2 * _S), (5 * _S, 6 * _S))}


def _any_platform(draw: random.Random, hosts: int, cores: int) -> Platform:
    if draw.random() < 0.5:
        link, latency = draw.choice(["", "1 Gbit/s"]), draw.choice(["0 s", "10 ms"])
        platform = Platform.star(hosts=hosts, cores=cores, link=link, latency=latency)
    else:
        levels = [Level(width=1, link="1 Gbit/s"), Level(width=hosts, link="1 Gbit/s", latency="5 ms")]
        platform = Platform.tree(levels, cores=cores)
    return platform.failing(
        [Failures(mean_up=200, mean_down=30) if draw.random() < 0.7 else None for _ in range(hosts)]
    )


@pytest.mark.parametrize("seed", range(60))
def test_all_of_it_together_forgets_nothing_and_uses_no_core_twice(seed: int) -> None:
    """
    Hosts that fail, slow links, data, jobs that wait for others, and both kinds of services with any discipline.
    """
    draw = random.Random(seed)
    grid, jobs, hosts, cores = (
        draw.random() < 0.5,
        draw.randint(1, 40),
        draw.randint(2, 5),
        draw.randint(1, 4),
    )
    edges = [
        (parent, child) for child in range(jobs) for parent in range(child) if draw.random() < 1.5 / jobs
    ]
    work = Workload(
        submitted=[draw.randint(0, 300) * _S for _ in range(jobs)],
        work=[draw.randint(1, 60) * _S + job for job in range(jobs)],
        cores=[draw.randint(1, cores) for _ in range(jobs)],
        nodes=[draw.randint(1, hosts) if grid else 1 for _ in range(jobs)],
        priority=[draw.choice([0, 0, 3]) for _ in range(jobs)],
        reads=[draw.choice([0, 0, 10**8]) for _ in range(jobs)],
        writes=[draw.choice([0, 0, 10**8]) for _ in range(jobs)],
        grid=grid,
        waits=Dependencies.of(jobs, edges) if draw.random() < 0.6 else None,
    )
    second = draw.choice([0, _S])
    result = Simulation(
        platform=_any_platform(draw, hosts, cores),
        workload=work,
        delays=Delays(
            negotiator=second, grid_pre=second, non_grid_pre=second, grid_post=second, non_grid_post=second
        ),
        discipline=draw.choice(list(Discipline)),
        seed=seed,
    ).run()
    assert result.figures().ended == jobs
    assert (result.starts >= result.submitted).all()
    assert (result.ends - result.starts >= work.work).all()
    assert (result.reported >= result.ends).all()
    if work.waits is not None:
        children = np.repeat(np.arange(jobs), work.waits.counts)
        assert (result.reported[work.waits.parents] <= result.submitted[children]).all()
    all_cores = work.cores * work.nodes
    runs = [
        *zip(range(jobs), result.starts.tolist(), result.ends.tolist(), strict=True),
        *result.lost.tolist(),
    ]
    changes = [(end, 0, -int(all_cores[job])) for job, start, end in runs if end > start]
    changes += [(start, 1, int(all_cores[job])) for job, start, end in runs if end > start]
    busy = np.cumsum([change for _, _, change in sorted(changes)])
    assert 0 <= busy.min() <= busy.max() <= hosts * cores
