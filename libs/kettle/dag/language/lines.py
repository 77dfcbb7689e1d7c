"""
A DAG file into lines.

Lines are trimmed; empty ones and those that begin with `#` or `//` say nothing, also between a line that ends with a
backslash and the one that continues it.
"""

from typing import Final

from kettle.dag.faults import PlacelessFault

_BLANK: Final = " \t\r\n\v\f"
"""What C calls space in the plain locale: other white space may stand in names."""


class Lines:
    """The lines of one file, one after the other."""

    def __init__(self, text: str) -> None:
        self._lines = text.removeprefix("\ufeff").split("\n")
        self._next = 0

    def next(self) -> tuple[int, str] | None:
        """
        The next line that says something, with its number; None at the end.

        Of joined lines the number is that of the first.
        """
        joined = ""
        number = 0
        while (line := self._said()) is not None:
            number = number or self._next
            if not line.endswith("\\"):
                return number, joined + line
            joined += line[:-1] + " "
        return (number, joined) if number else None

    def description(self, opening: str) -> tuple[str, str]:
        """
        The description that begins after the line whose last word was `opening`, and what stands behind its end.

        Raises `PlacelessFault` if it has no end.
        """
        end = "}" if opening.startswith("{") else "@" + opening.removeprefix("@=")
        if end == "@":
            raise PlacelessFault(
                "a description that begins with @= needs a word that ends it: @=END, and later @END"
            )
        found: list[str] = []
        while (line := self._said()) is not None:
            if line == end or line.startswith(end + " "):
                return "".join(each + "\n" for each in found), line.removeprefix(end)
            found.append(line)
        raise PlacelessFault(
            f"the description that begins here has no end; write {end} on a line of its own after it"
        )

    def _said(self) -> str | None:
        """The next physical line that says something, trimmed."""
        lines, at = self._lines, self._next
        while at < len(lines):
            line = lines[at].strip(_BLANK)
            at += 1
            if line and not line.startswith(("#", "//")):
                self._next = at
                return line
        self._next = at
        return None


def begins_description(word: str) -> bool:
    """Whether a word stands for a description that follows on the next lines."""
    return word.startswith(("{", "@="))
