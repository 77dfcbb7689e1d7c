"""
Types of fields that hold ClassAd expressions as text, and what is wrong with such a text.

Settings are checked by them when they are read, and not when a job asks for a policy. A syntax error, a function that does
not exist and a constant of another type are complaints. Attributes are another matter: a policy may look at those that
only its site knows, so `unknown_attributes` is for warnings.
"""

from collections.abc import Container, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from kettle.terminal.nearest_names import did_you_mean

Kind = Literal["condition", "number", "text", "value"]

_MARK: Final = "kettle:expression"
T = TypeVar("T")
_Text = str | float | bool
"""An expression as text; a number or truth value is a literal."""

Condition = Annotated[_Text, msgspec.Meta(extra={_MARK: "condition"})]
"""An expression that is true or not."""
NumberExpression = Annotated[_Text, msgspec.Meta(extra={_MARK: "number"})]
"""An expression whose value is a number."""
TextExpression = Annotated[_Text, msgspec.Meta(extra={_MARK: "text"})]
"""An expression whose value is a string."""
ConditionText = Annotated[str, msgspec.Meta(extra={_MARK: "condition"})]
"""A condition that is always written as text; empty: none."""
NumberText = Annotated[str, msgspec.Meta(extra={_MARK: "number"})]
"""An expression for a number that is always written as text; empty: none."""
ReasonText = Annotated[str, msgspec.Meta(extra={_MARK: "text"})]
"""An expression for a string that is always written as text; empty: none."""

_WRONG: Final[Mapping[Kind, tuple[type, ...]]] = {
    "condition": (str,),
    "number": (str,),
    "text": (bool, int, float),
    "value": (),
}
"""Of which types a constant can never be what is wanted."""
_WANTED: Final[Mapping[Kind, str]] = {
    "condition": "a condition, true or false",
    "number": "a number",
    "text": "a text; write it in quotes within the expression, as in '\"the reason\"'",
}


class Expression(msgspec.Struct, frozen=True):
    """One expression among the settings: `keys` lead to it from its setting's name."""

    keys: tuple[str, ...]
    kind: Kind
    text: str


def expressions(kind: Any, value: object, keys: tuple[str, ...] = ()) -> Iterator[Expression]:
    """The expressions in the value of a setting, by the type of the setting."""
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *about = get_args(kind)
        marked = [
            meta.extra[_MARK]
            for meta in about
            if isinstance(meta, msgspec.Meta) and meta.extra and _MARK in meta.extra
        ]
        if marked:
            if isinstance(value, str) and value.strip():
                yield Expression(keys, marked[0], value)
            return
        yield from expressions(inner, value, keys)
    elif origin in {tuple, list} and isinstance(value, tuple | list):
        for place, each in enumerate(cast("tuple[object, ...]", value)):
            yield from expressions(get_args(kind)[0], each, (*keys, str(place)))
    elif origin is dict and isinstance(value, dict):
        for name, each in cast("dict[str, object]", value).items():
            yield from expressions(get_args(kind)[1], each, (*keys, name))
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            yield from expressions(field.type, getattr(value, field.name), (*keys, field.encode_name))


def complaint(expression: Expression) -> str:
    """Why an expression cannot be used; empty if it can."""
    # what a service without expressions does not load
    from kettle.classad import ClassAdParseError, parse
    from kettle.classad.functions import FUNCTIONS
    from kettle.classad.nodes import AdLiteral, Call, ListLiteral, Parentheses
    from kettle.classad.nodes import Literal as Constant
    from kettle.classad.reference_analysis import children

    try:
        node = parse(expression.text)
    except ClassAdParseError as error:
        return f"is no expression: {error}"
    bare = node
    while isinstance(bare, Parentheses):
        bare = bare.inner
    wrong = _WRONG[expression.kind]
    if isinstance(bare, AdLiteral | ListLiteral) or (
        isinstance(bare, Constant) and isinstance(bare.value, wrong)
    ):
        return f"{expression.text} is not {_WANTED[expression.kind]}"
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, Call) and each.key not in FUNCTIONS:
            return f"there is no function {each.name}(){did_you_mean(each.name, FUNCTIONS)}"
        pending.extend(children(each))
    return ""


def unknown_attributes(text: str, known: Container[str]) -> list[str]:
    """
    The attributes that an expression names and that are not among the known ones, which are in lower case.

    What is within a nested ad, or within an attribute's own value, is not looked at: its names are its own.
    """
    from kettle.classad import parse
    from kettle.classad.ad import OTHER, OWN
    from kettle.classad.nodes import AdLiteral, Reference
    from kettle.classad.reference_analysis import children
    from kettle.classad.scope import MAGIC

    sides = OWN | OTHER
    found: dict[str, str] = {}
    pending = [parse(text)]
    while pending:
        node = pending.pop()
        if isinstance(node, AdLiteral):
            continue
        if isinstance(node, Reference):
            of_side = isinstance(node.base, Reference) and node.base.base is None and node.base.key in sides
            if (node.base is None or of_side) and node.key not in MAGIC | sides and node.key not in known:
                found.setdefault(node.key, node.name)
            if of_side:
                continue
        pending.extend(children(node))
    return sorted(found.values())
