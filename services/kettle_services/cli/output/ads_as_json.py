"""
Ads as JSON: one by one within other values, and very many of them as an array that comes little by little.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.classad.listing import json_listing, json_member
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads.types import Ad, Expr, Scalar


def _order(name: str) -> tuple[int, str]:
    """The order of the members that `kettle.classad.write_json` writes."""
    return len(name), name.lower()


def _indented(name: str, value: Scalar) -> str:
    """A member with its lists and ads on lines of their own."""
    text = json_member(name, value)
    if not isinstance(value, Expr):
        return text
    return msgspec.json.format(f"{{{text}}}", indent=2)[len("{\n  ") : -len("\n}")].replace("\n", "\n  ")


_COMPACT: Final = json_listing(", ", order=_order)
_ON_LINES: Final = json_listing(",\n    ", member=_indented, order=_order)


def plain(ad: Ad) -> msgspec.Raw:
    r"""
    An ad as JSON has it; an expression is the string ``"\/Expr(...)\/"``, whose slashes distinguish it from other
    strings.
    """
    return msgspec.Raw(f"{{{_COMPACT.members(ad)}}}".encode())


class JsonArray:
    """
    An array of ads that come little by little: what is written is what `Screen.json` writes of all of them.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._begun = False

    def add(self, ads: Sequence[Ad]) -> None:
        """Some more ads."""
        if ads:
            within = ",\n".join(map(_lines, ads))
            self._screen.write(f"{',' if self._begun else '['}\n{within}")
            self._begun = True

    def end(self) -> None:
        """There are no more."""
        self._screen.write("\n]\n" if self._begun else "[]\n")


def _lines(ad: Ad) -> str:
    members = _ON_LINES.members(ad)
    return f"  {{\n    {members}\n  }}" if members else "  {}"
