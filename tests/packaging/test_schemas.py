"""The published schemas are what the code makes, and what was published still holds."""

from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from kettle.schema_generation import asyncapi, breaks, documents, incompatible, openapi, text


@pytest.fixture(scope="module")
def published(top: Path) -> dict[str, Any]:
    root = top / "schemas/json"
    return {
        path.relative_to(root).as_posix(): msgspec.json.decode(path.read_bytes())
        for path in root.rglob("*.json")
    }


def test_no_published_type_has_changed(published: dict[str, Any]) -> None:
    """What is recorded keeps its meaning: a struct changes by a new version of its type, never in place."""
    assert [] == incompatible(published, documents())


def test_no_program_that_uses_the_rest_interface_breaks(published: dict[str, Any]) -> None:
    """Routes, parameters and answers stay as they were, or the interface gets another first number."""
    assert [] == breaks(published["openapi.json"], openapi())


def test_the_schemas_are_what_the_code_makes_of_them(top: Path, published: dict[str, Any]) -> None:
    """A change of what passes on the bus is a difference in `schemas/json`, so nobody makes one unseen."""
    made = {**documents(), "asyncapi.json": asyncapi(), "openapi.json": openapi()}
    stale = [
        n for n, d in made.items() if n in published and text(d) != (top / "schemas/json" / n).read_bytes()
    ]
    assert [] == stale, "run .venv/bin/python docs/generate.py"
    assert set(made) == set(published), "run .venv/bin/python docs/generate.py"


def test_schemas_are_schemas() -> None:
    """Each is valid JSON Schema 2020-12, has an id of its own, and refers to nothing outside of itself."""
    made = documents()
    for schema in made.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert text(schema).count(b'"$ref"') == text(schema).count(b'"$ref": "#/$defs/')
    assert len(made) == len({schema["$id"] for schema in made.values()})
