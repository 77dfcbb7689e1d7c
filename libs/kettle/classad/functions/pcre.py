r"""
Patterns in Perl syntax over octets, found in a time that is known before.

RE2 runs them: its time grows with the length of the text and the size of the pattern, whatever the two say.
What it cannot do but `re` can (look-around, references to groups, possessive quantifiers) is run by `re` if the
pattern and the text leave it few ways to go wrong.
What ads use and these two spell differently is translated: POSIX classes, ``\h``, ``\s``, ``\z`` and ``\Z``,
``\Q..\E``, ``(?<name>``, a literal ``[`` within a class, and option ``x``.
What neither can do (``\K``, ``\R``, ``\G``, recursion, conditions) is a bad pattern here, and what would take too
long is refused, so that a difference is an error and never another answer.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kettle.classad.errors import ClassAdError
from kettle.classad.functions.ways import ways
from kettle.classad.values import octets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_re2: Final[Any] = import_module("re2")  # it has no types

_POSIX: Final = {
    b"alpha": rb"a-zA-Z", b"digit": rb"0-9", b"alnum": rb"a-zA-Z0-9", b"upper": rb"A-Z", b"lower": rb"a-z",
    b"space": rb"\t-\r ", b"blank": rb"\t ", b"xdigit": rb"0-9a-fA-F", b"word": rb"\w",
    b"punct": rb"!-/:-@\[-`{-~", b"cntrl": rb"\x00-\x1f\x7f", b"print": rb"\x20-\x7e", b"graph": rb"\x21-\x7e",
}  # fmt: skip
_OUTSIDE: Final = re.compile(
    rb"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\E|\\[hHsSzZ]|\\.|\(\?<(?=[A-Za-z_])|\$|(?P<class>\[\^?\]?)", re.DOTALL
)
_INSIDE: Final = re.compile(rb"\[:(?P<not>\^?)(?P<posix>[a-z]+):\]|\\.|(?P<end>\])|[\[&~|]|--", re.DOTALL)
_SPELLING: Final = {
    rb"\h": rb"[\t ]", rb"\H": rb"[^\t ]", rb"\s": rb"[\t-\r ]", rb"\S": rb"[^\t-\r ]", rb"\E": b"",
    b"(?<": b"(?P<",
}  # fmt: skip
_IN_CLASS: Final = {rb"\h": rb"\t ", rb"\s": rb"\t-\r "}
_ENDS: Final = {rb"\z": (rb"\z", rb"\Z"), rb"\Z": (rb"\z", rb"(?=\n?\Z)")}
"""How RE2 and how `re` write the end; RE2 has no word for an end before a last line break."""
_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}

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
    """A pattern that was compiled; `quick` is RE2's form of it, `slow` is that of `re`, at least one exists."""

    def __init__(self, source: bytes, options: str) -> None:
        linear, tracking, self._ends = _translated(source, extended="x" in options)
        self._tracking = tracking
        self._quick: Any = _linear(linear, options)
        self._slow = _backtracking(tracking, options) if self._quick is None or self._ends else None
        if self._quick is None and self._slow is None:
            raise re.error("neither RE2 nor re knows it")
        self._multiline = "m" in options

    def search(self, text: bytes, at: int = 0, *, spend: Callable[[int], None] = _free) -> Found | None:
        """The first place in `text` from `at` on; raises `TooCostly`, and tells `spend` what it takes, in steps."""
        found: Any
        if self._quick is not None and not (self._ends and not self._multiline and text.endswith(b"\n")):
            work = self._quick.programsize * (len(text) - at + 1)
            if work > _WORK:
                raise TooCostly("the pattern is too large for so long a text")
            spend(work // _WORK_PER_STEP)
            found = self._quick.search(text, at)
        else:
            tries = None if self._slow is None else ways(self._tracking, len(text), limit=_TRIES)
            if self._slow is None or tries is None:
                raise TooCostly("the pattern leaves too many ways to look for it")
            spend(tries // _WORK_PER_STEP)
            found = self._slow.search(text, at)
        return None if found is None else Found(found.start(), found.end(), (found[0], *found.groups()))

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
def compile_pattern(pattern: str, options: str = "") -> Pattern | None:
    """The pattern with the options it knows (``imsx``), others ignored; None if it is none."""
    source = octets(pattern)
    if len(source) > _LONGEST:
        return None
    try:
        return Pattern(source, options)
    except (re.error, OverflowError, RecursionError):
        return None


def _linear(source: bytes, options: str) -> Any:
    chosen = _re2.Options()
    chosen.encoding = _re2.Options.Encoding.LATIN1  # octets
    chosen.log_errors = False
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


def _translated(pattern: bytes, *, extended: bool) -> tuple[bytes, bytes, bool]:
    """The pattern as RE2 and as `re` write it, and whether it asks where a line or the text ends."""
    linear: list[bytes] = []
    tracking: list[bytes] = []
    ends = False
    position = 0
    while match := _OUTSIDE.search(pattern, position):
        for parts, plain in zip(
            (linear, tracking), _plain(pattern[position : match.start()], extended), strict=True
        ):
            parts.append(plain)
        position = match.end()
        token = match[0]
        if match["class"] is not None:
            members, position = _class(pattern, position)
            both = (token.replace(b"]", rb"\]") + members,) * 2
        elif match["quoted"] is not None:
            both = (re.escape(match["quoted"]),) * 2
        else:
            ends = ends or token in {b"$", rb"\Z"}
            both = _ENDS.get(token, (_SPELLING.get(token, token),) * 2)
        linear.append(both[0])
        tracking.append(both[1])
    last = _plain(pattern[position:], extended)
    return b"".join((*linear, last[0])), b"".join((*tracking, last[1])), ends


def _plain(text: bytes, extended: bool) -> tuple[bytes, bytes]:  # noqa: FBT001 - private
    """What stands between the tokens; an octet beyond ASCII has no other case, whatever RE2 takes it for."""
    if extended:
        if b"#" in text:
            raise re.error("comments are not understood")
        text = b"".join(text.split())
    return re.sub(rb"[\x80-\xff]", lambda octet: b"(?-i:\\x%02x)" % octet[0][0], text), text


def _class(pattern: bytes, position: int) -> tuple[bytes, int]:
    """The rest of a character class, and where it ends."""
    parts: list[bytes] = []
    while match := _INSIDE.search(pattern, position):
        parts.append(pattern[position : match.start()])
        position = match.end()
        if match["posix"] is not None:
            parts.append(_posix(match["posix"], negated=bool(match["not"])))
        elif match["end"] is not None:
            return b"".join(parts) + b"]", position
        elif match[0][:1] == b"\\":
            parts.append(_IN_CLASS.get(match[0], match[0]))
        else:
            parts.append(_escaped(match[0]))
    return b"".join(parts) + pattern[position:], len(pattern)


def _escaped(special: bytes) -> bytes:
    return b"".join(b"\\" + bytes([code]) for code in special)


def _posix(name: bytes, *, negated: bool) -> bytes:
    """The members of a POSIX class; one that is unknown makes the pattern a bad one."""
    members = _POSIX.get(name)
    if members is None:
        raise re.error(f"unknown class {name!r}")
    if not negated:
        return members
    inside = re.compile(b"[" + members + b"]")
    return b"".join(b"\\x%02x" % code for code in range(256) if not inside.match(bytes([code])))
