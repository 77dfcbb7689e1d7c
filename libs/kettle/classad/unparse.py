"""
Syntax tree to text, in the three layouts HTCondor knows.

New syntax on one line is what expressions travel as; the long form is what people and old files read;
the indented layout exists because ``unparse()`` in an expression returns it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.classad.errors import NotRepresentable
from kettle.classad.nodes import (
    AdLiteral,
    Binary,
    Call,
    Conditional,
    Elvis,
    ListLiteral,
    Literal,
    Logical,
    Node,
    Parentheses,
    Reference,
    Subscript,
    Unary,
)
from kettle.classad.times import absolute_text, relative_text
from kettle.classad.values import AbsTime, Exceptional, RelTime, Scalar, octets

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED: Final = frozenset({"error", "false", "is", "isnt", "parent", "true", "undefined"})
_NAMED: Final = {7: "a", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t", 11: "v", 92: "\\"}
_SPECIAL: Final = re.compile(
    rb"[^ !#-&(-\[\]-~]"
)  # all but printable characters, both quotes and the backslash
_IDENTITY_WORDS: Final = {"=?=": "is", "=!=": "isnt"}


class _Layout(msgspec.Struct, frozen=True):
    """`long` spells operators, reals and strings the old way; `indented` gives every member its line."""

    long: bool = False
    indented: bool = False


_NEW: Final = _Layout()
_LONG: Final = _Layout(long=True)
_INDENTED: Final = _Layout(indented=True)


def unparse(node: Node) -> str:
    """`node` in new syntax on one line."""
    return _written(node, _NEW)


def unparse_long(node: Node) -> str:
    """`node` as the right side of a line of the long form."""
    return _written(node, _LONG)


def unparse_indented(node: Node) -> str:
    """`node` with each member of a list or an ad on a line of its own."""
    return _written(node, _INDENTED)


def _written(node: Node, layout: _Layout) -> str:
    try:
        return _node(node, layout, 0)
    except RecursionError:
        raise NotRepresentable("the expression is nested too deeply to be written") from None


def real_text(number: float) -> str:
    """A real in new syntax: 16 significant digits, so not every real reads back as itself."""
    if math.isfinite(number):
        return f"{number:.15E}" if number else str(number)
    return 'real("NaN")' if math.isnan(number) else f'real("{"-" if number < 0 else ""}INF")'


def _node(node: Node, layout: _Layout, indent: int) -> str:
    match node:
        case Literal(value=value):
            return _scalar(value, layout)
        case Reference(name=name, base=base, absolute=absolute):
            start = "." if absolute else "" if base is None else _node(base, layout, indent) + "."
            return start + quoted_name(name)
        case Binary() | Logical():
            return _chain(node, layout, indent)
        case Parentheses(inner=inner):
            return f"({_node(inner, layout, indent)})"
        case Unary(op=op, operand=operand):
            return f" {op}{_node(operand, layout, indent)}"
        case Call(name=name, arguments=arguments):
            return f"{name}({','.join(_node(argument, layout, indent) for argument in arguments)})"
        case ListLiteral(items=items):
            return _list(items, layout, indent)
        case AdLiteral(attributes=attributes):
            return _ad(attributes, layout, indent)
        case _:
            return _mixed(node, layout, indent)


def _mixed(node: Node, layout: _Layout, indent: int) -> str:
    match node:
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            parts = (_node(part, layout, indent) for part in (condition, then, otherwise))
            return "{} ? {} : {}".format(*parts)
        case Elvis(preferred=preferred, fallback=fallback):
            return f"{_node(preferred, layout, indent)} ?: {_node(fallback, layout, indent)}"
        case Subscript(base=base, index=index):
            return f"{_node(base, layout, indent)}[{_node(index, layout, indent)}]"
        case _:
            raise TypeError(f"{type(node).__name__} is no expression")


def _chain(node: Node, layout: _Layout, indent: int) -> str:
    """Walk down the left side in a loop: a chain of operators is as deep as it is long."""
    parts: list[str] = []
    while isinstance(node, Binary | Logical):
        op = node.op if layout.long else _IDENTITY_WORDS.get(node.op, node.op)
        parts.append(f" {op} {_node(node.right, layout, indent)}")
        node = node.left
    return _node(node, layout, indent) + "".join(reversed(parts))


def _list(items: tuple[Node, ...], layout: _Layout, indent: int) -> str:
    if layout.indented:
        return _lines("{}", [_node(item, layout, indent + 6) for item in items], ",", indent=3 + indent)
    return f"{{ {','.join(_node(item, layout, indent) for item in items)} }}"


def _ad(attributes: tuple[tuple[str, Node], ...], layout: _Layout, indent: int) -> str:
    inner = indent + 8 if layout.indented else indent
    members = [
        f"{quoted_name(name)} = {_node(node, layout, inner)}"
        for name, node in sorted(attributes, key=lambda attribute: storage_order(attribute[0]))
    ]
    if layout.indented:
        return _lines("[]", members, "; ", indent=4 + indent)
    return f"[ {'; '.join(members)} ]"


def _lines(brackets: str, members: list[str], separator: str, *, indent: int) -> str:
    """Lists step in by three, ads by four: once for the bracket, once more for what it holds."""
    step = 3 if brackets == "{}" else 4
    outer, inner = "\n" + " " * indent, "\n" + " " * (indent + step)
    body = (inner + member for member in _separated(members, separator))
    return f"{outer}{brackets[0]}{''.join(body)}{outer}{brackets[1]}"


def _separated(members: list[str], separator: str) -> Iterable[str]:
    last = len(members) - 1
    return (member + ("" if number == last else separator) for number, member in enumerate(members))


def storage_order(name: str) -> tuple[int, str]:
    """Attributes are written by length of the name, then by name."""
    return len(name), name.lower()


def _scalar(value: Scalar, layout: _Layout) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _long_real(value) if layout.long and math.isfinite(value) else real_text(value)
        case str():
            return '"' + value.replace('"', '\\"') + '"' if layout.long else quoted_string(value)
        case Exceptional():
            return value.value
        case AbsTime():
            return f'absTime("{absolute_text(value)}")'
        case RelTime():
            return f'relTime("{relative_text(value.seconds)}")'


def _long_real(number: float) -> str:
    text = f"{number:.16G}"
    return text if set(text) & {".", "E"} else text + ".0"


def quoted_string(text: str) -> str:
    """A string literal of the new syntax."""
    return '"' + _escaped(text, '"') + '"'


def quoted_name(name: str) -> str:
    """A name, in quotes if it could be read as something else."""
    if _PLAIN_NAME.match(name) and name.lower() not in _RESERVED:
        return name
    return "'" + _escaped(name, "'") + "'"


def _escaped(text: str, quote: str) -> str:
    def escape(match: re.Match[bytes]) -> bytes:
        code = match[0][0]
        if code in b"\"'":
            return (b"\\" if chr(code) == quote else b"") + match[0]
        return f"\\{_NAMED.get(code) or format(code, '03o')}".encode()

    return _SPECIAL.sub(escape, octets(text)).decode("ascii")
