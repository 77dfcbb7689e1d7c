"""People who look at what came of their jobs before they submit more."""

from pathlib import Path

import pytest

from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation_file import SimulationFileError, read

_US = 1_000_000
DAG = "JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b\n"


def played(tmp_path: Path, model: str, jobs: str) -> Result:
    (tmp_path / "flow.dag").write_text(DAG)
    (tmp_path / "study.toml").write_text(f'model = "{model}"\n[platform]\ncores = 2\n[[workload]]\n{jobs}\n')
    return read(tmp_path / "study.toml").simulation.run()


def seconds(result: Result) -> tuple[list[int], list[int]]:
    """When jobs were submitted, and when they began."""
    return tuple([round(at / _US) for at in column.tolist()] for column in (result.submitted, result.starts))  # type: ignore[return-value]


@pytest.mark.parametrize("model", ["wrench", "kettle"])
def test_the_next_ones_come_when_the_last_has_ended_and_its_author_has_thought(
    tmp_path: Path, model: str
) -> None:
    """Three jobs of 10 s on two cores take 20 s; then a minute is thought."""
    result = played(tmp_path, model, 'jobs = 3\nduration = 10\ntimes = 3\nthink = "1 min"')
    expected = [0] * 3 + [80] * 3 + [160] * 3, [0, 0, 10, 80, 80, 90, 160, 160, 170]
    assert expected == seconds(result)


@pytest.mark.parametrize("model", ["wrench", "kettle"])
def test_a_workflow_is_one_part_and_all_of_it_may_come_later(tmp_path: Path, model: str) -> None:
    jobs = 'dag = "flow.dag"\nduration = 10\ntimes = 2\nthink = "1 min"\nafter = "100 s"'
    result = played(tmp_path, model, jobs)
    assert ([100, 110, 180, 190],) * 2 == seconds(result)


def test_thoughts_are_as_long_as_a_distribution_says(tmp_path: Path) -> None:
    jobs = 'jobs = 1\nduration = 10\ntimes = 400\nthink = { kind = "exponential", mean = 50 }'
    submitted, starts = seconds(played(tmp_path, "wrench", jobs))
    assert submitted == starts
    assert 10 + 50 == pytest.approx(starts[-1] / 399, rel=0.1)


@pytest.mark.parametrize(
    ("jobs", "sentence"),
    [
        ('jobs = 3\nthink = "1 min"', "workload.0.think: think is for what is submitted some times"),
        ('jobs = 3\ntimes = 2\nevery = 3\nthink = "1 min"', "without every"),
        ('jobs = 3\ntimes = 2\nthink = "1 mile"', "'1 mile' is not a duration"),
        ("jobs = 2000\ntimes = 3\nthink = 1", "are too many to think about in between"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, jobs: str, sentence: str) -> None:
    with pytest.raises(SimulationFileError) as refused:
        played(tmp_path, "wrench", f"{jobs}\nduration = 1")
    assert sentence in str(refused.value)
