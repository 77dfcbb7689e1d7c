"""
`if`, `elif`, `else`, `endif`: which lines of a description count.

A condition is `defined NAME`, `version OP x.y.z`, or a word or number, before or after a `!`; nothing else.
"""

import re
from collections.abc import Callable
from typing import Final

from kettle.submit.errors import PlacelessError
from kettle.submit.macros import Expander

COMPATIBLE_VERSION: Final = (25, 0, 0)
"""The release of HTCondor whose language this is, for `if version >= ...`."""

_VERSION: Final = re.compile(r"version\s*(==|>=|<=|!=|>|<)\s*(\d+)\.(\d+)(?:\.(\d+))?", re.IGNORECASE)
_DEFINED: Final = re.compile(r"defined\s+(\S+)", re.IGNORECASE)
_WORDS: Final = {"true": True, "yes": True, "t": True, "false": False, "no": False, "f": False, "": False}

Lookup = Callable[[], Expander]


class _Branch:
    """One `if` that is open: was a branch taken, is this one, and does the `if` itself count."""

    def __init__(self, line: int, *, outer: bool) -> None:
        self.line = line
        self.outer = outer
        self.taken = False
        self.active = False
        self.last = False


class Conditions:
    """The open conditionals of a description."""

    def __init__(self) -> None:
        self._open: list[_Branch] = []

    @property
    def active(self) -> bool:
        """Whether the lines here count."""
        return not self._open or self._open[-1].active

    @property
    def depth(self) -> int:
        """How many are open."""
        return len(self._open)

    @property
    def opened(self) -> int | None:
        """The line of the innermost open `if`."""
        return self._open[-1].line if self._open else None

    def read(self, word: str, condition: str, line: int, lookup: Lookup) -> None:
        """
        Read one conditional statement. Raises PlacelessError; a caller that continues then does so as if the condition
        were false.
        """
        if word == "if":
            branch = _Branch(line, outer=self.active)
            # First: a condition that cannot be read is an open one that does not hold.
            self._open.append(branch)
            branch.taken = branch.active = branch.outer and _holds(condition, lookup)
            return
        if not self._open:
            raise PlacelessError(f"{word} without an if before it")
        branch = self._open[-1]
        if word == "endif":
            self._open.pop()
            return
        if branch.last:
            raise PlacelessError(f"{word} after the else of the same if")
        branch.last = word == "else"
        candidate = branch.outer and not branch.taken
        branch.active = candidate and (word == "else" or _holds(condition, lookup))
        branch.taken = branch.taken or branch.active


def _holds(condition: str, lookup: Lookup) -> bool:
    condition = condition.strip()
    if condition.startswith("!"):
        return not _holds(condition[1:], lookup)
    expander = lookup()
    if defined := _DEFINED.fullmatch(condition):
        if defined[1].lower() in {"true", "false"} or defined[1].isdecimal():
            return True  # a value, as what a macro comes to may be
        return bool(expander.value(expander.expand(defined[1])))
    if version := _VERSION.fullmatch(condition):
        return _compares(version[1], tuple(int(part or 0) for part in version.groups()[1:]))
    word = expander.expand(condition).strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return float(word) != 0
    except ValueError as error:
        raise PlacelessError(
            f"'{condition}' is not a condition: use defined NAME, version >= X.Y, true or false"
        ) from error


def _compares(op: str, other: tuple[int, ...]) -> bool:
    ours = COMPATIBLE_VERSION
    return {
        "==": ours == other,
        "!=": ours != other,
        ">=": ours >= other,
        "<=": ours <= other,
        ">": ours > other,
        "<": ours < other,
    }[op]
