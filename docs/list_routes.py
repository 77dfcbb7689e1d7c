"""
Makes `docs/reference/rest.md`: every route of the REST interface, by its declaration.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

from kettle.schema_generation import openapi
from kettle.schema_generation.field_descriptions import meanings
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import EVERYWHERE, Route


def rest_page() -> str:
    """The page, below its first line."""
    document = openapi()
    parts = [_HEAD]
    for route in ROUTES:
        parts += _route(route, document["paths"][route.path][route.method.lower()])
    parts.append(
        "\n## Codes\n\nBesides these a refusal has the code of a refused command ([codes](codes.md)) or token ([tokens](tokens.md)).\n\n"
    )
    parts.append("| code | meaning |\n|---|---|\n")
    said = meanings(ProblemCode)
    parts += [f"| `{code.value}` | {said[code.name]} |\n" for code in ProblemCode]
    return "".join(parts)


def _route(route: Route, operation: dict[str, Any]) -> Iterator[str]:
    yield f"\n## {route.method} {route.path}\n\n"
    yield f"{' '.join((inspect.getdoc(route.parameters) or '').split())}\n\n"
    refusals = ", ".join(str(status) for status in sorted({*EVERYWHERE, *route.errors}))
    yield f"Level {route.level}; refused with {refusals}.\n"
    if operation["parameters"]:
        yield "\n| parameter | in | type | meaning |\n|---|---|---|---|\n"
        for each in operation["parameters"]:
            meaning = each.get("description", "").replace("|", "\\|")
            yield f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | {meaning} |\n"
    if route.body is not None:
        yield f"\nBody: `{route.body.__name__}`. {' '.join((inspect.getdoc(route.body) or '').split())}\n"
    if route.takes:
        yield f"\nBody: {' or '.join(f'`{each}`' for each in route.takes)}.\n"
    if route.reply is None:
        yield f"\nAnswer: a file, `{route.octets}`.\n"
    else:
        others = f" Or {' or '.join(f'`{each}`' for each in route.others)}." if route.others else ""
        yield f"\nAnswer: `{route.reply.__name__}`. {' '.join((inspect.getdoc(route.reply) or '').split())}{others}\n"


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    bounds = [f"from {schema['minimum']}"] if "minimum" in schema else []
    bounds += [f"to {schema['maximum']}"] if "maximum" in schema else []
    default = schema.get("default")
    bounds += [f"else {default}"] if isinstance(default, int) and not isinstance(default, bool) else []
    kind = schema.get("format") or str(schema.get("type", "text"))
    return re.sub("^string$", "text", kind) + (f", {' '.join(bounds)}" if bounds else "")


_HEAD: Final = """# The REST interface

What a gateway with `rest = true` answers over HTTP; [how to use it](../how-to/use-the-rest-interface.md).
The same as an OpenAPI 3.1 document is at `/openapi.json`, and in [schemas/json/openapi.json](../../schemas/json/openapi.json).

A list in a query is written with commas, a time as in `2026-11-25T14:00:00Z`.
A refusal is `application/problem+json` with `type`, `title`, `status`, `detail`, `code`, `instance`, `errors` (each a `pointer` and a `detail`) and `trace`.
Any route may answer 400, 401, 403, 429 and 503; one that looks at `If-None-Match` also 304.
"""
