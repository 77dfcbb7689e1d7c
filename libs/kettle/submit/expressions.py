"""Text to values of a job ad, as they travel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kettle.classad import (
    UNDEFINED,
    ClassAdError,
    ClassAdParseError,
    Exceptional,
    Node,
    Value,
    parse,
    unparse,
)
from kettle.classad.nodes import Literal
from kettle.submit.errors import PlacelessError
from kettle.submit.macros import CLUSTER
from kettle_wire.ads.types import Expr

if TYPE_CHECKING:
    from kettle_wire.ads.types import Scalar

_LITERAL: Final = re.compile(r'("(?:[^"\\]|\\.)*")')
_BOOLEANS: Final = {
    "true": True,
    "yes": True,
    "t": True,
    "1": True,
    "false": False,
    "no": False,
    "f": False,
    "0": False,
}


def expression(text: str) -> Node:
    """The expression that a command's value is; raises PlacelessError."""
    try:
        return parse(_with_cluster(text))
    except ClassAdParseError as error:
        hint = "; a comment stands on a line of its own" if "#" in _LITERAL.sub("", text) else ""
        raise PlacelessError(f"'{text}' is not an expression: {error.sentence}{hint}") from error


def wire(node: Node) -> Scalar:
    """An expression as it travels: literals as themselves."""
    match node:
        case Literal(value=bool() | int() | float() | str() as value):
            return value
        case _:
            return Expr(unparse(node))


def scalar(text: str) -> Scalar:
    """Text of an expression as it travels; raises PlacelessError."""
    return wire(expression(text))


def constant(node: Node) -> Value | None:
    """
    The value of an expression that refers to nothing; None for one that depends on the ads or on the time.
    """
    value = node.value if isinstance(node, Literal) else _computed(node)
    return None if isinstance(value, Exceptional) and value is not UNDEFINED else value


def _computed(node: Node) -> Value | None:
    from kettle.classad import evaluate, references  # much to load, and most commands have a literal

    if references(node).external:
        return None
    try:
        return evaluate(node)
    except ClassAdError:
        return None


def integer(text: str, name: str) -> int:
    """The integer that a command must be; raises PlacelessError."""
    value = constant(expression(text))
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlacelessError(f"{name} must be a whole number, not '{text}'")
    return value


def boolean(text: str, name: str) -> bool:
    """The truth value that a command must be; raises PlacelessError."""
    if text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    value = constant(expression(text))
    if not isinstance(value, bool | int | float):
        raise PlacelessError(f"{name} must be true or false, not '{text}'")
    return bool(value)


def unquoted(text: str) -> str:
    """The text without one pair of double quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _with_cluster(text: str) -> str:
    """
    The number of the cluster, which is not known yet, as what it will be in the job's ad: the attribute ClusterId.

    In a value that is nothing but a string it stays, as in every string attribute, for the schedd to put in.
    """
    if CLUSTER not in text or _LITERAL.fullmatch(text.strip()):
        return text
    pieces = _LITERAL.split(text)
    for index, piece in enumerate(pieces):
        if index % 2 == 0:
            pieces[index] = piece.replace(CLUSTER, "ClusterId")
        elif CLUSTER in piece:
            pieces[index] = f"strcat({piece.replace(CLUSTER, chr(34) + ',ClusterId,' + chr(34))})"
    return "".join(pieces)


def is_undefined(node: Node) -> bool:
    """Whether a command was switched off by the word `undefined`."""
    return isinstance(node, Literal) and node.value is UNDEFINED
