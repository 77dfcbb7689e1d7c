"""
What a print format file says: `-print-format FILE`, the table language of HTCondor's tools.

    SELECT [FROM SOURCE | UNIQUE] [BARE | NOTITLE | NOHEADER | NOSUMMARY] [LABEL [SEPARATOR S]] [RECORDPREFIX S] ...
       EXPRESSION [AS S] [PRINTF S | PRINTAS FUNCTION [ALWAYS] | WIDTH AUTO | WIDTH [-]N] [FIT | TRUNCATE] [LEFT | RIGHT]
          [OR C | OR CC] [NOPREFIX] [NOSUFFIX]
       ...
    [WHERE EXPRESSION]
    [GROUP BY EXPRESSION [ASCENDING | DESCENDING]
       ...]
    [SUMMARY [STANDARD | NONE]
       EXPRESSION ...]

The tables of condor_status are written in it; `print_table` prints what it says.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle_services.condor.errors import ToolError, do_you_mean
from kettle_services.condor.printing.values import readable

FILLERS: Final = " ?*.-_#0"
"""What `OR` can put in the place of a value that is not there."""

_TOKEN: Final = re.compile(r"'([^']*)'?|\"([^\"]*)\"?|\S+")
_ESCAPE: Final = re.compile(r"\\([nrt])")
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "r": "\r", "t": "\t"}
_SECTIONS: Final = ("SELECT", "WHERE", "GROUP", "SUMMARY")
_FIRST: Final = {"BARE": "", "NOTITLE": "title", "NOHEADER": "header", "NOSUMMARY": "summary"}
_TEXTS: Final = {
    "RECORDPREFIX": "before_ad", "RECORDSUFFIX": "behind_ad", "FIELDPREFIX": "before", "FIELDSUFFIX": "behind",
}  # fmt: skip
_HEAD: Final = ("FROM", "UNIQUE", "LABEL", "SEPARATOR", *_FIRST, *_TEXTS)
_COLUMN: Final = (
    "ALWAYS", "AS", "FIT", "LEFT", "NOPREFIX", "NOSUFFIX", "OR", "PRINTAS", "PRINTF", "RENDERAS", "RIGHT", "TRUNCATE", "WIDTH",
)  # fmt: skip
_ORDER: Final = {"ASCENDING": False, "DESCENDING": True, "DECENDING": True}
"""The last is how HTCondor's manual spells it."""
_WIDTH: Final = re.compile(r"-?\d{1,4}", re.ASCII)


class Column(msgspec.Struct):
    """One column: what is in it, and how it is set."""

    expression: str
    heading: str = ""
    width: int = 0
    """0: none was given."""
    left: bool | None = None
    auto: bool = True
    """Whether the column grows with what is in it."""
    truncate: bool = False
    printf: str = ""
    function: str = ""
    always: bool = False
    """Whether the function is asked where there is no value, too."""
    filler: str | None = None
    """Stands for a value that is not there: a character, or two of it to fill the column."""
    prefix: bool = True
    suffix: bool = True


class Order(msgspec.Struct):
    """By what ads are sorted."""

    expression: str
    descending: bool = False


class PrintFormat(msgspec.Struct):
    """A whole format."""

    columns: list[Column] = []
    where: str = ""
    order: list[Order] = []
    source: str = ""
    """What stands behind FROM, as `AUTOCLUSTER`; empty: the usual ads of the command."""
    unique: bool = False
    """Whether ads with the same values are one line: of condor_q alone."""
    title: bool = True
    header: bool = True
    summary: bool = False
    totals: list[Column] = []
    """What stands on the lines below SUMMARY: columns of the totals of condor_q, instead of the standard ones."""
    chosen_summary: bool = False
    """Whether STANDARD or NONE stands behind SUMMARY."""
    labels: str | None = None
    """What stands between a label and its value, if labels replace the headings."""
    before_ad: str = ""
    behind_ad: str = "\n"
    before: str = " "
    behind: str = ""


def read_print_format(path: str) -> PrintFormat:
    """
    The format of a file.

    Raises ToolError: it cannot be read, or says what is not in the language; with the line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(f"Can't open print-format file: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is no print-format file: it is not text in UTF-8") from error
    return print_format_of(text, path)


def print_format_of(text: str, name: str = "print-format") -> PrintFormat:
    """
    What a text says.

    Raises ToolError: with its name and the line.
    """
    found = PrintFormat()
    section = ""
    for number, line in _lines(text):
        where = f"{name}, line {number}"
        first, _, rest = line.partition(" ")
        if not section and first != "SELECT":
            raise ToolError(f"{where}: a print format begins with SELECT, not with '{first}'")
        if first in _SECTIONS:
            section = first
            _begun(found, section, rest.strip(), where)
        else:
            _continued(found, section, line, where)
    if not section:
        raise ToolError(f"{name} is empty: a print format begins with SELECT")
    if found.where:
        readable(found.where, f"{name}, WHERE")
    return found


def _begun(found: PrintFormat, section: str, rest: str, where: str) -> None:
    """The rest of a line that begins a section."""
    match section:
        case "SELECT":
            _head(found, rest, where)
        case "WHERE":
            found.where = rest
        case "GROUP":
            _order(found, rest.removeprefix("BY").strip(), where)
        case _:
            _summary(found, rest, where)


def _continued(found: PrintFormat, section: str, line: str, where: str) -> None:
    """A further line of a section."""
    match section:
        case "SELECT":
            found.columns.append(_column(line, where))
        case "WHERE":
            found.where = f"{found.where} {line}".strip()
        case "GROUP":
            _order(found, line, where)
        case _:
            _total(found, line, where)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments and empty ones; one that ends in a backslash goes on."""
    kept, began = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        began = began if kept else number
        kept += line.strip()
        if kept.endswith("\\"):
            kept = kept[:-1] + " "
            continue
        if kept and not kept.startswith("#"):
            yield began, kept.replace("\t", " ")
        kept = ""
    if kept.strip():
        yield began, kept.strip()


class _Words:
    """The words of a line: blanks separate them, and quotes hold them together."""

    def __init__(self, line: str, where: str) -> None:
        self._line = line
        self._found = list(_TOKEN.finditer(line))
        self._at = 0
        self.where = where

    def __iter__(self) -> Iterator[re.Match[str]]:
        while self._at < len(self._found):
            self._at += 1
            yield self._found[self._at - 1]

    def next(self, behind: str) -> str:
        """The word behind a keyword, without its quotes; raises ToolError."""
        if self._at >= len(self._found):
            raise ToolError(f"{self.where}: nothing stands behind {behind}")
        self._at += 1
        return _unquoted(self._found[self._at - 1])


def _unquoted(word: re.Match[str]) -> str:
    quoted = word[1] if word[1] is not None else word[2]
    return word[0] if quoted is None else quoted


def _escaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES[found[1]], text)


def _head(found: PrintFormat, line: str, where: str) -> None:
    words = _Words(line, where)
    for each in words:
        match each[0]:
            case "FROM":
                found.source = words.next("FROM")
            case "UNIQUE":
                found.unique = True
            case "LABEL":
                found.labels = " = "
            case "SEPARATOR" if found.labels is not None:
                found.labels = _escaped(words.next("SEPARATOR"))
            case "BARE":
                found.title = found.header = found.summary = False
            case word if word in _FIRST:
                setattr(found, _FIRST[word], False)
            case word if word in _TEXTS:
                setattr(found, _TEXTS[word], _escaped(words.next(word)))
            case word:
                raise ToolError(f"{where}: SELECT knows no '{word}'{do_you_mean(word.upper(), _HEAD)}")


def _column(line: str, where: str) -> Column:
    words = _Words(line, where)
    column = Column("")
    for each in words:
        if each[0] not in _COLUMN:
            if column.expression:
                raise ToolError(
                    f"{where}: '{each[0]}' is not a keyword{do_you_mean(each[0].upper(), _COLUMN)}"
                )
            continue
        column.expression = column.expression or line[: each.start()].strip()
        _take(column, each[0], words)
    column.expression = readable(column.expression or line, where)
    column.heading = column.heading or column.expression
    return column


def _take(column: Column, keyword: str, words: _Words) -> None:
    match keyword:
        case "AS":
            column.heading = _escaped(words.next(keyword))
        case "PRINTF":
            column.printf = words.next(keyword)
        case "PRINTAS" | "RENDERAS":
            column.function = words.next(keyword)
        case "OR":
            column.filler = words.next(keyword)[:2]
            if not column.filler or any(letter not in FILLERS for letter in column.filler):
                raise ToolError(f"{words.where}: OR takes one of '{FILLERS}' once or twice")
        case "WIDTH":
            _width(column, words.next(keyword), words.where)
        case "FIT":
            column.width, column.auto = 0, True
        case "LEFT" | "RIGHT":
            column.left = keyword == "LEFT"
        case "NOPREFIX" | "NOSUFFIX":
            setattr(column, keyword[2:].lower(), False)
        case _:
            setattr(column, keyword.lower(), True)


def _width(column: Column, value: str, where: str) -> None:
    if value == "AUTO":
        return
    if not _WIDTH.fullmatch(value):
        raise ToolError(f"{where}: WIDTH takes AUTO or a number, not '{value}'")
    column.width, column.auto = abs(int(value)), int(value) == 0
    if column.left is None:
        column.left = int(value) < 0


def _order(found: PrintFormat, line: str, where: str) -> None:
    if not line:
        return
    for word, descending in _ORDER.items():
        if line.endswith(f" {word}"):
            found.order.append(Order(readable(line.removesuffix(word).strip(), where), descending))
            return
    found.order.append(Order(readable(line, where)))


def _summary(found: PrintFormat, line: str, where: str) -> None:
    if line not in {"", "STANDARD", "NONE"}:
        raise ToolError(
            f"{where}: SUMMARY takes STANDARD or NONE, or columns on the lines below it, not '{line}'"
        )
    found.summary = line != "NONE"
    found.chosen_summary = bool(line)


def _total(found: PrintFormat, line: str, where: str) -> None:
    if found.chosen_summary:
        raise ToolError(
            f"{where}: columns stand behind SUMMARY without STANDARD or NONE, but there is '{line}'"
        )
    found.totals.append(_column(line, where))
