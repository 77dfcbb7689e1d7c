"""`-autoformat` and `-format`: chosen attributes and expressions, a line for each ad."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from kettle_services.condor.printing.values import AdRow, is_name
from kettle_wire.ads.types import Ad

ID: Final = ("ClusterId", "ProcId")
_PLAIN: Final = frozenset({int, str})
"""Types whose values are printed as Python writes them."""


class Columns(NamedTuple):
    """
    What `-af:letters` says.

    The letters: j the job's id first, t tabs, `,` commas, l `Name = `, n a line for each value, g an empty line between ads and
    no blanks, V strings in quotes, r and o expressions as they are, h a first line with names.
    """

    texts: tuple[str, ...]
    letters: str = ""

    def line(self, row: AdRow) -> str:
        """One ad, with the line breaks that belong to it."""
        style = style_of(self.letters)
        cells = [style.cell(row, text) for text in self.texts]
        if "j" in self.letters:
            cells.insert(0, f"{'ID = ' * style.labelled}{row.text(ID[0])}.{row.text(ID[1])}")
        return style.joined(cells)

    def lines(self, ads: Iterable[Ad]) -> Iterator[str]:
        """
        All lines. Where values are looked for and nothing else, ads that have plain numbers and strings need no `Row`.
        """
        style = style_of(self.letters)
        if "j" in self.letters or style.quoted or style.labelled or not style.evaluated:
            names: tuple[str, ...] = ()
        else:
            names = self.texts if all(map(is_name, self.texts)) else ()
        for ad in ads:
            values = [ad.get(name) for name in names]
            if values and _PLAIN.issuperset(map(type, values)):
                yield style.joined(map(str, values))
            else:
                yield self.line(AdRow(ad))

    def heading(self) -> str:
        """The first line, if one is wanted."""
        if "h" not in self.letters:
            return ""
        return style_of(self.letters).joined([*([" ID"] if "j" in self.letters else []), *self.texts])

    @property
    def evaluated(self) -> bool:
        """Whether values are wanted, and not expressions."""
        return style_of(self.letters).evaluated


class Style(NamedTuple):
    """What letters come to, worked out once and not for each of a hundred thousand ads."""

    evaluated: bool
    quoted: bool
    labelled: bool
    lead: str
    """Before the first cell."""
    between: str
    """From one cell to the next."""

    def cell(self, row: AdRow, text: str) -> str:
        """One column of one ad."""
        if not self.evaluated:
            value = row.raw(text)
        elif self.quoted:
            value = row.quoted(text)
        else:
            value = row.text(text)
        return f"{text} = {value}" if self.labelled else value

    def joined(self, cells: Iterable[str]) -> str:
        """A line of cells."""
        return f"{self.lead}{self.between.join(cells)}\n"


@cache
def style_of(letters: str) -> Style:
    """What the letters of `Columns` say of cells and lines."""
    before = "" if "g" in letters else "\t" if "t" in letters else " "
    behind = "\n" if "n" in letters else "," if "," in letters else ""
    return Style(
        evaluated=not set("ro") & set(letters),
        quoted="V" in letters,
        labelled="l" in letters,
        lead="\n" if "g" in letters else "",
        between=behind + before,
    )


class Format(NamedTuple):
    """
    What `-format TEXT ATTRIBUTE` says: text with at most one conversion, and nothing at all where there is no value for it.
    """

    before: str
    flags: str
    conversion: str
    """Empty: the text has none, and is always printed."""
    after: str
    text: str

    def printed(self, row: AdRow) -> str:
        """What one ad has of it."""
        return self.shown(row) or ""

    def shown(self, row: AdRow) -> str | None:
        """What one ad has of it; None if there is no value for it."""
        if not self.conversion:
            return self.before
        value = self._value(row)
        return None if value is None else f"{self.before}{value}{self.after}"

    def _value(self, row: AdRow) -> str | None:
        match self.conversion:
            case "V":
                return self._padded(row.quoted(self.text))
            case "v":
                return self._padded(row.text(self.text))
            case "r" | "R":
                return self._padded(row.raw(self.text))
            case "s":
                return None if row.value(self.text) is None else self._padded(row.text(self.text))
            case conversion:
                return _numeric(row.value(self.text), self.flags, conversion)

    def _padded(self, text: str) -> str:
        return f"%{self.flags}s" % text


_CONVERSION: Final = re.compile(r"%([-+ 0#]*\d*(?:\.\d+)?)(?:hh|ll|h|l|L|q|j|z|t)?([diouxXcfFeEgGsvVrR%])")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def format_of(template: str, text: str) -> Format:
    r"""What the two words behind `-format` say; `\n` may be written as two characters."""
    template = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), template)
    at = 0
    while match := _CONVERSION.search(template, at):
        if match[2] != "%":
            before, after = template[: match.start()], template[match.end() :]
            return Format(_percent(before), match[1], match[2], _percent(after), text)
        at = match.end()
    return Format(_percent(template), "", "", "", text)


def _percent(text: str) -> str:
    return text.replace("%%", "%")


def _numeric(value: Any, flags: str, conversion: str) -> str | None:
    """A number as C writes it; a value that is none is not printed."""
    if not isinstance(value, bool | int | float) or value - value != 0:
        return None
    if conversion in "fFeEgG":
        return f"%{flags}{conversion}" % float(value)
    if conversion == "c":
        return chr(int(value) % 0x110000)
    return f"%{flags}{'d' if conversion in 'diu' else conversion}" % int(value)
