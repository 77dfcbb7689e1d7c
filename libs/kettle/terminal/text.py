"""
Text for terminals: what somebody has written into a job, an ad or a file does what it says, and nothing else.

A terminal takes control characters for commands, and a line break in a name for the end of a line.
Listings show both as the escapes by which they are typed; programs that read from a pipe get data as it is.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, TextIO

from kettle_wire.ads.types import Ad

_CONTROLS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
"""Control characters, what turns the direction of text around, and halves of characters."""
_IN_LINES: Final = re.compile(f"[{_CONTROLS}]")
_IN_FIELDS: Final = re.compile(f"[{_CONTROLS}\t\n\u2028\u2029]")
_CONTROL_OCTETS: Final = bytes(octet for octet in (*range(32), 127) if octet not in b"\t\n")
_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def visible(text: str) -> str:
    """A text that stands within a line: what does not print is shown, line breaks and tabulators too."""
    return _IN_FIELDS.sub(_escape, text) if _IN_FIELDS.search(text) else text


def visible_ads(ads: Iterable[Ad]) -> list[Ad]:
    """The ads with what their texts say shown: what a table is made of."""
    return [
        {name: visible(value) if isinstance(value, str) else value for name, value in ad.items()}
        for ad in ads
    ]


def visible_lines(text: str) -> str:
    """Whole lines: what does not print is shown, except for line breaks and tabulators."""
    if text.isascii() and len(text.encode().translate(None, _CONTROL_OCTETS)) == len(text):
        return text  # a tenth of the time of a search, and listings are long
    return _IN_LINES.sub(_escape, text) if _IN_LINES.search(text) else text


def is_plain(text: str) -> bool:
    """Whether all of a text prints, and it is one line."""
    return _IN_FIELDS.search(text) is None


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _ESCAPES.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


class TerminalText:
    """A stream on which only visible text is written; all else is as with the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write whole lines, with what does not print shown."""
        return self._stream.write(visible_lines(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of many."""
        self._stream.writelines(map(visible_lines, lines))

    def data(self) -> TextIO:
        """The stream for data that a program will read: as it is, unless a person sees it."""
        return self if self._stream.isatty() else self._stream  # type: ignore[return-value]  # it has all of its methods

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def data_output(stream: TextIO) -> TextIO:
    """Where data goes that was asked for as it is: behind a guard, if there is one."""
    return stream.data() if isinstance(stream, TerminalText) else stream
