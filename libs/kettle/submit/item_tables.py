"""
How the lines of a list of items become the values of variables.

    queue a, b from FILE                        a line has the values, blanks or commas between them
    queue from table FILE                       the first line has the names, commas between them and the values
    queue from table(sep=;,header=2) FILE       in brackets: csv, standard, sep=, header=, skip=, trim=, comma_sep=
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.submit.errors import PlacelessError

_KEYWORD: Final = re.compile(r"table\s*(?:\(([^()]*)\))?(?=[\s(\[]|$)\s*", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_UNIT_SEPARATOR: Final = "\x1f"
_BLANKS: Final = " \t"


class ItemTable(msgspec.Struct, frozen=True):
    """How lines are split; as it is without the word `table`."""

    header: int | None = None
    """Which line, from 0 on, has the names of the variables."""
    skip: int = 0
    """How many lines more before the first item are none."""
    blanks: bool = True
    """Whether a blank ends a value."""
    trim: bool = True
    separator: str = ","

    def split(self, item: str, wanted: int) -> list[str]:
        """The values of a line, the last one with all that is left; none of a line that says nothing."""
        plain = self == LINES
        ends = self.separator + (_BLANKS if self.blanks else "")
        if plain and _UNIT_SEPARATOR in item:
            ends = _UNIT_SEPARATOR
        around = _BLANKS if plain or self.trim else ""
        rest = item.strip(around) if around else item
        values: list[str] = []
        while rest or values:
            at = next((index for index, letter in enumerate(rest) if letter in ends), -1)
            if at < 0 or len(values) + 1 == wanted:
                return [*values, rest]
            values.append(rest[:at].strip(around) if around else rest[:at])
            rest = rest[at + 1 :].lstrip(around) if around else rest[at + 1 :]
        return values


LINES: Final = ItemTable()
_TABLE: Final = ItemTable(header=0, blanks=False)
_CSV: Final = ItemTable(blanks=False)


def table_of(text: str) -> tuple[ItemTable, str]:
    """How the items that follow are split, and what follows; raises PlacelessError."""
    found = _KEYWORD.match(text)
    if found is None:
        return LINES, text
    table = _TABLE
    for option in (found[1] or "").split(",") if (found[1] or "").strip() else ():
        table = _with(table, option.strip())
    return table, text[found.end() :]


def _with(table: ItemTable, option: str) -> ItemTable:
    name, equals, value = (part.strip() for part in option.partition("="))
    change = msgspec.structs.replace
    match name.lower():
        case "standard" if not equals:
            return LINES
        case "csv" if not equals:
            return _CSV
        case "header" if value.isdecimal() or value.lower() == "none":
            return change(table, header=int(value) if value.isdecimal() else None)
        case "skip" if value.isdecimal():
            return change(table, skip=int(value))
        case "trim" | "comma_sep" as truth if value.lower() in {"true", "false"}:
            wanted = value.lower() == "true"
            return change(table, trim=wanted) if truth == "trim" else change(table, separator="," * wanted)
        case "sep" if len(value) == 1:
            return change(table, separator=value)
        case _:
            raise PlacelessError(
                f"'{option}' is no option of a table: csv, standard, sep=;, header=0, header=none, skip=1, trim=false, comma_sep=false"
            )


def headed(table: ItemTable, lines: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """
    The names that a table gives the variables, none if it gives none, and its items; raises PlacelessError.
    """
    if table.header is None or not lines:
        return (), list(lines)
    if table.header >= len(lines):
        raise PlacelessError(
            f"the table has no line {table.header}, which was to have the names of its columns"
        )
    names = tuple(table.split(lines[table.header], len(lines[table.header]) + 1))
    for name in names:
        if not _NAME.fullmatch(name):
            raise PlacelessError(
                f"the column '{name}' of the table is no name of a variable: letters, digits, _ and ."
            )
    items = [*lines[: table.header], *lines[table.header + 1 :]]
    return names, items[table.header - 1 + table.skip if table.header else 0 :]
