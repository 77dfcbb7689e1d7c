"""
The REST interface as an OpenAPI 3.1 document, made from the declarations of its routes, and what of it must not change.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kettle.schema_generation.json_schema import Document, definitions, is_object, plain
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.problem import Problem
from kettle_wire.rest.route import EVERYWHERE, HEADERS, VERSION, Route

_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_TEMPLATE: Final = "#/components/schemas/{name}"
_PROBLEM: Final = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


def openapi(routes: Sequence[Route] = ROUTES) -> Document:
    """The document of some routes."""
    kinds = [kind for route in routes for kind in (route.reply, route.body) if kind is not None]
    _, schemas = definitions([Problem, *kinds], _TEMPLATE)
    parameters = dict(_parameters(routes, schemas))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, parameters[route])
    return _without_closed_tuples(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Kettle",
                "version": VERSION,
                "description": "Jobs, machines and the past of a pool.",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "security": [{"bearer": []}],
            "paths": paths,
            "components": {
                "schemas": dict(sorted(schemas.items())),
                "securitySchemes": {
                    "bearer": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "A token of an issuer that the pool trusts, or the private token file of the pool.",
                    }
                },
            },
        }
    )


def _without_closed_tuples(document: Document) -> Document:
    """
    The document, plain. That a tuple has no more items follows from `maxItems`, and some generators of clients take no schema `false`.
    """
    made = plain(document)
    waiting: list[Any] = [made]
    while waiting:
        one = waiting.pop()
        if is_object(one):
            if one.get("items") is False:
                del one["items"]
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return made


def _parameters(routes: Sequence[Route], schemas: dict[str, Document]) -> Iterator[tuple[Route, list[Any]]]:
    """Of each route its parameters; definitions that only these refer to are added to `schemas`."""
    for route in routes:
        [root], found = definitions([route.parameters], _TEMPLATE)
        struct = found.pop(str(root["$ref"]).rpartition("/")[2])
        schemas |= found
        required = struct.get("required", [])
        in_path = _IN_PATH.findall(route.path)
        yield (
            route,
            [
                _parameter(
                    name, about, where="path" if name in in_path else "query", required=name in required
                )
                for name, about in struct["properties"].items()
            ],
        )


def _parameter(name: str, about: Document, *, where: str, required: bool) -> Document:
    described = dict(about)
    made: Document = {"name": name, "in": where, "required": required or where == "path"}
    if description := described.pop("description", ""):
        made["description"] = description
    if described.get("type") == "array":
        made |= {"style": "form", "explode": False}
        described["minItems"] = 1
        described.pop("default", None)
    return {**made, "schema": described}


def _header(name: str) -> Document:
    schema = {"type": "string", **_HEADER_FORMS.get(name, {})}
    return {"name": name, "in": "header", "required": False, "description": HEADERS[name], "schema": schema}


_HEADER_FORMS: Final[Mapping[str, Document]] = {
    "Idempotency-Key": {"maxLength": 256, "pattern": "^[ -~]*$"},
    "Content-Range": {"pattern": r"^bytes ([0-9]{1,19}-[0-9]{1,19}|\*)/[0-9]{1,19}$"},
    "Repr-Digest": {"pattern": "^sha-256=:[A-Za-z0-9+/]{43}=:$"},
    "Last-Event-ID": {"maxLength": 18, "pattern": "^[0-9]*$"},
}
"""What headers have to look like; an entity tag has any length."""


def _operation(route: Route, parameters: list[Document]) -> Document:
    said = " ".join((route.parameters.__doc__ or "").split())
    summary, _, more = said.partition(". ")
    refusals = sorted({*EVERYWHERE, *route.errors})
    made: Document = {
        "operationId": route.operation,
        "summary": summary.rstrip("."),
        **({"description": more} if more else {}),
        "parameters": [*parameters, *map(_header, route.headers)],
        "responses": {
            "200": _answer(route),
            **({"201": _answer(route)} if route.creates else {}),
            **({"206": _answer(route)} if "Range" in route.headers else {}),
            **(
                {"304": {"description": "It is what If-None-Match names."}}
                if "If-None-Match" in route.headers
                else {}
            ),
            **{str(status): {"description": "Refused.", "content": _PROBLEM} for status in refusals},
        },
        "x-level": route.level,
    }
    if route.body is not None:
        content: Document = {"application/json": {"schema": _reference(route.body)}}
        if route.text_body:
            content["text/plain"] = {"schema": {"type": "string"}}
        made["requestBody"] = {"required": True, "content": content}
    elif route.takes:
        made["requestBody"] = {"required": True, "content": {each: {} for each in route.takes}}
    return made


def _answer(route: Route) -> Document:
    if route.reply is None:
        return {"description": "The bytes.", "content": {route.octets: {}}}
    media = "text/event-stream" if route.stream else "application/json"
    return {
        "description": " ".join((route.reply.__doc__ or "").split()),
        "content": {media: {"schema": _reference(route.reply)}, **{other: {} for other in route.others}},
    }


def _reference(kind: type[msgspec.Struct]) -> Document:
    return {"$ref": _TEMPLATE.format(name=kind.__name__)}


def breaks(before: Document, now: Document) -> list[str]:
    """
    A sentence for each change by which a program could fail that was written for the document `before`.

    Programs may rely on routes, parameters, members of answers, and that what they send is still taken.
    """
    before, now = _without_closed_tuples(before), _without_closed_tuples(now)
    return [
        f"{where}: {what}; raise the first number of kettle_wire.rest.route.VERSION, or leave it as it was"
        for where, what in _broken(before, now)
        if before["info"]["version"].split(".")[0] == now["info"]["version"].split(".")[0]
    ]


def _broken(before: Document, now: Document) -> Iterator[tuple[str, str]]:
    for path, methods in before["paths"].items():
        for method, old in methods.items():
            where = f"{method.upper()} {path}"
            new = now["paths"].get(path, {}).get(method)
            if new is None:
                yield where, "is gone"
                continue
            yield from _broken_parameters(where, old["parameters"], new["parameters"])
    old_schemas, new_schemas = before["components"]["schemas"], now["components"]["schemas"]
    sent = _reachable(before, "requestBody")
    for name, old in old_schemas.items():
        if name not in new_schemas:
            yield name, "is gone"
        else:
            yield from _broken_struct(name, old, new_schemas[name], sent=name in sent)


def _broken_parameters(where: str, old: list[Any], new: list[Any]) -> Iterator[tuple[str, str]]:
    found = {each["name"]: each for each in new}
    known = {each["name"] for each in old}
    for each in old:
        name = each["name"]
        if name not in found:
            yield f"{where} {name}", "is gone"
        elif missing := _values(each["schema"]) - _values(found[name]["schema"]):
            yield f"{where} {name}", f"does not take {', '.join(sorted(missing))} any more"
    for name in found.keys() - known:
        if found[name]["required"]:
            yield f"{where} {name}", "is required now"


def _broken_struct(name: str, old: Document, new: Document, *, sent: bool) -> Iterator[tuple[str, str]]:
    was, now = old.get("properties", {}), new.get("properties", {})
    for field in was.keys() - now.keys():
        yield f"{name}.{field}", "is gone"
    for field in was.keys() & now.keys():
        if _shape(was[field]) != _shape(now[field]):
            yield f"{name}.{field}", f"was {_shape(was[field])} and is {_shape(now[field])}"
    required, now_required = set(old.get("required", ())), set(new.get("required", ()))
    for field in sorted(now_required - required if sent else required - now_required):
        yield f"{name}.{field}", "is required now" if sent else "may be absent now"


def _values(schema: Mapping[str, Any]) -> set[str]:
    """What an enumeration has, also one of the members of a list."""
    inner = schema.get("items")
    return set(map(str, schema.get("enum", ()))) | (_values(inner) if is_object(inner) else set())


def _shape(schema: Mapping[str, Any]) -> str:
    """A schema without what is said about it and without what it may grow by."""
    return msgspec.json.encode(_kept(schema)).decode()


def _kept(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: schema[key] for key in ("type", "$ref", "anyOf", "items", "format") if key in schema}
    if is_object(kept.get("items")):
        kept["items"] = {key: value for key, value in kept["items"].items() if key != "examples"}
    return kept


def _reachable(document: Document, part: str) -> set[str]:
    """The names of the schemas to which some part of any operation leads."""
    schemas = document["components"]["schemas"]
    waiting = [
        operation[part]
        for methods in document["paths"].values()
        for operation in methods.values()
        if part in operation
    ]
    found: set[str] = set()
    while waiting:
        for name in re.findall(
            r'"#/components/schemas/([^"]+)"', msgspec.json.encode(waiting.pop()).decode()
        ):
            if name not in found:
                found.add(name)
                waiting.append(schemas[name])
    return found
