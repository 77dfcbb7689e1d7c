"""
A line into words.

Words are separated by blanks and tabs.  Single or double quotes keep blanks within a word, and a backslash within quotes
takes the next character as it is.  Quotes stay part of a word that is a name, and not of one that is a path or a value.
"""

import re
from typing import Final

from kettle.dag.faults import PlacelessFault

_PLAIN: Final = re.compile(r"""[ \t\r]*([^ \t\r"']+)(?![^ \t\r])""")
_SIMPLY_QUOTED: Final = re.compile(r"""[ \t\r]*(?:"([^"\\]*)"|'([^'\\]*)')(?![^ \t\r])""")
_NAME: Final = re.compile(r"""[ \t\r]*([^ \t\r"'=]*)[ \t\r]*(=?)[ \t\r]*""")
_END: Final = re.compile(r"[ \t\r]*$")
_NUMBER: Final = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_LARGEST: Final = 2**31 - 1


class Words:
    """The words of one line, one after the other."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self.notes: list[str] = []
        """What is strange about the words; for warnings."""

    def next(self, *, trim: bool = False) -> str:
        """The next word, empty at the end of the line; `trim`: without its quotes."""
        plain = _PLAIN.match(self._line, self._at)
        if plain is None:
            return self._quoted(trim=trim)
        self._at = plain.end()
        return plain[1]

    def all(self) -> list[str]:
        """All words that are left."""
        found: list[str] = []
        while word := self.next():
            found.append(word)
        return found

    def peek(self) -> str:
        """The next word, which stays."""
        at = self._at
        word = self.next()
        self._at = at
        return word

    def rest(self) -> str:
        """What is left of the line, literally."""
        rest = self._line[self._at :].strip(" \t\r\v\f")
        self._at = len(self._line)
        return rest

    def end(self) -> None:
        """Refuse any word that is left."""
        if word := self.next():
            raise PlacelessFault(f"{word!r} is one word too many")

    def number(self, word: str, meaning: str, *, least: int = -_LARGEST - 1, most: int = _LARGEST) -> int:
        """
        A whole number in a range; `meaning` is for the sentence of a refusal.

        Characters behind the digits have no meaning, as in HTCondor, but are noted.
        """
        if not word:
            raise PlacelessFault(f"{meaning} is missing")
        found = _NUMBER.match(word)
        if found is None or not least <= (number := int(found[1])) <= most:
            bounds = f"a whole number from {least} to {most}" if least > -_LARGEST - 1 else "a whole number"
            raise PlacelessFault(f"{meaning} must be {bounds}, not {word!r}")
        if found.end() != len(word):
            self.notes.append(
                f"{meaning} is read as {number}, and {word[found.end() :]!r} behind it has no meaning"
            )
        return number

    def pair(self) -> tuple[str, str] | None:
        """The next `name=value`, its value without quotes; None at the end of the line."""
        if _END.match(self._line, self._at):
            return None
        found = _NAME.match(self._line, self._at)
        assert found is not None  # it matches the empty text
        name, sign = found.groups()
        if not name:
            raise PlacelessFault(
                f"{self._line[self._at :].strip()[:30]!r} is no name=value: the name is missing"
            )
        self._at = found.end()
        if not sign or self._line[self._at : self._at + 1] in {"", "="}:
            raise PlacelessFault(f'{name!r} has no value; write {name}="value"')
        quoted = _SIMPLY_QUOTED.match(self._line, self._at)
        if quoted is None:
            return name, self.next(trim=True)
        self._at = quoted.end()
        return name, quoted[1] if quoted[1] is not None else quoted[2]

    def _quoted(self, *, trim: bool) -> str:
        """The next word, character by character."""
        line, at = self._line, self._at
        while at < len(line) and line[at] in " \t\r":
            at += 1
        word: list[str] = []
        quote = ""
        while at < len(line) and (quote or line[at] not in " \t\r"):
            character = line[at]
            at += 1
            if quote and character == "\\" and at < len(line):
                word.append(line[at])
                at += 1
            elif character == quote or (not quote and character in "\"'"):
                quote = "" if quote else character
                if not trim:
                    word.append(character)
            else:
                word.append(character)
        if quote:
            raise PlacelessFault(f"the quote {quote} has no end on this line")
        self._at = at
        return "".join(word)
