"""Text on a terminal; names only."""

from kettle.bindings.ansi import (
    ANSI_ESCAPE_RE,
    ANSI_RESET,
    AnsiOptions,
    Color,
    Style,
    blink,
    bold,
    colorize,
    highlight,
    id_colorize,
    is_capable,
    strip_ansi,
    stylize,
    underline,
)

__all__ = [
    "ANSI_ESCAPE_RE",
    "ANSI_RESET",
    "AnsiOptions",
    "Color",
    "Style",
    "blink",
    "bold",
    "colorize",
    "highlight",
    "id_colorize",
    "is_capable",
    "strip_ansi",
    "stylize",
    "underline",
]
