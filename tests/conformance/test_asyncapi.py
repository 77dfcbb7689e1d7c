"""
Our AsyncAPI document is one by the specification's own schema.

`data/asyncapi-3.0.0.schema.json` is the schema of AsyncAPI 3.0.0 as the AsyncAPI Initiative publishes it
(github.com/asyncapi/spec-json-schemas, schemas/3.0.0.json), unchanged. Copyright 2016-2025 AsyncAPI Initiative,
Apache-2.0; this product includes software developed at the AsyncAPI Initiative (http://www.asyncapi.com/).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kettle.schema_generation import asyncapi, text

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def official() -> Any:
    schema = json.loads((DATA / "asyncapi-3.0.0.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def test_the_document_is_asyncapi_3(official: Any) -> None:
    """Any tool that knows AsyncAPI 3.0 can read it."""
    assert [] == [
        f"{e.json_path}: {e.message[:200]}" for e in official.iter_errors(json.loads(text(asyncapi())))
    ]


def _no_title(document: dict[str, Any]) -> None:
    del document["info"]["title"]


def _no_such_action(document: dict[str, Any]) -> None:
    document["operations"]["publish.frames"]["action"] = "publish"


def _items_of_another_dialect(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["JobId"]["items"] = "integer"


def _parameter_of_version_2(document: dict[str, Any]) -> None:
    document["channels"]["frames"]["parameters"]["pool"]["schema"] = {"type": "string"}


@pytest.mark.parametrize(
    "spoil", [_no_title, _no_such_action, _items_of_another_dialect, _parameter_of_version_2]
)
def test_the_specification_notices(official: Any, spoil: Callable[[dict[str, Any]], None]) -> None:
    """
    A document with a mistake is refused: in what it says of itself, of a channel, of an operation, or in a schema.
    """
    document = json.loads(text(asyncapi()))
    spoil(document)
    assert not official.is_valid(document)
