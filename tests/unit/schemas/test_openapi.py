"""The REST interface as an OpenAPI document, and what of it must not change."""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

import copy
import re
from collections.abc import Hashable, Mapping
from typing import Any, cast

import jsonschema
import openapi_spec_validator
import pytest
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from openapi_spec_validator.schemas import openapi_v31_schema_validator
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError
from referencing.jsonschema import DRAFT202012

from kettle.schema_generation import breaks, openapi
from kettle_wire.rest.catalogue import ROUTES

_OPENAPI: dict[str, Any] = dict(openapi_v31_schema_validator.schema)


class Validator(openapi_spec_validator.OpenAPIV31SpecValidator):
    """
    The library's, with a registry that has been searched for anchors: it searches its own for each reference, three
    quarters of its time.
    """

    schema_validator = jsonschema.Draft202012Validator(
        {"$ref": _OPENAPI["$id"]},
        registry=REGISTRY.with_resource(_OPENAPI["$id"], DRAFT202012.create_resource(_OPENAPI)).crawl(),
        format_checker=openapi_v31_schema_validator.format_checker,
    )


def test_it_is_an_openapi_document() -> None:
    """The validator that programs use before they make a client of it finds nothing."""
    openapi_spec_validator.validate(cast("Mapping[Hashable, Any]", openapi()), cls=Validator)


@pytest.mark.parametrize(
    "keys",
    [
        ("paths", "/v2/jobs", "get", "responses"),
        ("paths", "/v2/jobs", "get", "operationId"),
        ("components", "schemas", "Job"),
    ],
)
def test_what_is_no_openapi_document_is_found(keys: tuple[str, ...]) -> None:
    """A number instead of answers, of a name, and of a schema, wherever references lead to it."""
    wrong = openapi()
    inner: Any = wrong
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = 5
    with pytest.raises(OpenAPIValidationError, match="5 is not"):
        openapi_spec_validator.validate(cast("Mapping[Hashable, Any]", wrong), cls=Validator)


def test_every_route_is_described_once() -> None:
    """Each has an operation of its own name, and each parameter in its path is one of its parameters."""
    document = openapi()
    operations = [
        (path, operation) for path, methods in document["paths"].items() for operation in methods.values()
    ]
    assert sorted(route.operation for route in ROUTES) == sorted(
        each["operationId"] for _, each in operations
    )
    for path, operation in operations:
        in_path = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert set(re.findall(r"\{(\w+)\}", path)) == in_path


def test_all_references_lead_to_schemas_that_are_schemas() -> None:
    """A program that generates a client finds every definition."""
    document = openapi()
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert set(re.findall(r"'#/components/schemas/(\w+)'", str(document))) <= schemas.keys()


def without(document: Any, *keys: str) -> Any:
    """A copy without what the keys lead to."""
    changed = copy.deepcopy(document)
    inner = changed
    for key in keys[:-1]:
        inner = inner[key]
    del inner[keys[-1]]
    return changed


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (("paths", "/v2/jobs", "get"), "GET /v2/jobs: is gone"),
        (("components", "schemas", "Job", "properties", "owner"), "Job.owner: is gone"),
        (("components", "schemas", "GroupCount"), "GroupCount: is gone"),
    ],
)
def test_what_programs_rely_on_is_not_taken_away(keys: tuple[str, ...], said: str) -> None:
    """A route, a member, a definition that is gone is a sentence; something new is none."""
    whole = openapi()
    less = without(whole, *keys)
    assert any(each.startswith(said) for each in breaks(whole, less))
    assert [] == breaks(less, whole)


def test_what_is_sent_may_not_need_more_and_what_comes_may_not_hold_less() -> None:
    """
    A member that requests must have from now on breaks who sends them; one that answers may lack, who reads them.
    """
    before, now = openapi(), openapi()
    now["components"]["schemas"]["JobChange"].setdefault("required", []).append("reason")
    now["components"]["schemas"]["Job"]["required"].remove("owner")
    said = " ".join(breaks(before, now))
    assert "JobChange.reason: is required now" in said
    assert "Job.owner: may be absent now" in said
    now["info"]["version"] = "3.0.0"
    assert [] == breaks(before, now)
