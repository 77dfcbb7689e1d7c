"""
What does not fit where it stands, in words.

msgspec says where it is; the declared type of that place says what may stand there.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect

_PLACE: Final = re.compile(r"^(.*?)( - at (`key` in )?`\$(.*)`)?$", re.DOTALL)
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")
_NAMED: Final = re.compile(r"^Object (contains unknown|missing required) field `(.*)`$", re.DOTALL)
_GOT: Final = re.compile(r", got `(\w+)`$")
_KINDS: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "text",
}
_SIMPLE: Final[Mapping[type[inspect.Type], str]] = {
    inspect.BoolType: "true or false",
    inspect.DateTimeType: "a time with a zone, as in 2026-11-25T14:00:00Z",
    inspect.NoneType: "null",
}
_LONGEST: Final = 100
"""Characters of a name that was sent, in a sentence."""
_WIDE: Final = 1 << 53
"""Bounds from here on are those of the number format."""


class Misfit(msgspec.Struct, frozen=True):
    """What does not fit."""

    pointer: str
    """Where, as a JSON pointer."""
    says: str
    """What is said of it: how a sentence goes on that begins with its name."""

    @property
    def name(self) -> str:
        """The parameter or field that it is in; empty: it is all of it."""
        return self.pointer.lstrip("/").partition("/")[0]


def misfit(error: msgspec.ValidationError, kind: type, *, texts: bool = False) -> Misfit:
    """What an error about a value of this type says; `texts`: all that came was text."""
    found = _PLACE.match(str(error))
    assert found is not None, "the pattern matches any text"
    what, of_key, path = found[1], bool(found[3]), found[4] or ""
    steps = [key or index for key, index in _STEP.findall(path)]
    declared = _at(inspect.type_info(kind), steps)
    there, within = _parted(steps)
    pointer = "".join(f"/{step}" for step in there)
    if named := _NAMED.match(what):
        name = named[2][:_LONGEST]
        says = _of_field(declared, name, known=named[1] == "missing required")
        return (
            Misfit(pointer, f"has {within} whose {name} {says}")
            if within
            else Misfit(f"{pointer}/{name}", says)
        )
    if of_key:
        declared = declared.key_type if isinstance(declared, inspect.DictType) else None
        within = "a name"
    allowed = _allowed(declared, nullable=not texts) if declared is not None else ""
    if not allowed:
        return Misfit(pointer, f"cannot be used: {what}")
    is_now = "" if of_key else _is_now(what, texts=texts)
    return Misfit(pointer, f"{f'has {within} that ' if within else ''}has to be {allowed}{is_now}")


def _is_now(what: str, *, texts: bool) -> str:
    if value := what.removeprefix("Invalid enum value ") if what.startswith("Invalid enum value ") else "":
        return f", and is {ascii(value[:_LONGEST])[1:-1]}"
    got = None if texts else _GOT.search(what)
    return f", and is {_KINDS.get(got[1], got[1])}" if got else ""


def _parted(steps: Sequence[str]) -> tuple[Sequence[str], str]:
    """
    The steps that are known, and what is behind them: of the names of an object msgspec does not tell which it was.
    """
    if "..." not in steps:
        return steps, ""
    behind = steps[steps.index("...") + 1 :]
    return steps[: steps.index("...")], f"a value with {'/'.join(behind)}" if behind else "a value"


def _of_field(declared: inspect.Type | None, name: str, *, known: bool) -> str:
    fields = declared.fields if isinstance(declared, inspect.StructType) else ()
    if known:
        wanted = next((field.type for field in fields if field.encode_name == name), None)
        allowed = _allowed(wanted, nullable=True) if wanted is not None else ""
        return f"is missing: it has to be {allowed}" if allowed else "is missing"
    near = difflib.get_close_matches(name, [field.encode_name for field in fields], n=1, cutoff=0.6)
    return f"is not known{f'; the nearest is {near[0]}' if near else ''}"


def _at(declared: inspect.Type, steps: Sequence[str]) -> inspect.Type | None:
    """The type of what is somewhere below; None: nobody can tell."""
    here: inspect.Type | None = _bare(declared)
    for step in steps:
        parts = here.types if isinstance(here, inspect.UnionType) else (here,)
        here = next((below for part in parts for below in _below(part, step)), None)
    return here


def _below(declared: inspect.Type | None, step: str) -> Iterator[inspect.Type]:
    match declared:
        case inspect.StructType(fields=fields):
            yield from (_bare(field.type) for field in fields if field.encode_name == step)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield _bare(item)
        case inspect.DictType(value_type=value):
            yield _bare(value)
        case _:
            pass


def _bare(declared: inspect.Type) -> inspect.Type:
    """A type without what is said about it, but examples."""
    if isinstance(declared, inspect.Metadata) and not _examples(declared):
        return _bare(declared.type)
    return declared


def _examples(declared: inspect.Metadata) -> list[str]:
    said: Any = declared  # what a schema has besides is declared as a dict of anything
    schema: Mapping[str, Any] = said.extra_json_schema or {}
    return [str(each) for each in schema.get("examples", ())]


def _allowed(declared: inspect.Type, *, nullable: bool) -> str:
    """What may stand there; empty: there are no words for it."""
    match declared:
        case inspect.Metadata():
            examples = _examples(declared)
            return f"like {' or '.join(examples)}" if examples else _allowed(declared.type, nullable=nullable)
        case inspect.UnionType(types=types):
            parts = [part for part in types if nullable or not isinstance(part, inspect.NoneType)]
            words = list(dict.fromkeys(_allowed(part, nullable=nullable) for part in parts))
            return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 and all(words) else words[0]
        case inspect.IntType() | inspect.FloatType():
            return _number(declared)
        case inspect.StrType():
            return _text(declared)
        case inspect.LiteralType(values=values):
            return f"{'one of ' if len(values) > 1 else ''}{', '.join(map(str, values))}"
        case inspect.EnumType(cls=choices):
            return f"one of {', '.join(str(each.value) for each in choices)}"
        case inspect.ListType() | inspect.VarTupleType() | inspect.DictType():
            kind = "an object" if isinstance(declared, inspect.DictType) else "a list"
            return kind + _within(declared.min_length, declared.max_length, " of {} values")
        case inspect.StructType(array_like=False, fields=fields):
            needed = [field.encode_name for field in fields if field.required]
            return f"an object with {', '.join(needed)}" if needed else "an object"
        case _:
            return _SIMPLE.get(type(declared), "")


def _number(declared: inspect.IntType | inspect.FloatType) -> str:
    said = "a whole number" if isinstance(declared, inspect.IntType) else "a number"
    low, high = (
        bound if bound is not None and abs(bound) < _WIDE else None for bound in (declared.ge, declared.le)
    )
    if declared.gt is not None:
        said += f" greater than {declared.gt:g}"
    return said + _within(low, high, " {}", least="from {} on", most="up to {}", both="from {} to {}")


def _text(declared: inspect.StrType) -> str:
    lengths = _within(declared.min_length, declared.max_length, " of {} characters")
    pattern = declared.pattern
    if pattern is None:
        return f"text{lengths}"
    if pattern in {r"^[^\x00]*$", r"^[^\x00]+$"}:
        return f"text{lengths} without a NUL"
    return f"text{lengths} that matches {pattern}"


def _within(
    low: float | None,
    high: float | None,
    frame: str,
    *,
    least: str = "at least {}",
    most: str = "at most {}",
    both: str = "{} to {}",
) -> str:
    """Bounds in words; nothing where there are none."""
    match low, high:
        case None, None:
            return ""
        case _, None:
            said = least.format(f"{low:,}")
        case None, _:
            said = most.format(f"{high:,}")
        case _:
            said = both.format(f"{low:,}", f"{high:,}")
    return frame.format(said)
