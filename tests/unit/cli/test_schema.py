"""`kettle schema` hands out the documents that the code makes."""

import json

import pytest

from kettle.schema_generation import asyncapi, documents
from kettle_services.cli.__main__ import main


@pytest.mark.parametrize(
    "name", ["job.completed/1", "job.completed.1", "events/job.completed.1", "events/job.completed.1.json"]
)
def test_an_event_by_any_of_its_names(name: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The tag as it is in the log and the name of the file lead to the same schema."""
    assert 0 == main(["schema", name])
    assert documents()["events/job.completed.1.json"] == json.loads(capfdbinary.readouterr().out)


def test_all_subjects(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The AsyncAPI document comes whole."""
    assert 0 == main(["schema", "asyncapi"])
    assert asyncapi() == json.loads(capfdbinary.readouterr().out)


@pytest.mark.slow
def test_every_listed_name_is_one(capfd: pytest.CaptureFixture[str]) -> None:
    """What the list names can be asked for, and the list is complete."""
    assert 0 == main(["schema", "--json"])
    names = set(json.loads(capfd.readouterr().out))
    assert {path.removesuffix(".json") for path in documents()} | {"asyncapi"} == names
    assert [] == [name for name in sorted(names) if main(["schema", name])]


def test_a_slip_is_understood(capfd: pytest.CaptureFixture[str]) -> None:
    """The nearest name is said."""
    assert 2 == main(["schema", "job.complete/1"])
    assert "did you mean job.completed.1?" in capfd.readouterr().err
