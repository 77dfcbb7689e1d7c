"""
Whether what is published still holds: the schemas that the code makes, compared with those that were made before.

Allowed is one change: a field more that may be absent, which old records lack and old readers pass over.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kettle.schema_generation.catalogue import LASTING
from kettle.schema_generation.json_schema import Document, is_object

_ANNOTATIONS: Final = frozenset(
    {"$schema", "$id", "$defs", "$comment", "title", "description", "discriminator"}
)
"""What a reader of bytes does not see."""
_WALKED: Final = frozenset(
    {"properties", "required", "prefixItems", "anyOf", "items", "additionalProperties"}
)


def incompatible(published: Mapping[str, Document], now: Mapping[str, Document]) -> list[str]:
    """
    A sentence for each change that would break what is recorded, or who reads it; by path, see `documents`.
    """
    found: list[str] = []
    for path, old in sorted(published.items()):
        if path.startswith(LASTING):
            title = str(old.get("title", path))
            changes = _Comparison(old, now[path]).changes() if path in now else ["it is gone"]
            found += [f"{title}: {change}; {_advice(path, title)}" for change in changes]
    return found


def _advice(path: str, title: str) -> str:
    name, slash, number = title.partition("/")
    unreleased = f"only if no release has it, delete schemas/json/{path} and run docs/generate.py"
    if path.startswith("events/") and slash:
        return (
            f"a published type is only superseded: leave {title} as it was, add {name}/{int(number) + 1}, and give "
            f"{title} a method upcast (docs/explanation/event-evolution.md); {unreleased}"
        )
    return f"it is read by programs that are not ours: only add fields that may be absent; {unreleased}"


class _Comparison:
    """
    Two documents, walked side by side; definitions are followed, so that what they are called does not matter.
    """

    def __init__(self, old: Document, new: Document) -> None:
        self._old = old
        self._new = new
        self._seen: set[tuple[str, ...]] = set()

    def changes(self) -> list[str]:
        return [f"{where or 'the whole'} {what}" for where, what in self._compare(self._old, self._new, "")]

    def _compare(self, old: Any, new: Any, where: str) -> Iterator[tuple[str, str]]:
        if not (is_object(old) and is_object(new)):
            if old != new:
                yield where, f"was {_said(old)} and is {_said(new)}"
            return
        pair = tuple(str(side.get(key)) for key in ("$ref", "default") for side in (old, new))
        if "$ref" in old and pair in self._seen:
            return
        self._seen.add(pair)
        before, after = _resolved(self._old, old), _resolved(self._new, new)
        for key in sorted((before.keys() | after.keys()) - _ANNOTATIONS - _WALKED):
            if before.get(key, _ABSENT) != after.get(key, _ABSENT):
                yield (
                    where,
                    f"had {key} {_said(before.get(key, _ABSENT))}, and now {_said(after.get(key, _ABSENT))}",
                )
        yield from self._fields(before, after, where)
        yield from self._items(before, after, where)
        for key, name in (("items", "[]"), ("additionalProperties", "{}")):
            yield from self._compare(before.get(key, True), after.get(key, True), where + name)

    def _fields(self, before: Document, after: Document, where: str) -> Iterator[tuple[str, str]]:
        old, new = before.get("properties", {}), after.get("properties", {})
        required, now_required = set(before.get("required", ())), set(after.get("required", ()))
        dot = f"{where}." if where else ""
        for name in old:
            if name not in new:
                yield f"{dot}{name}", "is gone"
                continue
            yield from self._compare(old[name], new[name], f"{dot}{name}")
            if name in required - now_required:
                yield f"{dot}{name}", "was always there and may now be absent"
        for name in sorted(now_required - required):
            yield f"{dot}{name}", "is required now, and what is recorded does not have it"

    def _items(self, before: Document, after: Document, where: str) -> Iterator[tuple[str, str]]:
        for key, what in (("prefixItems", "items"), ("anyOf", "kinds of value")):
            old, new = before.get(key, []), after.get(key, [])
            if len(new) < len(old) or (len(new) > len(old) and key == "anyOf"):
                yield where, f"had {len(old)} {what} and has {len(new)}"
                continue
            for number, (one, other) in enumerate(zip(old, new, strict=False)):
                yield from self._compare(one, other, f"{where}[{number}]" if key == "prefixItems" else where)


_ABSENT: Final = msgspec.UNSET


def _resolved(document: Document, schema: Document) -> Document:
    """A schema without its reference; what stands beside the reference stays."""
    while "$ref" in schema:
        target: Any = document
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[part]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def _said(value: object) -> str:
    return "nothing" if value is _ABSENT else msgspec.json.encode(value).decode()
