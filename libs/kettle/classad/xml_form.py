"""
Ads as XML: ``<c>`` with an ``<a n="Name">`` for each attribute and an element for each kind of value.

`kettle.classad.xml_reader` reads them.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.ad import as_node
from kettle.classad.errors import NotRepresentable
from kettle.classad.nodes import AdLiteral, ListLiteral, Literal, Node, RelTimeLiteral
from kettle.classad.printing import real_text, storage_order, unparse
from kettle.classad.times import absolute_text, relative_text
from kettle.classad.values import ERROR, UNDEFINED, AbsTime, RelTime

if TYPE_CHECKING:
    from kettle.classad.ad import ClassAd

XML_HEADER: Final = '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n'
XML_FOOTER: Final = "</classads>\n"

# What XML 1.0 cannot carry as it is; a line break in an attribute of an element would be read as a blank.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_UNSAFE_NAME: Final = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]")
_Piece: TypeAlias = "str | tuple[Node, int]"


def write_xml(ad: ClassAd) -> str:
    """
    The ad's own attributes as one ``<c>`` element, an attribute a line; header and footer belong to a collection.

    Raises `NotRepresentable` for a name that XML cannot carry.
    """
    written: list[str] = []
    pending: list[_Piece] = [(as_node(ad), 0)]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            written.append(piece)
        else:
            pending.extend(reversed(_pieces(*piece)))
    return "".join(written) + "\n"


def _pieces(node: Node, indent: int) -> list[_Piece]:
    match node:
        case AdLiteral(attributes=attributes):
            pieces: list[_Piece] = ["<c>\n"]
            for name, member in sorted(attributes, key=lambda attribute: storage_order(attribute[0])):
                start = f'{" " * (indent + 4)}<a n="{_name(name)}">'
                pieces += (start, (member, indent + 4), "</a>\n")
            return [*pieces, " " * indent + "</c>"]
        case ListLiteral(items=items):
            return ["<l>", *((item, indent) for item in items), "</l>"]
        case RelTimeLiteral(seconds=seconds):
            return [(Literal(seconds), indent)]
        case Literal(value=bool(value)):
            return [f'<b v="{"t" if value else "f"}"/>']
        case Literal(value=int(value)):
            return [f"<i>{value}</i>"]
        case Literal(value=float(value)):
            return [f"<r>{_real(value)}</r>"]
        case Literal(value=str(value)) if not _UNSAFE.search(value):
            return [f"<s>{_escaped(value)}</s>"]
        case _:
            return [_rare(node)]


def _rare(node: Node) -> str:
    match node:
        case Literal(value=AbsTime() as value):
            return f"<at>{absolute_text(value)}</at>"
        case Literal(value=RelTime(seconds=seconds)):
            return f"<rt>{relative_text(seconds)}</rt>"
        case Literal(value=value) if value in {UNDEFINED, ERROR}:
            return "<un/>" if value is UNDEFINED else "<er/>"
        case _:
            return f"<e>{_escaped(unparse(node))}</e>"


def _name(name: str) -> str:
    if _UNSAFE_NAME.search(name):
        raise NotRepresentable(f"{name!r} is no name that XML can carry")
    return _escaped(name).replace('"', "&quot;")


def _real(number: float) -> str:
    if math.isfinite(number):
        return real_text(number)
    return "NaN" if math.isnan(number) else "INF" if number > 0 else "-INF"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
