"""
Every fault of a document's form: names that there are not, missing and wrong values, limits.

msgspec says only the first of them, so the types that it converts to are walked here; what passes here, it converts.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from kettle.prominence.faults import Fault, below
from kettle.terminal.nearest_names import did_you_mean

Rule = Callable[[Any, str], Iterator[Fault]]
"""What else must hold for a struct whose form is right, and the pointer to it."""

_LONGEST_SHOWN: Final = 60


class Shapes:
    """
    Faults of documents of some types: `places` says what the structs are called in sentences, `rules` what else must hold for them.
    """

    def __init__(
        self, places: Mapping[type[msgspec.Struct], str], rules: Mapping[type[msgspec.Struct], Rule]
    ) -> None:
        self._places = places
        self._rules = rules

    def faults(self, value: object, kind: type, pointer: str = "") -> Iterator[Fault]:
        """All of a value as JSON has it, with `Decimal` for numbers that are not whole."""
        yield from self._walk(value, _described(kind), pointer)

    def _walk(self, value: object, kind: inspect.Type, pointer: str) -> Iterator[Fault]:
        match kind:
            case inspect.Metadata(type=inspect.StrType(pattern=str()) as text) if isinstance(value, str):
                if wrong := _text(value, text, _description(kind)):
                    yield Fault(pointer, f"{_last(pointer)} {wrong}")
            case inspect.Metadata(type=inner):
                yield from self._walk(value, inner, pointer)
            case inspect.UnionType(types=types):
                yield from self._any_of(value, types, pointer)
            case inspect.StructType() if isinstance(value, dict):
                yield from self._struct(cast("dict[str, object]", value), kind, pointer)
            case inspect.DictType() if isinstance(value, dict):
                yield from self._entries(cast("dict[str, object]", value), kind, pointer)
            case inspect.ListType() if isinstance(value, list):
                yield from self._items(cast("list[object]", value), kind, pointer)
            case _:
                if wrong := _wrong(value, kind):
                    yield Fault(pointer, f"{_last(pointer)} {wrong}")

    def _entries(self, value: Mapping[str, object], kind: inspect.DictType, pointer: str) -> Iterator[Fault]:
        for name, part in value.items():
            yield from self._walk(name, kind.key_type, below(pointer, name))
            yield from self._walk(part, kind.value_type, below(pointer, name))

    def _items(self, value: Sequence[object], kind: inspect.ListType, pointer: str) -> Iterator[Fault]:
        least, most = kind.min_length, kind.max_length
        if least and len(value) < least:
            few = "must not be empty" if least == 1 else f"must have {least} items, not {len(value)}"
            yield Fault(pointer, f"{_last(pointer)} {few}")
        elif most is not None and len(value) > most:
            yield Fault(pointer, f"{_last(pointer)} may have at most {most} items, not {len(value)}")
        for number, part in enumerate(value):
            yield from self._walk(part, kind.item_type, below(pointer, number))

    def _any_of(self, value: object, types: Sequence[inspect.Type], pointer: str) -> Iterator[Fault]:
        possible = [kind for kind in types if suits(value, kind)]
        tagged = {
            str(kind.tag): kind for kind in possible if isinstance(kind, inspect.StructType) and kind.tag
        }
        if tagged and isinstance(value, dict):
            yield from self._tagged(cast("dict[str, object]", value), tagged, pointer)
        elif possible:
            yield from self._walk(value, possible[0], pointer)
        else:
            kinds = " or ".join(dict.fromkeys(map(_called, types)))
            yield Fault(pointer, f"{_last(pointer)} must be {kinds}, not {shown(value)}")

    def _tagged(
        self, value: dict[str, object], kinds: Mapping[str, inspect.StructType], pointer: str
    ) -> Iterator[Fault]:
        [field] = {str(kind.tag_field) for kind in kinds.values()}
        tag = value.get(field)
        if isinstance(tag, str) and tag in kinds:
            yield from self._struct(value, kinds[tag], pointer)
            return
        known = ", ".join(kinds)
        if field not in value:
            yield Fault(pointer, f"{_last(pointer)} must have {field}: one of {known}")
        else:
            near = did_you_mean(tag, kinds) if isinstance(tag, str) else ""
            yield Fault(below(pointer, field), f"{field} must be one of {known}, not {shown(tag)}{near}")

    def _struct(self, value: dict[str, object], kind: inspect.StructType, pointer: str) -> Iterator[Fault]:
        place = self._places[kind.cls]
        fields = {field.encode_name: field for field in kind.fields}
        known = {*fields, *([kind.tag_field] if kind.tag_field else [])}
        for name in value if kind.forbid_unknown_fields else ():
            if name not in known:
                sentence = f'invalid item "{name}" in {place}{did_you_mean(name, known)}'
                yield Fault(below(pointer, name), sentence)
        found: list[Fault] = []
        for name, field in fields.items():
            if name in value:
                found += self._walk(value[name], field.type, below(pointer, name))
            elif field.required:
                found.append(Fault(pointer, f"{name} is missing in {place}"))
        yield from found
        if not found and (rule := self._rules.get(kind.cls)):
            sound = {name: part for name, part in value.items() if name in known}
            yield from rule(msgspec.convert(sound, kind.cls), pointer)


@cache
def _described(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _description(kind: inspect.Metadata) -> str | None:
    extra = cast("dict[str, str] | None", kind.extra_json_schema)
    return extra.get("description") if extra else None


def suits(value: object, kind: inspect.Type) -> bool:
    """Whether a value is of the kind of JSON that a type is of, whatever its limits."""
    match kind:
        case inspect.Metadata(type=inner):
            return suits(value, inner)
        case inspect.AnyType():
            return True
        case inspect.NoneType():
            return value is None
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType() | inspect.DecimalType():
            return isinstance(value, int | Decimal) and not isinstance(value, bool)
        case inspect.ListType():
            return isinstance(value, list)
        case inspect.DictType() | inspect.StructType():
            return isinstance(value, dict)
        case inspect.LiteralType() | inspect.StrType() | inspect.BytesType():
            return isinstance(value, str)
        case _:
            raise TypeError(f"no document has a field of type {kind}")


def shown(value: object) -> str:
    """A value in a sentence."""
    text = msgspec.json.Encoder(decimal_format="number").encode(value).decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _called(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(type=inner):
            return _called(inner)
        case inspect.NoneType():
            return "null"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType() | inspect.DecimalType():
            return "a number"
        case inspect.ListType():
            return "a list"
        case inspect.DictType() | inspect.StructType():
            return "an object"
        case inspect.LiteralType(values=values):
            return f"one of {', '.join(map(str, values))}"
        case _:
            return "text"


def _last(pointer: str) -> str:
    """What a sentence calls the part of the document that a pointer points to."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    match parts:
        case []:
            return "the document"
        case [*_, name, number] if number.isdigit():
            return f"{name}[{number}]"
        case _:
            return parts[-1]


def _wrong(value: object, kind: inspect.Type) -> str | None:
    """What is wrong with a value that has no parts, as the end of a sentence."""
    if not suits(value, kind):
        return f"must be {_called(kind)}, not {shown(value)}"
    match kind:
        case inspect.LiteralType(values=values) if value not in values:
            known = [str(one) for one in values]
            return f"must be one of {', '.join(known)}, not {shown(value)}{did_you_mean(str(value), known)}"
        case inspect.StrType():
            return _text(cast("str", value), kind, None)
        case inspect.BytesType():
            return _content(cast("str", value), kind)
        case inspect.IntType() | inspect.FloatType():
            return _amount(cast("int | Decimal", value), kind)
        case _:
            return None


def _text(value: str, kind: inspect.StrType, said: str | None) -> str | None:
    if "\0" in value:
        return "must not have a NUL character in it"
    if kind.min_length is not None and len(value) < kind.min_length:
        return "must not be empty"
    if kind.max_length is not None and len(value) > kind.max_length:
        return f"has {len(value)} characters; the most are {kind.max_length}"
    if kind.pattern is not None and not re.fullmatch(kind.pattern, value):
        return f"must be {said or f'like {kind.pattern}'}, not {shown(value)}"
    return None


def _content(value: str, kind: inspect.BytesType) -> str | None:
    try:
        size = len(b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        return "must be base64"
    if kind.max_length is not None and size > kind.max_length:
        return (
            f"has {size} bytes; the most are {kind.max_length}: upload the file, and name it as an artifact"
        )
    return None


def _amount(value: int | Decimal, kind: inspect.IntType | inspect.FloatType) -> str | None:
    if kind.gt is not None and value <= kind.gt:
        return f"must be more than {kind.gt:g}, not {shown(value)}"
    if kind.ge is not None and value < kind.ge:
        return f"must be {kind.ge:g} or more, not {shown(value)}"
    if kind.le is not None and value > kind.le:
        return f"must be {kind.le:g} or less, not {shown(value)}"
    return None
