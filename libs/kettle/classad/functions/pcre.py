r"""
Patterns in Perl syntax over octets, found in a time that is known before.

RE2 runs them: its time grows with the length of the text and the size of the pattern, whatever the two say.
What it cannot do but `re` can (look-around, references to groups, possessive quantifiers) is run by `re` if the
pattern and the text leave it few ways to go wrong.
What the two spell differently is translated (`perl`).
What neither can do (``\K``, ``\R``, ``\G``, recursion, conditions) is a bad pattern here, and what would take too
long is refused, so that a difference is an error and never another answer.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kettle.classad.errors import ClassAdError
from kettle.classad.functions.backtracking import ways
from kettle.classad.functions.perl import translated
from kettle.classad.values import octets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_re2: Final[Any] = import_module("re2")  # it has no types

_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}

_ASSERTED: Final = re.compile(rb"\\[bBAzZ]|(?<!\\)(?<!\[)[\^$]")
"""What is nothing itself, and asks what is around it."""
_LAZY: Final = re.compile(rb"[*+?}]\?|\((?:\?:)?\|")
_LOOK: Final = re.compile(rb"\(\?<?[=!]")
_CHOICE: Final = re.compile(rb"[|*?]|\{0")

_ONLY_IN_PCRE: Final = re.compile(
    rb"\\[KRGXgkpPC]|\(\?(?:[|(R&+0-9]|-[0-9]|P[>=])|\(\*|\(\?<[=!]|[*+?}]\+|\(\?>"
)
"""What RE2 and `re` do not have, or have only in part."""
_LONGEST: Final = 10_000
"""Octets of a pattern; it takes some 10 ms to compile."""
_GROUPS: Final = 100
_MEMORY: Final = 1 << 18
"""Octets that RE2 may use for a pattern; some hundred are kept."""
_WORK: Final = 2_000_000
"""Steps of RE2, some 20 ns each at worst: a pattern's size times the octets it looks at."""
_TRIES: Final = 1_000_000
"""Steps of `re`."""


_WORK_PER_STEP: Final = 50
"""So much of either takes as long as the evaluation of a node."""


def _free(_: int) -> None:
    """Nobody counts."""


class TooCostly(ClassAdError):  # noqa: N818 - it names what is refused
    """To look for this pattern in this text could take too long."""


class Found(msgspec.Struct, frozen=True):
    """Where a pattern was found; group 0 is all of it, a group that took no part is None."""

    start: int
    end: int
    groups: tuple[bytes | None, ...]


class Pattern:
    """
    A pattern that was compiled; `quick` is RE2's form of it, `slow` is that of `re`, at least one exists.
    """

    def __init__(self, source: bytes, options: str) -> None:
        linear, tracking, self._ends = translated(source, extended="x" in options)
        self._tracking = tracking
        self._quick: Any = _linear(linear, options)
        self._slow = _backtracking(tracking, options) if self._quick is None or self._ends else None
        if self._quick is None and self._slow is None:
            raise re.error("neither RE2 nor re knows it")
        self._longest = partial(_linear, linear, options, longest=True)
        self._multiline = "m" in options
        self._source = linear
        self._size: int = 0 if self._quick is None else self._quick.programsize

    def occurs(self, text: bytes, *, spend: Callable[[int], None] = _free) -> bool:
        """Whether there is a place for it in `text`; otherwise as `search`."""
        return self._run(text, 0, spend) is not None

    def search(self, text: bytes, at: int = 0, *, spend: Callable[[int], None] = _free) -> Found | None:
        """
        The first match in `text` from `at` on; raises `TooCostly`, and reports its cost to `spend`, in steps.
        """
        found = self._run(text, at, spend)
        return None if found is None else Found(found.start(), found.end(), (found[0], *found.groups()))

    def _run(self, text: bytes, at: int, spend: Callable[[int], None]) -> Any:
        """The match as the engine gives it, None if there is none."""
        if self._quick is not None and not (self._ends and not self._multiline and text.endswith(b"\n")):
            work = self._size * (len(text) - at + 1)
            if work > _WORK:
                raise TooCostly("the pattern is too large for so long a text")
            spend(work // _WORK_PER_STEP)
            return self._quick.search(text, at)
        tries = None if self._slow is None else ways(self._tracking, len(text), limit=_TRIES)
        if self._slow is None or tries is None:
            raise TooCostly("the pattern leaves too many ways to look for it")
        spend(tries // _WORK_PER_STEP)
        return self._slow.search(text, at)

    @property
    def forgets_groups(self) -> bool:
        """
        Whether a group that may match nothing is repeated without bound.

        RE2 and PCRE disagree about what such a group has found last.
        """
        return _repeats_nothing(self._source)

    @property
    def stops_elsewhere(self) -> bool:
        """
        Whether a group that may match nothing is repeated, and something in the pattern takes as little as it can.

        RE2 and PCRE disagree about where such a match ends.
        """
        return self.forgets_groups and _LAZY.search(self._source) is not None

    def finds_something(self, text: bytes, *, spend: Callable[[int], None] = _free) -> bool:
        """Whether it is found anywhere in `text` with at least one octet."""
        self.search(text, spend=spend)
        longest = self._longest()
        places = self.finditer(text) if longest is None else longest.finditer(text)
        return any(match.end > match.start if isinstance(match, Found) else match[0] for match in places)

    def only_empty(self, text: bytes, at: int) -> bool:
        """Whether a match of nothing at a place excludes any other match there; False if that is unknown."""
        if self._quick is None:
            return not _CHOICE.search(_LOOK.sub(b"", self._tracking))
        longest = self._longest()
        found = longest and longest.match(text, at)
        return bool(found) and found.end() == at

    def finditer(self, text: bytes, *, spend: Callable[[int], None] = _free) -> Iterator[Found]:
        """All places that do not overlap; together they may take twice what one may."""
        at, left = 0, 2 * _WORK // _WORK_PER_STEP

        def count(steps: int) -> None:
            nonlocal left
            left -= steps
            if left < 0:
                raise TooCostly("the pattern is found too often in so long a text")
            spend(steps)

        while at <= len(text) and (found := self.search(text, at, spend=count)) is not None:
            yield found
            at = found.end if found.end > found.start else found.end + 1


@lru_cache(maxsize=512)
def _repeats_nothing(pattern: bytes) -> bool:
    opened: list[int] = []
    for token in re.finditer(
        rb"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\()|(?P<close>\))", pattern, re.DOTALL
    ):
        if token["open"]:
            opened.append(token.start())
        elif token["close"] and opened:
            start = opened.pop()
            if pattern[token.end() : token.end() + 1] in {b"*", b"+", b"{"}:
                body = _linear(_ASSERTED.sub(b"", pattern[start : token.end()]), "")
                if body is None or body.fullmatch(b""):
                    return True
    return False


@lru_cache(maxsize=512)
def compile_pattern(pattern: str, options: str = "") -> Pattern | None:
    """The pattern with the options it knows (``imsx``), others ignored; None if it is none."""
    source = octets(pattern)
    if len(source) > _LONGEST:
        return None
    try:
        return Pattern(source, options)
    except (re.error, OverflowError, RecursionError):
        return None


def beyond_us(pattern: str) -> bool:
    """Whether a pattern that is none here may be one in PCRE."""
    source = octets(pattern)
    return len(source) > _LONGEST or _ONLY_IN_PCRE.search(source) is not None


def _linear(source: bytes, options: str, *, longest: bool = False) -> Any:
    chosen = _re2.Options()
    chosen.encoding = _re2.Options.Encoding.LATIN1  # octets
    chosen.log_errors = False
    chosen.longest_match = longest
    chosen.max_mem = _MEMORY
    chosen.case_sensitive = "i" not in options
    chosen.dot_nl = "s" in options
    try:
        compiled = _re2.compile(b"(?m)" + source if "m" in options else source, chosen)
    except _re2.error:
        return None
    return compiled if compiled.groups <= _GROUPS else None


def _backtracking(source: bytes, options: str) -> re.Pattern[bytes] | None:
    if ways(source, 0, limit=_TRIES) is None:
        return None
    flags = re.RegexFlag(0)
    for option in options:
        flags |= _FLAGS.get(option, re.RegexFlag(0))
    return re.compile(source, flags)
