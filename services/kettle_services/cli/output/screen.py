"""
All output: tables and colours on a terminal, aligned text elsewhere, JSON on request.

Results go to standard output, everything else to standard error, so that a pipe gets only the results.
"""

import os
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TextIO, cast

import msgspec

from kettle.terminal.text import is_plain, visible, visible_lines
from kettle_services.cli.errors import OutputError

Cell = str | int | float

STYLES: Final[Mapping[str, str]] = {
    "idle": "yellow", "running": "cyan", "held": "red", "completed": "green", "removed": "dim",
    "good": "green", "bad": "bold red", "dim": "dim", "strong": "bold",
}  # fmt: skip


_COLOURS: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_NORMAL: Final = "\x1b[0m"


def _code(style: str) -> str:
    return f"\x1b[{';'.join(_COLOURS[word] for word in style.split())}m"


_CODES: Final = frozenset({_NORMAL, *map(_code, STYLES.values())})
"""The commands to a terminal that are written here: colours, and no others."""
_CODE: Final = re.compile(r"(\x1b\[[0-9;]*m)")

_USUAL: Final = 80
_USUAL_LINES: Final = 24
_LEAST_ROWS: Final = 10
_AROUND: Final = 5
"""Lines around the rows of a table: the titles, the totals, and where the next command is typed."""


def columns() -> int:
    """
    How wide the terminal is, as `shutil.get_terminal_size` says it: that knows much more than terminals, and takes long to load.
    """
    return _said("COLUMNS") or _terminal()[0] or _USUAL


def lines() -> int:
    """How many lines the terminal has."""
    return _said("LINES") or _terminal()[1] or _USUAL_LINES


def _said(name: str) -> int:
    said = os.environ.get(name, "")
    return int(said) if said.isdecimal() else 0


def _terminal() -> tuple[int, int]:
    """Columns and lines, as far as it is known."""
    if sys.__stdout__ is None:
        return 0, 0
    try:
        return os.get_terminal_size(sys.__stdout__.fileno())
    except (OSError, ValueError):  # closed, or none
        return 0, 0


class Screen:
    """Standard output and standard error of one command."""

    def __init__(
        self,
        *,
        as_json: bool = False,
        out: TextIO | None = None,
        err: TextIO | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.as_json = as_json
        self.out = sys.stdout if out is None else out
        self.err = sys.stderr if err is None else err
        environ = os.environ if environ is None else environ
        self.terminal = self.out.isatty() and not as_json
        self.colour = _wants_colour(environ, terminal=self.terminal)

    def say(self, text: str = "") -> None:
        """A line of what was asked for; what in it is no text of a line is shown."""
        self.write(f"{self._line(text)}\n")

    def block(self, text: str) -> None:
        """Lines of what was asked for."""
        self.write(f"{visible_lines(text)}\n")

    def _line(self, text: str) -> str:
        if is_plain(text):
            return text
        if not self.colour:
            return visible(text)
        return "".join(part if part in _CODES else visible(part) for part in _CODE.split(text))

    def octets(self, data: bytes) -> None:
        """A part of what was asked for, the same in any locale."""
        with writing():
            self.out.buffer.write(data)

    def pass_on(self, descriptor: int, data: bytes) -> None:
        """What another program wrote to its standard output (1) or its standard error (2), at once."""
        with writing():
            stream = self.err if descriptor == 2 else self.out
            stream.buffer.write(data)
            stream.flush()

    def flush(self) -> None:
        """Write out everything so far."""
        with writing():
            self.out.flush()

    def done(self, sentence: str) -> int:
        """Say that something is done, which is all that the command has to say; its exit status."""
        if self.as_json:
            self.json({"done": sentence})
        else:
            self.say(sentence)
        return 0

    def note(self, text: str) -> None:
        """A line beside it, for the person; nothing where a program listens."""
        if not self.as_json:
            with writing():
                print(self._lines(text), file=self.err)

    def _lines(self, text: str) -> str:
        return "\n".join(map(self._line, text.split("\n")))

    def trouble(self, text: str) -> None:
        """What did not work."""
        with writing():
            text = visible_lines(text)
            print(self.paint(text, "bad") if self.err.isatty() else text, file=self.err)

    def paint(self, text: str, style: str) -> str:
        """The text in the colour of a meaning, where there are colours."""
        if not self.colour or style not in STYLES:
            return text
        return f"{_code(STYLES[style])}{text}{_NORMAL}"

    def json(self, value: object) -> None:
        """A value as JSON, with line breaks for a person who looks."""
        data = msgspec.json.encode(value, order="deterministic")
        self.write(msgspec.json.format(data, indent=2).decode() + "\n")

    def json_line(self, value: object) -> None:
        """One line of a stream of JSON values; it is out at once."""
        self.write(msgspec.json.encode(value).decode() + "\n")
        self.flush()

    def table(
        self,
        titles: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        styles: Sequence[str] | None = None,
        right: frozenset[str] = frozenset(),
        whole: bool = False,
    ) -> None:
        """
        Rows under titles; `styles` has one per row, `right` the titles of columns that are aligned to the right.

        A terminal gets no more of a row than fits, everything else gets all of it; so does a terminal that gets the
        rows `whole`, because the end of them is what one asked for.
        """
        columns = [_column(cells) for cells in zip(*rows, strict=True)] or [_column(()) for _ in titles]
        widths = [max(len(title), width) for title, (_, width) in zip(titles, columns, strict=True)]
        room = 0 if whole else self.width
        # One operation per column and per row: there may be very many of them.
        layout = "  ".join(
            f"%{'' if title in right else '-'}{width}s" for title, width in zip(titles, widths, strict=True)
        )
        lines = [(layout % tuple(titles)).rstrip()]
        lines += [(layout % cells).rstrip() for cells in zip(*(cells for cells, _ in columns), strict=True)]
        if room:
            lines = [f"{line[: room - 1]}…" if len(line) > room else line for line in lines]
        if self.colour:
            meanings = ("strong", *(styles or [""] * len(rows)))
            lines = [self.paint(line, style) for line, style in zip(lines, meanings, strict=True)]
        self.write("\n".join(lines) + "\n")

    @property
    def width(self) -> int:
        """The columns of the terminal; 0 without one, where there is room for everything."""
        return columns() if self.terminal else 0

    @property
    def page(self) -> int:
        """How many rows of a table fit on the terminal, with what stands around them; 0 without one."""
        return max(_LEAST_ROWS, lines() - _AROUND) if self.terminal else 0

    def write(self, text: str) -> None:
        """A part of what was asked for."""
        with writing():
            self.out.write(text)


@contextmanager
def writing() -> Generator[None]:
    """A failed write is an `OutputError`, except for a closed pipe, which is not reported."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write: {error.strerror}") from error


def _wants_colour(environ: Mapping[str, str], *, terminal: bool) -> bool:
    match environ.get("KETTLE_COLOR", ""):
        case "always":
            return True
        case "never":
            return False
        case _:
            return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _column(cells: Sequence[Cell]) -> tuple[Sequence[Cell], int]:
    """Cells that need only be made to text, and how long the longest of these is."""
    kinds = set(map(type, cells))
    if kinds == {int}:
        return cells, max(len(str(max(cells))), len(str(min(cells))))
    texts: Sequence[str] = cast("Sequence[str]", cells) if kinds == {str} else [_text(cell) for cell in cells]
    if not is_plain("".join(texts)):
        texts = [visible(text) for text in texts]
    return texts, max(map(len, texts), default=0)


def _text(cell: Cell) -> str:
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)
