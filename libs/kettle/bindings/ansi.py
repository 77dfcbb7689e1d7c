"""Colours and weights of text on a terminal, by the names that the `htcondor` command uses."""

import enum
import re
import sys
from typing import Final

ANSI_RESET: Final = "\033[0m"
ANSI_ESCAPE_RE: Final = re.compile(r"\x1B(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])")
"""A whole sequence that a terminal carries out."""
_SHADES: Final = 255


class Color(enum.StrEnum):
    """The sixteen colours that every terminal has."""

    BLACK = "\033[30m"
    RED = "\033[31m"
    GREEN = "\033[32m"
    YELLOW = "\033[33m"
    BLUE = "\033[34m"
    MAGENTA = "\033[35m"
    CYAN = "\033[36m"
    WHITE = "\033[37m"
    DARK_GREY = "\033[90m"
    BRIGHT_RED = "\033[91m"
    BRIGHT_GREEN = "\033[92m"
    BRIGHT_YELLOW = "\033[93m"
    BRIGHT_BLUE = "\033[94m"
    BRIGHT_MAGENTA = "\033[95m"
    BRIGHT_CYAN = "\033[96m"
    BRIGHT_WHITE = "\033[97m"


class Style(enum.StrEnum):
    """What text can be besides coloured."""

    BOLD = "\033[1m"
    UNDERLINE = "\033[4m"
    BLINK = "\033[5m"


class AnsiOptions:
    """What a text is to look like; `str()` of it begins such a text.  There are 256 shades."""

    def __init__(
        self,
        *,
        bold: bool = False,
        blink: bool = False,
        underline: bool = False,
        style: Style | None = None,
        color: Color | None = None,
        color_id: int | None = None,
        highlight: int | None = None,
    ) -> None:
        self.bold = bold or style is Style.BOLD
        self.blink = blink or style is Style.BLINK
        self.underline = underline or style is Style.UNDERLINE
        self.color = color
        self.color_id = color_id
        self.highlight = highlight

    def __str__(self) -> str:
        codes = [
            code for code, wanted in (("1", self.bold), ("4", self.underline), ("5", self.blink)) if wanted
        ]
        if self.color_id is not None:
            codes.append(f"38;5;{_shade(self.color_id)}")
        elif self.color is not None:
            codes.append(self.color.value[2:-1])
        if self.highlight is not None:
            codes.append(f"48;5;{_shade(self.highlight)}")
        return f"\033[{';'.join(codes)}m" if codes else ""


def is_capable() -> bool:
    """Whether our output is a terminal."""
    return sys.stdout.isatty()


def stylize(string: str, options: AnsiOptions) -> str:
    """A text in such a style, where our output is a terminal; so do all that follow."""
    return _within(str(options), string)


def colorize(string: str, color: Color) -> str:
    """A coloured text."""
    return _within(color.value, string)


def id_colorize(string: str, id: int) -> str:
    """A text in one of 256 shades."""
    return stylize(string, AnsiOptions(color_id=id))


def highlight(string: str, id: int) -> str:
    """A text on one of 256 shades."""
    return stylize(string, AnsiOptions(highlight=id))


def underline(string: str) -> str:
    """An underlined text."""
    return _within(Style.UNDERLINE.value, string)


def bold(string: str) -> str:
    """A bold text."""
    return _within(Style.BOLD.value, string)


def blink(string: str) -> str:
    """A text that blinks."""
    return _within(Style.BLINK.value, string)


def strip_ansi(string: str) -> str:
    """A text without what only a terminal understands."""
    return ANSI_ESCAPE_RE.sub("", string)


def _within(begin: str, string: str) -> str:
    return f"{begin}{string}{ANSI_RESET}" if begin and is_capable() else string


def _shade(number: int) -> int:
    return max(0, min(number, _SHADES))
