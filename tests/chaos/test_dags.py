"""A DAG while what has to do with it is killed: `python -m tests.chaos.dags` makes longer runs."""

import os

import pytest

from .dags import STEPS, VICTIMS, arguments, attempt, wrong

pytestmark = pytest.mark.skipif(
    "KETTLE_TEST_LONG" not in os.environ,
    reason="it takes minutes: a DAG of many nodes (KETTLE_TEST_LONG=1 waits)",
)


@pytest.mark.breaks_servers
async def test_every_script_and_job_of_a_dag_runs_once_whatever_is_killed() -> None:
    """Every victim in turn."""
    found = await attempt(arguments("--nodes", "400", "--every", "1", "--longest", "1200"))
    assert {} == wrong(found)
    assert {*VICTIMS} == {name for name, count in found["killed"].items() if count}


@pytest.mark.breaks_servers
async def test_a_dagman_that_dies_at_each_of_its_steps_repeats_nothing() -> None:
    """Between a decision, its record and its effect; and the process of the DAG job is killed meanwhile."""
    found = await attempt(
        arguments("--nodes", "120", "--every", "2", "--longest", "1200", "--victims", "hands", "--points")
    )
    assert {} == wrong(found)
    assert {*STEPS} == {name.partition(".")[0] for name in found["died_at"]}
