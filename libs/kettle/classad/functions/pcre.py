r"""
Patterns in Perl syntax, run by Python's `re` over octets.

`re` is not PCRE.  What ads use and `re` spells differently is translated: POSIX classes, ``\h``, ``\z`` and ``\Z``,
``\Q..\E``, ``(?<name>``, and a literal ``[`` within a class.
What `re` cannot do (``\K``, ``\R``, ``\G``, recursion, conditions on look-around, options that start in the middle)
is a bad pattern here, so that a difference is an error and never another answer.
`re` also has no limit on backtracking, as PCRE has: a pattern made to be slow is slow here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from kettle.classad.values import octets

_POSIX: Final = {
    b"alpha": rb"a-zA-Z", b"digit": rb"0-9", b"alnum": rb"a-zA-Z0-9", b"upper": rb"A-Z", b"lower": rb"a-z",
    b"space": rb"\s", b"blank": rb"\t ", b"xdigit": rb"0-9a-fA-F", b"word": rb"\w",
    b"punct": rb"!-/:-@\[-`{-~", b"cntrl": rb"\x00-\x1f\x7f", b"print": rb"\x20-\x7e", b"graph": rb"\x21-\x7e",
}  # fmt: skip
_OUTSIDE: Final = re.compile(
    rb"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\E|\\[hHzZ]|\\.|\(\?<(?=[A-Za-z_])|(?P<class>\[\^?\]?)", re.DOTALL
)
_INSIDE: Final = re.compile(rb"\[:(?P<not>\^?)(?P<posix>[a-z]+):\]|\\.|(?P<end>\])|[\[&~|]|--", re.DOTALL)
_SPELLING: Final = {
    rb"\h": rb"[\t ]", rb"\H": rb"[^\t ]", rb"\z": rb"\Z", rb"\Z": rb"(?=\n?\Z)", rb"\E": b"", b"(?<": b"(?P<",
}  # fmt: skip
_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, options: str = "") -> re.Pattern[bytes] | None:
    """The pattern with the options it knows (``imsx``), others ignored; None if it is none."""
    flags = re.RegexFlag(0)
    for option in options:
        flags |= _FLAGS.get(option, re.RegexFlag(0))
    try:
        return re.compile(_translated(octets(pattern)), flags)
    except (re.error, OverflowError, RecursionError):
        return None


def _translated(pattern: bytes) -> bytes:
    parts: list[bytes] = []
    position = 0
    while match := _OUTSIDE.search(pattern, position):
        parts.append(pattern[position : match.start()])
        position = match.end()
        if match["class"] is not None:
            members, position = _class(pattern, position)
            parts.append(match["class"].replace(b"]", rb"\]") + members)
        elif match["quoted"] is not None:
            parts.append(re.escape(match["quoted"]))
        else:
            parts.append(_SPELLING.get(match[0], match[0]))
    parts.append(pattern[position:])
    return b"".join(parts)


def _class(pattern: bytes, position: int) -> tuple[bytes, int]:
    """The rest of a character class, and where it ends."""
    parts: list[bytes] = []
    while match := _INSIDE.search(pattern, position):
        parts.append(pattern[position : match.start()])
        position = match.end()
        if match["posix"] is not None:
            parts.append(_posix(match["posix"], negated=bool(match["not"])))
        elif match[0] == rb"\h":
            parts.append(rb"\t ")
        elif match["end"] is not None:
            return b"".join(parts) + b"]", position
        else:
            parts.append(match[0] if match[0][:1] == b"\\" else _escaped(match[0]))
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
