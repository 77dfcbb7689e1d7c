"""
Strings and expressions that many rows share, kept once and known by a number.

Both pools count who uses an entry and give the number to another one when nobody does any more: a table whose ads
change for years stays as large as what they say now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from kettle.classad.errors import ClassAdParseError
from kettle.classad.nodes import held
from kettle.classad.parser import parse
from kettle.classad.values import ERROR, Stored, from_octets, octets

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes: TypeAlias = npt.NDArray[np.int64]

_FIRST_CAPACITY: Final = 64


def folded(text: str) -> str:
    """`text` as comparison sees it: without regard to the case of ASCII letters."""
    return text.lower() if text.isascii() else from_octets(octets(text).lower())


class Strings:
    """
    String -> code, and for each code the code of its folded form.

    Two codes are equal if and only if the strings are identical (``=?=``),
    their folds are equal if and only if the strings compare as equal (``==``).
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        self._folds: dict[str, int] = {}
        self._fold_uses: dict[int, int] = {}
        self._next_fold = 0
        self._fold_of: Codes = np.zeros(_FIRST_CAPACITY, np.int64)

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, code: int) -> str:
        return self._texts[code]

    def code(self, text: str) -> int:
        """The code of a string that is known; -1, which no string has, of any other."""
        return self._codes.get(text, -1)

    def fold(self, text: str) -> int:
        """The code of the folded form; -1 if no string is known that compares as equal."""
        return self._folds.get(folded(text), -1)

    def folds(self, codes: Codes) -> Codes:
        """The folds of many codes."""
        return self._fold_of[codes]

    def take(self, text: str) -> int:
        """The code of `text`, which is in use once more."""
        code = self._codes.get(text)
        if code is None:
            return self._new(text)
        self._uses[code] += 1
        return code

    def _new(self, text: str) -> int:
        if self._free:
            code = self._free.pop()
            self._texts[code], self._uses[code] = text, 1
        else:
            code = len(self._texts)
            self._texts.append(text)
            self._uses.append(1)
            if code == len(self._fold_of):
                self._fold_of = np.concatenate([self._fold_of, np.zeros_like(self._fold_of)])
        self._codes[text] = code
        key = folded(text)
        fold = self._folds.get(key)
        if fold is None:
            fold = self._folds[key] = self._next_fold
            self._next_fold += 1
        self._fold_uses[fold] = self._fold_uses.get(fold, 0) + 1
        self._fold_of[code] = fold
        return code

    def drop(self, code: int) -> None:
        """One use less."""
        self._uses[code] -= 1
        if self._uses[code]:
            return
        text = self._texts[code]
        fold = int(self._fold_of[code])
        self._fold_uses[fold] -= 1
        if not self._fold_uses[fold]:
            del self._fold_uses[fold], self._folds[folded(text)]
        del self._codes[text]
        self._texts[code] = ""
        self._free.append(code)


class Expressions:
    """
    Expression text -> code, and for each code what it stands for, parsed when it is first asked for.

    Everything that is no plain value is one: references, lists, nested ads, times.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []
        self._stored: list[Stored | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._codes)

    def code(self, text: str) -> int:
        """The code of a text that is known, -1 of any other."""
        return self._codes.get(text, -1)

    def __getitem__(self, code: int) -> Stored:
        """The expression, or its value if it is a literal; text that does not parse is the value error."""
        stored = self._stored[code]
        if stored is None:
            stored = self._stored[code] = parsed(self._texts[code])
        return stored

    def text(self, code: int) -> str:
        """The text under which the expression was stored."""
        return self._texts[code]

    def take(self, text: str) -> int:
        """The code of `text`, which is in use once more."""
        code = self._codes.get(text)
        if code is not None:
            self._uses[code] += 1
            return code
        if self._free:
            code = self._free.pop()
            self._texts[code], self._stored[code], self._uses[code] = text, None, 1
        else:
            code = len(self._texts)
            self._texts.append(text)
            self._stored.append(None)
            self._uses.append(1)
        self._codes[text] = code
        return code

    def drop(self, code: int) -> None:
        """One use less."""
        self._uses[code] -= 1
        if not self._uses[code]:
            del self._codes[self._texts[code]]
            self._texts[code], self._stored[code] = "", None
            self._free.append(code)


def parsed(text: str) -> Stored:
    """What an expression's text stands for in an ad."""
    try:
        node = parse(text)
    except ClassAdParseError:
        return ERROR
    return held(node)
