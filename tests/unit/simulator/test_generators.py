"""Jobs that are made by rules: by day and night, and as on supercomputers."""

from pathlib import Path

import numpy as np
import pytest

from kettle_services.simulator.simulation_file import SimulationFileError, read
from kettle_services.simulator.workloads.arrivals import Daily, arrivals
from kettle_services.simulator.workloads.distributions import Randomness
from kettle_services.simulator.workloads.lublin import gamma, processors, run_times
from kettle_services.simulator.workloads.workload import Workload

_DAY = 86_400_000_000


def test_more_jobs_come_by_day() -> None:
    """
    With a swing of 0.8, 1.8 times the average around the peak, 0.2 half a day later, and the average over the days.
    """
    daily = Daily(peak=50_400, swing=0.8)
    come = arrivals(400_000, every=10, daily=daily, seed=2)
    assert (np.diff(come) >= 0).all()
    days = come[-1] / _DAY
    assert len(come) / days == pytest.approx(8640, rel=0.01)
    hours = np.histogram(come % _DAY, bins=24, range=(0, _DAY))[0] / days / 360
    # Over two hours, a cosine is at 0.9886 of its peak on average.
    assert hours[[13, 14]].mean() == pytest.approx(1 + 0.8 * 0.9886, rel=0.03)
    assert hours[[1, 2]].mean() == pytest.approx(1 - 0.8 * 0.9886, rel=0.05)
    assert hours[[7, 8, 19, 20]].mean() == pytest.approx(1.0, rel=0.03)


def test_without_a_swing_they_come_as_they_do_at_random() -> None:
    even = arrivals(1000, every=100, poisson=True, seed=5)
    assert abs(arrivals(1000, every=100, daily=Daily(swing=0), seed=5) - even).max() <= 1


@pytest.mark.parametrize(("shape", "scale"), [(4.2, 0.94), (312.0, 0.03), (1.0, 2.0)])
def test_a_gamma_distribution_has_its_mean_and_variance(shape: float, scale: float) -> None:
    drawn = gamma(shape, scale, 200_000, Randomness(1))
    assert drawn.mean() == pytest.approx(shape * scale, rel=0.01)
    assert drawn.var() == pytest.approx(shape * scale**2, rel=0.03)


def test_jobs_of_supercomputers_have_the_sizes_of_the_paper() -> None:
    sizes = processors(200_000, 128, Randomness(3))
    assert (sizes.min(), sizes.max()) == (1, 128)
    assert (sizes == 1).mean() == pytest.approx(0.244, abs=0.005)
    # Powers of two, and those of the others that are rounded to one.
    assert np.isin(sizes, 2 ** np.arange(8)).mean() > 0.244 + 0.576
    assert ((sizes > 1) & (sizes <= 2**4.5)).mean() == pytest.approx(0.86 * 0.756, abs=0.03)
    assert processors(100, 1, Randomness(3)).tolist() == [1] * 100


def test_the_larger_a_job_of_a_supercomputer_the_longer_it_runs() -> None:
    """
    A job of one processor is short with a probability of 0.7746, one of 128 with 0.0888; short ones take a minute, long ones hours.
    """
    small = run_times(np.ones(100_000, dtype=np.int64), Randomness(4))
    large = run_times(np.full(100_000, 128), Randomness(4))
    assert max(small.max(), large.max()) <= np.exp(12.0)
    # Hardly any short job takes more than half an hour, and hardly any long one less.
    assert (small > 1800).mean() == pytest.approx(0.2254, abs=0.05)
    assert (large > 1800).mean() == pytest.approx(0.9112, abs=0.05)


def test_a_seed_gives_the_same_jobs_everywhere() -> None:
    """
    Known numbers, so that another machine, or another version of a library, cannot differ without being seen.
    """
    work = Workload.supercomputer(5, most=64, every=60, daily=Daily(), seed=7)
    assert work.grid
    assert work.nodes.tolist() == [1, 62, 5, 8, 4]
    assert (work.work // 1_000_000).tolist() == [15, 25, 6442, 57183, 13035]
    assert (work.submitted // 1_000_000).tolist() == [423, 424, 438, 906, 1284]


_FILE = """\
[platform]
hosts = 16
[queue]
discipline = "easy"
[workload]
jobs = 60
supercomputer = 16
every = "10 min"
arrivals = "daily"
peak = "12 h"
"""


def test_a_file_asks_for_them(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(_FILE)
    result = read(tmp_path / "study.toml").simulation.run()
    assert result.figures().ended == 60
    assert result.workload.nodes.max() > 1


@pytest.mark.parametrize(
    ("was", "now", "sentence"),
    [
        ('"daily"', '"nightly"', "9: workload.arrivals: jobs come regular, poisson or daily"),
        ('peak = "12 h"', "swing = 1.5", "5: workload: Expected `float` < 1"),
        ('peak = "12 h"', 'peak = "25 h"', "5: workload: Expected `float` < 86400"),
        ('[queue]\ndiscipline = "easy"', "[kettle]", "5: workload: jobs of several nodes are simulated by"),
        ("supercomputer = 16", "supercomputer = -1", "7: workload.supercomputer: Expected `int` >= 0"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, was: str, now: str, sentence: str) -> None:
    model = 'model = "kettle"\n' if "kettle" in now else ""
    (tmp_path / "study.toml").write_text(model + _FILE.replace(was, now))
    with pytest.raises(SimulationFileError) as refused:
        read(tmp_path / "study.toml")
    assert sentence in str(refused.value)
