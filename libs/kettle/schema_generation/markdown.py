"""Tables of generated pages, and types in a reader's words."""

from collections.abc import Iterator, Sequence
from enum import Enum
from math import inf
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec


def one_line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table with these titles."""
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def type_name(kind: Any, *, unlimited: float = inf) -> str:
    """A type in a reader's words; a limit of `unlimited` is none."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = [limit for meta in inner[1:] for limit in _limits(meta, unlimited)]
        return ", ".join([type_name(inner[0], unlimited=unlimited), *limits])
    if origin is Literal:
        return "one of " + ", ".join(f"`{value}`" for value in inner)
    if origin in {tuple, list}:
        return f"list of {type_name(inner[0], unlimited=unlimited)}"
    if origin is dict:
        return "table"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(f"`{each.value}`" for each in kind)
    if origin is not None or isinstance(kind, str):
        return " or ".join(type_name(part, unlimited=unlimited) for part in inner)
    names = {
        "str": "text",
        "float": "number",
        "int": "integer",
        "bool": "true or false",
        "NoneType": "nothing",
    }
    name = str(kind.__name__)
    return names.get(name, name)


def _limits(meta: object, unlimited: float) -> Iterator[str]:
    for sign, name in (("≥", "ge"), (">", "gt"), ("≤", "le"), ("<", "lt")):
        value = getattr(meta, name, None)
        if value is not None and value != unlimited:
            yield f"{sign} {int(value) if value == int(value) else value}"  # 1 and 1.0 are one limit


def default_of(field: msgspec.structs.FieldInfo) -> str:
    """What a field is if it is not given."""
    if field.required:
        return "none, give it"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return f"`{msgspec.json.encode(value).decode()}`"
