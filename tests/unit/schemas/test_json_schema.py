"""What a schema says of a struct."""

from typing import Any

import jsonschema
import msgspec

from kettle.schema_generation.json_schema import schema, structs
from kettle_wire.events import ExitRecord, JobCompleted, JobVacated, Transfer, Usage
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId
from kettle_wire.moved_files import FailedTry, FileRecord, MovedFiles, SourceTotal


class Tree(msgspec.Struct):
    name: str
    branches: "list[Tree]" = []


def test_fields_are_explained() -> None:
    """The texts below the fields of a struct are in its schema, those of structs inside of it too."""
    found = schema(JobVacated, id_="urn:x", title="x")
    assert "Seconds that the job" in found["properties"]["cool_down"]["description"]
    assert "When it exited" in found["$defs"]["ExitRecord"]["properties"]["at"]["description"]
    assert "Peak resident set, KiB." == found["$defs"]["Usage"]["properties"]["memory_kib"]["description"]


def test_items_of_arrays_have_names() -> None:
    """Of a struct that is an array on the wire, the schema names the items, which the wire does not."""
    found = schema(Frame, id_="urn:x", title="frame")
    assert ["shard", "epoch", "number", "position", "at", "entries"] == [
        item["title"] for item in found["prefixItems"]
    ]
    assert "without gaps" in found["prefixItems"][2]["description"]


def test_a_struct_in_itself() -> None:
    """A struct that holds others of its kind has a schema that refers to itself."""
    found: Any = jsonschema.Draft202012Validator(schema(Tree, id_="urn:x", title="tree"))
    assert found.is_valid({"name": "a", "branches": [{"name": "b"}]})
    assert not found.is_valid({"name": "a", "branches": [{"name": 1}]})


def test_everything_inside_is_found() -> None:
    """Structs in fields, in lists and in maps of a struct are all there, each once."""
    files = {FailedTry, FileRecord, MovedFiles, SourceTotal}
    assert {ExitRecord, JobCompleted, Transfer, Usage} | files == set(structs([JobCompleted]))
    assert [JobId] == list(structs([dict[str, list[JobId | None]]]))
