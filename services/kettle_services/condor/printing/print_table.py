"""Prints ads as a print format says."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing.autoformat import ID, Format, format_of
from kettle_services.condor.printing.print_format import Column, Order, PrintFormat
from kettle_services.condor.printing.print_functions import PrintFunction, function_named
from kettle_services.condor.printing.values import AdRow, Fetch, Needs, fetched
from kettle_wire.ads.types import Ad

_NARROWEST: Final = 3
"""Characters that a filled column has at least, so that there is something between its brackets."""


class PrintTable:
    """A print format, ready for ads."""

    def __init__(self, layout: PrintFormat) -> None:
        """Raises ToolError: it names a function that is not there."""
        self.layout: Final = layout
        self._cells: Final = [_Cell(column) for column in layout.columns]

    def ads(self, fetch: Fetch, more: Sequence[str] = ()) -> list[Ad]:
        """
        The ads that meet WHERE, in the order of GROUP BY, with what the columns need of them, and `more` attributes.

        Raises ToolError: the format is about other ads than these.
        """
        self.check_source()
        return self.ordered(self.meeting(fetched([*self.needed, *more], fetch)))

    def check_source(self) -> None:
        """Raises ToolError: the format is about other ads or totals than those that there are."""
        if self.layout.source or self.layout.unique:
            asked = f"FROM {self.layout.source}" if self.layout.source else "UNIQUE"
            raise ToolError(f"SELECT {asked} is not carried out by this command; leave it out")
        if self.layout.totals:
            raise ToolError("only condor_q has totals in columns behind SUMMARY; leave them out")

    def meeting(self, ads: Sequence[Ad]) -> Sequence[Ad]:
        """Those that meet WHERE."""
        where = self.layout.where
        return [ad for ad in ads if AdRow(ad).meets(where)] if where else ads

    @property
    def needed(self) -> list[str]:
        """The attributes and expressions that the table is about."""
        texts = [each.expression for each in self.layout.order]
        texts += [self.layout.where] if self.layout.where else []
        for cell in self._cells:
            texts += cell.needed
        return texts

    def ordered(self, ads: Sequence[Ad]) -> list[Ad]:
        """Sorted by GROUP BY; where there is none, as they are."""
        return in_order(ads, self.layout.order)

    def lines(self, ads: Sequence[Ad]) -> Iterator[str]:
        """
        The heading, and a line for each ad; without titles and summaries, which are the command's.

        Without columns there are no lines: such a format asks for the summary alone.
        """
        if not self._cells:
            return
        rows = [[cell.text(row) for cell in self._cells] for row in map(AdRow, ads)]
        for at, cell in enumerate(self._cells):
            cell.settle(row[at] for row in rows)
        if self.layout.header and self.layout.labels is None:
            yield self._joined([cell.heading for cell in self._cells])
        for row in rows:
            yield self._joined(
                [cell.set(text, self.layout.labels) for cell, text in zip(self._cells, row, strict=True)]
            )

    def _joined(self, texts: Sequence[str]) -> str:
        line = self.layout.before_ad
        last = len(self._cells) - 1
        for at, (cell, text) in enumerate(zip(self._cells, texts, strict=True)):
            line += self.layout.before if at and cell.column.prefix else ""
            line += text
            line += self.layout.behind if at < last and cell.column.suffix else ""
        return line + self.layout.behind_ad


class Merging(Protocol):
    """What makes one line of several ads."""

    def add(self, ads: Iterable[Ad]) -> None:
        """Some more ads."""
        ...

    def ads(self) -> list[Ad]:
        """What they have come to."""
        ...


class TableForm:
    """`-print-format`: a table, whose columns may be as wide as what comes last."""

    def __init__(self, table: PrintTable, merging: Merging | None = None) -> None:
        self._table: Final = table
        self._merging: Final = merging
        self._ads: Final[list[Ad]] = []
        self.needs: Needs = Needs([*table.needed, *(ID if merging else ())])

    def begin(self) -> Iterable[str]:
        """Nothing yet."""
        return ()

    def add(self, ads: Sequence[Ad]) -> Iterable[str]:
        """Nothing yet."""
        meeting = self._table.meeting(ads)
        if self._merging is None:
            self._ads.extend(meeting)
        else:
            self._merging.add(meeting)
        return ()

    def end(self) -> Iterable[str]:
        """All of it."""
        ads = self._ads if self._merging is None else self._merging.ads()
        return self._table.lines(self._table.ordered(ads))


class _Cell:
    """A column with what its texts have come to so far."""

    def __init__(self, column: Column) -> None:
        self.column: Final = column
        self._function: Final[PrintFunction | None] = (
            function_named(column.function) if column.function else None
        )
        self._format: Final[Format | None] = (
            format_of(column.printf, column.expression) if column.printf and not column.function else None
        )
        self._width = column.width
        self._left: Final = column.left if column.left is not None else not self._counts

    @property
    def _counts(self) -> bool:
        """Whether printf writes figures, which stand at the right."""
        return self._format is not None and self._format.conversion not in {"", "s", "v", "V", "r", "R"}

    @property
    def needed(self) -> list[str]:
        """What has to be asked for."""
        return [self.column.expression, *(self._function.needs if self._function else ())]

    def text(self, row: AdRow) -> str | None:
        """What one ad has here; None if it has nothing."""
        if self._format is not None:
            return self._format.shown(row)
        value = row.value(self.column.expression)
        if self._function is not None:
            if value is None and not (self._function.always or self.column.always):
                return None
            return self._function.write(value, row)
        if value is None and self.column.filler is not None:
            return None
        return row.text(self.column.expression)

    def settle(self, texts: Iterator[str | None]) -> None:
        """Be as wide as everything needs; only what has no width of its own."""
        if self.column.auto:
            longest = max((len(text) for text in texts if text is not None), default=0)
            self._width = max(len(self.column.heading), longest)

    @property
    def heading(self) -> str:
        """The title, as wide as the column; titles always stand at the left."""
        return self.column.heading.ljust(self._width)

    def set(self, text: str | None, separator: str | None) -> str:
        """A text in its place."""
        if separator is not None:
            return f"{self.column.heading}{separator}{self._filled(0) if text is None else text}"
        text = self._filled(self._width) if text is None else text
        if self.column.truncate and not self.column.auto:
            text = text[: self._width]
        return text.ljust(self._width) if self._left else text.rjust(self._width)

    def _filled(self, width: int) -> str:
        filler = self.column.filler or ""
        letter = filler[:1].strip()
        if len(filler) < len("??") or not letter or width < _NARROWEST:
            return letter
        return f"[{letter * (width - 2)}]" if letter == "?" else letter * width


def in_order(ads: Sequence[Ad], orders: Sequence[Order]) -> list[Ad]:
    """Ads sorted by what expressions come to in them; the first expression matters most."""
    found = list(ads)
    for order in reversed(orders):
        ranks = {id(ad): _rank(AdRow(ad).value(order.expression)) for ad in found}
        found.sort(key=lambda ad, ranks=ranks: ranks[id(ad)], reverse=order.descending)  # type: ignore[misc]
    return found


def _rank(value: Any) -> tuple[int, Any]:
    """A key that any two values have an order by: numbers, then texts without case, then all others."""
    match value:
        case bool() | int() | float() if value - value == 0:
            return 0, value
        case str():
            return 1, value.lower()
        case _:
            return 2, 0
