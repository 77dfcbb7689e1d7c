"""What condor_q, condor_history and condor_status take alike: how ads are printed."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kettle.terminal.text import data_output
from kettle_services.condor.arguments.grammar import ALL, Option, TypedOption
from kettle_services.condor.printing.autoformat import Columns, Format, format_of
from kettle_services.condor.printing.forms import Form, Lines
from kettle_services.condor.printing.values import Fetch, Source, readable, source_of
from kettle_wire.ads.types import Ad

if TYPE_CHECKING:
    from kettle_services.condor.printing.print_format import PrintFormat

PRINTING: Final = {
    "autoformat": Option(takes=ALL, letters=True, also=("af",)),
    "format": Option(takes=2, also=("f",)),
    "long": Option(also=("l",)),
    "json": Option(also=("j",)),
    "jsonl": Option(),
    "xml": Option(also=("x",)),
    "attributes": Option(takes=1, also=("projection", "attr")),
    "print-format": Option(takes=1, also=("pr",)),
}
"""The options."""
HELP: Final = """\
  -af[:letters] A ...    chosen attributes or expressions, one job a line; letters: j the id first, t tabs, `,` commas,
                         l with names, n a value a line, g an empty line between, V strings in quotes, r as they stand, h titles
  -format F A            text with one conversion of printf, for an attribute; may be repeated
  -long, -json, -jsonl, -xml   whole ads
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
        """
        Whether an option says how ads are printed; raises ToolError where what is to be printed cannot be read.
        """
        match given.name:
            case "autoformat":
                self._columns.append(Columns(_readable(given.values), given.letters))
            case "format":
                found = format_of(*given.values)
                _readable([found.text] if found.conversion else [])
                self._formats.append(found)
            case "long" | "json" | "jsonl" | "xml":
                self._whole = given.name
            case "attributes":
                self.names += _readable(given.values[0].replace(",", " ").split())
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
        self.show_from(source_of(fetch))

    def show_from(self, source: Source) -> None:
        """Have ads asked for, and print them as they come."""
        form, out = self._form(), data_output(sys.stdout)
        out.writelines(form.begin())

        def show(ads: Sequence[Ad]) -> list[str]:
            more = form.needs.of(ads)
            if not more:
                out.writelines(form.add(ads))
            return more

        source(form.needs.names, show)
        out.writelines(form.end())

    def _form(self) -> Form:
        if self.layout is not None:
            from kettle_services.condor.printing.print_table import PrintTable, TableForm

            table = PrintTable(self.layout)
            table.check_source()
            return TableForm(table)
        if self._columns or self._formats:
            return Lines(self._columns, self._formats)
        from kettle_services.condor.printing.whole_ads import FORMS

        return FORMS[self._whole or "long"](self.names)


def _readable(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(readable(text, "Parse error") for text in texts)
