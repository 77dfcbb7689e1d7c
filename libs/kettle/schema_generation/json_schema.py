"""From structs to schemas: every struct a definition, every field with what it means."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard, cast, get_args

import msgspec

from kettle.schema_generation.field_descriptions import meanings

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Document = dict[str, Any]
"""A JSON document, as what `json.loads` would give."""


def is_object(value: object) -> TypeGuard[Document]:
    """Whether a part of a document is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a part of a document is an array."""
    return isinstance(value, list)


def text(document: Document) -> bytes:
    """A document as it is kept and served: the same bytes for the same document."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def schema(kind: Any, *, id_: str, title: str) -> Document:
    """A schema that stands on its own, of a struct or of any other type of the wire."""
    [root], found = definitions([kind], "#/$defs/{name}")
    head: Document = {"$schema": DIALECT, "$id": id_, "title": title}
    name = str(root.get("$ref", "")).rpartition("/")[2]
    if name and not _mentioned(name, found):
        root = {key: value for key, value in found.pop(name).items() if key != "title"}
    return plain(head | root | ({"$defs": found} if found else {}))


def definitions(kinds: Sequence[Any], template: str) -> tuple[list[Document], dict[str, Document]]:
    """
    The schemas of some types, and by name those of all structs in them, which they refer to by `template`.
    """
    inside = list(structs(kinds))
    refs, found = msgspec.json.schema_components([*kinds, *inside], ref_template=template)
    for struct, ref in zip(inside, refs[len(kinds) :], strict=True):
        _explain(found[ref["$ref"].rpartition("/")[2]], struct)
    return list(refs[: len(kinds)]), dict(sorted(found.items()))


def structs(kinds: Iterable[Any]) -> Iterator[type[msgspec.Struct]]:
    """Every struct that is one of `kinds`, or inside of one."""
    seen: set[type] = set()
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in seen:
            seen.add(kind)
            waiting += [field.type for field in msgspec.structs.fields(kind)]
            yield kind


def _explain(definition: Document, struct: type[msgspec.Struct]) -> None:
    said = meanings(struct)
    fields = msgspec.structs.fields(struct)
    if struct.__struct_config__.array_like:
        tag = len(definition["prefixItems"]) - len(fields)
        places = dict(zip((field.name for field in fields), definition["prefixItems"][tag:], strict=True))
        for name, place in places.items():
            place["title"] = name  # an array says nowhere else what its items are called
    else:
        places = {field.name: definition["properties"][field.encode_name] for field in fields}
    for name, place in places.items():
        if name in said:
            place["description"] = said[name]


def _mentioned(name: str, found: Mapping[str, Document]) -> bool:
    return f'"#/$defs/{name}"'.encode() in msgspec.json.encode(found)


def plain(document: Document) -> Document:
    """A document of nothing but what JSON has."""
    return cast("Document", msgspec.json.decode(msgspec.json.encode(document)))
