"""Machines that are taken back, and are told some time before."""

from pathlib import Path

import pytest

from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation_file import SimulationFileError, read

_US = 1_000_000


def played(tmp_path: Path, text: str) -> Result:
    (tmp_path / "study.toml").write_text(f'model = "kettle"\n{text}')
    return read(tmp_path / "study.toml").simulation.run()


def starts(result: Result) -> list[int]:
    return sorted(round(at / _US) for at in result.starts.tolist())


LEAVES = """
[[platform]]
leaves = "100 s"
{}
[[platform]]
joins = "200 s"
[[workload]]
jobs = 4
duration = "30 s"
"""


def test_a_host_that_is_told_takes_no_job_that_it_would_lose(tmp_path: Path) -> None:
    """
    In 100 s there is room for three jobs, and the fourth is lost; told 20 s before, the host does not begin it, and told 50 s before, not
    the third one either.
    """
    result = played(tmp_path, LEAVES.format(""))
    assert ([0, 30, 60, 200], 1) == (starts(result), len(result.lost))
    result = played(tmp_path, LEAVES.format('notice = "20 s"'))
    assert ([0, 30, 60, 200], 0) == (starts(result), len(result.lost))
    result = played(tmp_path, LEAVES.format('notice = "50 s"'))
    assert ([0, 30, 200, 230], 0) == (starts(result), len(result.lost))


def test_what_runs_longer_than_a_notice_is_lost(tmp_path: Path) -> None:
    """A job of 80 s begins 20 s before the host goes, unless that is told earlier."""
    text = LEAVES.replace("30 s", "80 s").replace("jobs = 4", "jobs = 2")
    result = played(tmp_path, text.format('notice = "5 s"'))
    assert ([0, 200], 1) == (starts(result), len(result.lost))
    result = played(tmp_path, text.format('notice = "25 s"'))
    assert ([0, 200], 0) == (starts(result), len(result.lost))


OUTAGES = "host,from,until\nhost1,50,60\nhost1,100,110\n"


def test_a_host_that_comes_back_takes_jobs_again(tmp_path: Path) -> None:
    """It is away from 50 to 60 s and from 100 to 110 s, and is told 30 s before."""
    (tmp_path / "outages.csv").write_text(OUTAGES)
    text = '[platform]\noutages = "outages.csv"\nnotice = "{}"\n[[workload]]\njobs = 5\nduration = "20 s"\n'
    result = played(tmp_path, text.format("30 s"))
    assert ([0, 20, 60, 110, 130], 0) == (starts(result), len(result.lost))
    result = played(tmp_path, text.format("0 s"))
    assert ([0, 20, 60, 80, 110], 2) == (starts(result), len(result.lost))


POOL = """
[[pool]]
name = "cloud"
max = 8
idle = "2m"
[[pool.offer]]
name = "small"
provider = "any"
cpus = 2
memory = "4 GB"
boot = "60s"
price = "0.1 EUR"
{}
[[workload]]
jobs = 20
every = "20 s"
duration = "60 s"
"""


def test_machines_on_demand_are_taken_back_and_others_are_made(tmp_path: Path) -> None:
    """
    All jobs end though machines last minutes; with a notice that is longer than any job, no run is lost.
    """
    sudden = played(tmp_path, POOL.format('[spot]\nmtbf = "4 min"'))
    told = played(tmp_path, POOL.format('[spot]\nmtbf = "4 min"\nnotice = "61 s"'))
    assert 20 == sudden.figures().ended == told.figures().ended
    assert len(sudden.lost) > 0
    assert 0 == len(told.lost)
    assert len(sudden.platform.hosts) > 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('model = "wrench"\n[platform]\nnotice = "1 min"\n', "platform: notice is for the model kettle only"),
        ('model = "kettle"\n[platform]\n[spot]\nmtbf = "1 h"\n', "spot: machines of [[pool]] are taken back"),
        ('model = "kettle"\n[platform]\nnotice = "1 parsec"\n', "'1 parsec' is not a duration"),
        (f'model = "kettle"\n{POOL.format("[spot]")}', "spot: Object missing required field `mtbf`"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    more = "" if "[[workload]]" in text else "[[workload]]\njobs = 1\nduration = 1\n"
    (tmp_path / "study.toml").write_text(text + more)
    with pytest.raises(SimulationFileError) as refused:
        read(tmp_path / "study.toml")
    assert sentence in str(refused.value)
