"""What condor_q, condor_history and condor_status take alike: how ads are printed."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kettle.terminal.text import data_output
from kettle_services.condor.arguments.grammar import ALL, Option, TypedOption
from kettle_services.condor.printing.autoformat import ID, Columns, Format, format_of
from kettle_services.condor.printing.values import AdRow, Fetch, fetched
from kettle_wire.ads.types import Ad

if TYPE_CHECKING:
    from kettle_services.condor.printing.print_format import PrintFormat

PRINTING: Final = {
    "autoformat": Option(takes=ALL, letters=True, also=("af",)),
    "format": Option(takes=2, also=("f",)),
    "long": Option(also=("l",)),
    "json": Option(also=("j",)),
    "xml": Option(also=("x",)),
    "attributes": Option(takes=1, also=("projection", "attr")),
    "print-format": Option(takes=1, also=("pr",)),
}
"""The options."""
HELP: Final = """\
  -af[:letters] A ...    chosen attributes or expressions, one job a line; letters: j the id first, t tabs, `,` commas,
                         l with names, n a value a line, g an empty line between, V strings in quotes, r as they stand, h titles
  -format F A            text with one conversion of printf, for an attribute; may be repeated
  -long, -json, -xml     whole ads
  -attributes A,B,...    of whole ads only these
  -print-format FILE     a table as a print format file says: SELECT, columns, WHERE, GROUP BY, SUMMARY
"""


class Printing:
    """How ads are to be printed, as far as options say so."""

    def __init__(self) -> None:
        self._columns: list[Columns] = []
        self._formats: list[Format] = []
        self._whole = ""
        self.layout: PrintFormat | None = None
        """What a print format file says."""
        self.names: list[str] = []

    def read_option(self, given: TypedOption) -> bool:
        """Whether an option says how ads are printed."""
        match given.name:
            case "autoformat":
                self._columns.append(Columns(given.values, given.letters))
            case "format":
                self._formats.append(format_of(*given.values))
            case "long" | "json" | "xml":
                self._whole = given.name
            case "attributes":
                self.names += [name for name in given.values[0].replace(",", " ").split() if name]
            case "print-format":
                from kettle_services.condor.printing.print_format import read_print_format

                self.layout = read_print_format(given.values[0])
            case _:
                return False
        return True

    @property
    def said(self) -> bool:
        """Whether options say so; otherwise a table is printed."""
        return bool(self._columns or self._formats or self._whole or self.layout)

    def show(self, fetch: Fetch) -> None:
        """Ask for the ads and print them."""
        data_output(sys.stdout).writelines(self._pieces(fetch))

    def _pieces(self, fetch: Fetch) -> Iterable[str]:
        if self.layout is not None:
            from kettle_services.condor.printing.print_table import PrintTable

            table = PrintTable(self.layout)
            return table.lines(table.ads(fetch))
        if not self._columns and not self._formats:
            return self._ads(fetch(self.names))
        texts = [text for columns in self._columns for text in columns.texts]
        texts += [each.text for each in self._formats if each.conversion]
        always = ID if any("j" in columns.letters for columns in self._columns) else ()
        evaluated = bool(self._formats) or any(columns.evaluated for columns in self._columns)
        return self._lines(fetched(texts, fetch, evaluated=evaluated, always=always))

    def _lines(self, ads: Sequence[Ad]) -> Iterable[str]:
        """Like HTCondor, which has one list of columns, the formats come first in a line."""
        yield from (columns.heading() for columns in self._columns)
        if len(self._columns) == 1 and not self._formats:
            yield from self._columns[0].lines(ads)
            return
        for ad in ads:
            row = AdRow(ad)
            yield from (each.printed(row) for each in self._formats)
            yield from (columns.line(row) for columns in self._columns)

    def _ads(self, ads: Sequence[Ad]) -> Iterable[str]:
        from kettle_services.condor.printing import whole_ads as whole

        chosen = [whole.chosen(ad, self.names) for ad in ads]
        match self._whole:
            case "json":
                return whole.json(chosen)
            case "xml":
                return whole.xml(chosen)
            case _:
                return whole.long(chosen)
