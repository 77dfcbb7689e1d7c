"""Whether a version can serve a pool, by what was read of it."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kettle.storage.schema_state import SchemaState, Step, known_steps
from kettle_services.cli.commands import upgrade
from kettle_services.cli.errors import CommandError
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.upgrade import reading
from kettle_services.cli.upgrade.readiness import ReadinessFacts, readiness

UP_TO_DATE = SchemaState(made=True, pending=[], unknown=[])
FACTS = ReadinessFacts(version="2.0", schema=UP_TO_DATE, hosts=[("a", "2.0")])


def schema(**changed: Any) -> dict[str, Any]:
    return {"schema": replace(UP_TO_DATE, **changed)}


def test_a_pool_that_is_up_to_date() -> None:
    """Nothing is to be done."""
    assert {"good"} == {each.grade for each in readiness(FACTS)}


@pytest.mark.parametrize(
    ("changed", "grade", "said"),
    [
        (schema(made=False), "note", "no log yet"),
        (schema(pending=[Step("log", "09_pre_x", "pre")]), "note", "the first new master"),
        (schema(pending=[Step("log", "09_post_x", "post")]), "note", "kettle upgrade finish"),
        (schema(unknown=["log/09_pre_x"]), "note", "works with that"),
        (schema(unknown=["log/09_pre_x", "log/09_post_x"]), "problem", "cannot serve"),
        ({"unknown_types": [("schedd.ap", "job.moved/9")]}, "problem", "job.moved/9"),
        ({"hosts": [("a", "1.0")]}, "note", "kettle restart"),
        ({"hosts": [("a", "1.0"), ("b", "0.9")]}, "warning", "several older versions"),
        ({"hosts": []}, "note", "nobody says"),
        ({"rebuilds": ["jobs"]}, "note", "another version"),
        ({"stopped": ["jobs in schedd: why"]}, "warning", "has stopped"),
    ],
)
def test_what_stands_in_the_way(changed: dict[str, Any], grade: str, said: str) -> None:
    found = list(readiness(replace(FACTS, **changed)))
    assert any(each.grade == grade and said in f"{each.what} {each.todo}" for each in found), found


@pytest.mark.parametrize(
    ("hosts", "said"),
    [((), "does not say which versions run"), ((("a", "2.0"), ("b", "1.0")), "b runs another version")],
)
def test_the_last_step_is_taken_only_if_every_host_says_that_it_is_new(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hosts: Sequence[tuple[str, str]], said: str
) -> None:
    """There is no way back from it, so silence is no consent."""

    async def facts_of(_home: Path, *, patience: float) -> ReadinessFacts:
        assert patience
        return replace(FACTS, hosts=hosts)

    async def finish(_home: Path, *, patience: float) -> None:
        pytest.fail(f"steps are taken within {patience} s")

    monkeypatch.setattr(reading, "facts_of", facts_of)
    monkeypatch.setattr(reading, "finish", finish)
    parser = argparse.ArgumentParser()
    upgrade.arguments(parser)
    with pytest.raises(CommandError, match=said):
        upgrade.run(parser.parse_args(["finish", "--home", str(tmp_path)]), Screen())


def test_steps_of_this_release_say_when_they_run() -> None:
    """Each has one of two stages, by its name."""
    assert {"pre", "post"} >= {step.stage for step in known_steps()}
    assert all(f"_{step.stage}_" in step.name for step in known_steps())
