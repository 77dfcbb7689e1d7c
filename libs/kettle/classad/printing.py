"""
Syntax tree to text, in the three layouts of HTCondor and in two more.

New syntax on one line is for display; the long form is for display and for old files; the indented layout exists
because ``unparse()`` in an expression returns it. All three round reals to 16 digits and durations to seconds, and so does
what macros have; the wire form is written so that parsing it gives the same value.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from kettle.classad.lexer import RESERVED
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
    RelTimeLiteral,
    Subscript,
    Unary,
)
from kettle.classad.times import (
    absolute_text,
    exact_relative_text,
    parse_relative,
    relative_text,
)
from kettle.classad.values import AbsTime, Exceptional, RelTime, Scalar, octets

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUOTED: Final = RESERVED | {"parent"}
_NAMED: Final = {7: "a", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t", 11: "v", 92: "\\"}
# All but printable characters, both quotes and the backslash.
_SPECIAL: Final = re.compile(rb"[^ !#-&(-\[\]-~]")
_IDENTITY_WORDS: Final = {"=?=": "is", "=!=": "isnt"}


_Piece: TypeAlias = "str | tuple[Node, int]"


class _Layout(msgspec.Struct, frozen=True):
    """
    `long` spells operators and reals the old way, `old_strings` strings; `indented` gives every member its line.

    `exact` writes every digit of reals and times.
    """

    long: bool = False
    old_strings: bool = False
    indented: bool = False
    exact: bool = False


_NEW: Final = _Layout()
_LONG: Final = _Layout(long=True, old_strings=True)
_MACRO: Final = _Layout(long=True)
_INDENTED: Final = _Layout(indented=True)
_EXACT: Final = _Layout(exact=True)


def unparse(node: Node) -> str:
    """`node` in new syntax on one line."""
    return _written(node, _NEW)


def unparse_long(node: Node) -> str:
    """`node` as the right side of a line of the long form."""
    return _written(node, _LONG)


def unparse_for_macros(node: Node) -> str:
    """`node` as people write it: as in the long form, with strings that are read again in new syntax."""
    return _written(node, _MACRO)


def unparse_indented(node: Node) -> str:
    """`node` with each member of a list or an ad on a line of its own."""
    return _written(node, _INDENTED)


def unparse_exact(node: Node) -> str:
    """`node` in new syntax on one line, so that it reads back as an expression with the same value."""
    return _written(node, _EXACT)


def _written(node: Node, layout: _Layout) -> str:
    """A list of what is yet to be written instead of Python's stack: trees may be deeper than that."""
    written: list[str] = []
    pending: list[_Piece] = [(node, 0)]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            written.append(piece)
            continue
        node, indent = piece
        match node:
            case Literal(value=value):
                written.append((layout.exact and _exact(value)) or _scalar(value, layout))
            case RelTimeLiteral(seconds=seconds):
                written.append(_duration(seconds, layout))
            case Reference(base=None, absolute=False):
                written.append(quoted_name(node.name))
            case _:
                pending.extend(reversed(_pieces(node, layout, indent)))
    return "".join(written)


def real_text(number: float) -> str:
    """A real in new syntax: 16 significant digits, so not every real reads back as itself."""
    if math.isfinite(number):
        return f"{number:.15E}" if number else str(number)
    return 'real("NaN")' if math.isnan(number) else f'real("{"-" if number < 0 else ""}INF")'


def _pieces(node: Node, layout: _Layout, indent: int) -> list[_Piece]:
    """What `node` is written as, from left to right: text, and nodes with the indent of their members."""
    match node:
        case Reference(name=name, base=base):
            return [f".{quoted_name(name)}"] if base is None else [(base, indent), f".{_selected_name(name)}"]
        case Binary(op=op, left=left, right=right) | Logical(op=op, left=left, right=right):
            op = op if layout.long else _IDENTITY_WORDS.get(op, op)
            return [(left, indent), f" {op} ", (right, indent)]
        case Parentheses(inner=inner):
            return ["(", (inner, indent), ")"]
        case Unary(op=op, operand=operand):
            # A minus right before digits would be read as part of the number.
            return [f" {op} " if layout.exact else f" {op}", (operand, indent)]
        case Call(name=name, arguments=arguments):
            return [f"{name}(", *_separated(((item, indent) for item in arguments), ","), ")"]
        case ListLiteral(items=items):
            return _list(items, layout, indent)
        case AdLiteral(attributes=attributes):
            return _ad(attributes, layout, indent)
        case _:
            return _mixed(node, indent)


def _mixed(node: Node, indent: int) -> list[_Piece]:
    match node:
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return [(condition, indent), " ? ", (then, indent), " : ", (otherwise, indent)]
        case Elvis(preferred=preferred, fallback=fallback):
            return [(preferred, indent), " ?: ", (fallback, indent)]
        case Subscript(base=base, index=index):
            return [(base, indent), "[", (index, indent), "]"]
        case _:
            raise TypeError(f"{type(node).__name__} is no expression")


def _list(items: tuple[Node, ...], layout: _Layout, indent: int) -> list[_Piece]:
    """Indented, lists step in by three, ads by four: once for the bracket, once more for what it holds."""
    if not layout.indented:
        return ["{ ", *_separated(((item, indent) for item in items), ","), " }"]
    outer, inner = _line(indent + 3), _line(indent + 6)
    members = [(item, indent + 6) for item in items]
    start = inner if members else ""
    return [f"{outer}{{{start}", *_separated(members, f",{inner}"), f"{outer}}}"]


def _ad(attributes: tuple[tuple[str, Node], ...], layout: _Layout, indent: int) -> list[_Piece]:
    between, start, end, deeper = "; ", "[ ", " ]", indent
    if layout.indented:
        deeper = indent + 8
        between, end = f"; {_line(deeper)}", f"{_line(indent + 4)}]"
        start = f"{_line(indent + 4)}[{_line(deeper) if attributes else ''}"
    pieces: list[_Piece] = [start]
    for name, node in sorted(attributes, key=lambda attribute: storage_order(attribute[0])):
        pieces += (f"{'' if len(pieces) == 1 else between}{quoted_name(name)} = ", (node, deeper))
    return [*pieces, end]


def _line(indent: int) -> str:
    return "\n" + " " * indent


def _separated(members: Iterable[_Piece], separator: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    for member in members:
        pieces += (separator, member)
    return pieces[1:]


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
            return long_real_text(value) if layout.long and math.isfinite(value) else real_text(value)
        case str():
            return '"' + value.replace('"', '\\"') + '"' if layout.old_strings else quoted_string(value)
        case Exceptional():
            return value.value
        case AbsTime():
            return f'absTime("{absolute_text(value)}")'
        case RelTime():
            return f'relTime("{relative_text(value.seconds)}")'


def _exact(value: Scalar) -> str | None:
    """What needs another form to read back as it was; None for the rest."""
    match value:
        case float() if math.isfinite(value):
            return repr(value)
        case AbsTime():
            return f'absTime("{absolute_text(value).rjust(len("yyyy-mm-ddThh:mm:ss+hh:mm"), "0")}")'
        case RelTime():
            return f"relTime({value.seconds!r})"
        case _:
            return None


def _duration(seconds: float, layout: _Layout) -> str:
    text = exact_relative_text(seconds)
    return repr(seconds) if layout.exact and parse_relative(text) != seconds else f'relTime("{text}")'


def long_real_text(number: float) -> str:
    """A real, not infinite, as the long form and JSON have it."""
    text = f"{number:.16G}"
    return text if set(text) & {".", "E"} else text + ".0"


def quoted_string(text: str) -> str:
    """A string literal of the new syntax."""
    return '"' + _escaped(text, '"') + '"'


def quoted_name(name: str) -> str:
    """A name, in quotes if it could be read as something else."""
    if _PLAIN_NAME.match(name) and name.lower() not in _QUOTED:
        return name
    return "'" + _escaped(name, "'") + "'"


def _selected_name(name: str) -> str:
    return name if name.lower() == "parent" else quoted_name(name)


def _escaped(text: str, quote: str) -> str:
    def escape(match: re.Match[bytes]) -> bytes:
        code = match[0][0]
        if code in b"\"'":
            return (b"\\" if chr(code) == quote else b"") + match[0]
        return f"\\{_NAMED.get(code) or format(code, '03o')}".encode()

    return _SPECIAL.sub(escape, octets(text)).decode("ascii")
