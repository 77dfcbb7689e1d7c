"""The forms in which ads are printed as they come, little by little."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from kettle_services.condor.printing.autoformat import ID, Columns, Format
from kettle_services.condor.printing.values import AdRow, Needs
from kettle_wire.ads.types import Ad


class Form(Protocol):
    """What is printed before, for, and behind the ads; and which of their attributes that takes."""

    needs: Needs

    def begin(self) -> Iterable[str]:
        """What stands before them, also if there are none."""
        ...

    def add(self, ads: Sequence[Ad]) -> Iterable[str]:
        """Some ads."""
        ...

    def end(self) -> Iterable[str]:
        """There are no more."""
        ...


class Lines:
    """
    `-autoformat` and `-format`: a line for each ad.

    Like HTCondor, which has one list of columns, the formats come first in a line.
    """

    def __init__(self, columns: Sequence[Columns], formats: Sequence[Format]) -> None:
        self._columns: Final = columns
        self._formats: Final = formats
        texts = [text for each in columns for text in each.texts]
        texts += [each.text for each in formats if each.conversion]
        always = ID if any("j" in each.letters for each in columns) else ()
        evaluated = bool(formats) or any(each.evaluated for each in columns)
        self.needs: Needs = Needs([*always, *texts], evaluated=evaluated)

    def begin(self) -> Iterable[str]:
        """The titles that were asked for."""
        return [each.heading() for each in self._columns]

    def add(self, ads: Sequence[Ad]) -> Iterator[str]:
        """A line for each."""
        if len(self._columns) == 1 and not self._formats:
            yield from self._columns[0].lines(ads)
            return
        for ad in ads:
            row = AdRow(ad)
            yield from (each.printed(row) for each in self._formats)
            yield from (columns.line(row) for columns in self._columns)

    def end(self) -> Iterable[str]:
        """Nothing."""
        return ()
