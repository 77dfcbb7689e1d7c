r"""
Perl's patterns in the syntax of RE2 and of `re`.

What ads use and the three spell differently: POSIX classes, ``\h``, ``\v``, ``\s``, ``\N``, ``\e``, ``\z`` and ``\Z``,
``\Q..\E``, ``(?<name>``, ``{,2}``, a literal ``[`` within a class, comments, and option ``x``.
Errors of PCRE alone (a repeated assertion, a range that starts with a class) are errors here, too.
"""

import re
from typing import Final

_POSIX: Final = {
    b"alpha": rb"a-zA-Z", b"digit": rb"0-9", b"alnum": rb"a-zA-Z0-9", b"upper": rb"A-Z", b"lower": rb"a-z",
    b"space": rb"\t-\r ", b"blank": rb"\t ", b"xdigit": rb"0-9a-fA-F", b"word": rb"\w",
    b"punct": rb"!-/:-@\[-`{-~", b"cntrl": rb"\x00-\x1f\x7f", b"print": rb"\x20-\x7e", b"graph": rb"\x21-\x7e",
}  # fmt: skip
_TOKEN: Final = (
    rb"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\E|(?P<comment>\(\?#[^)]*\)%s)|\\[hHsSvVzZeN]|\\.|\(\?<(?=[A-Za-z_])|[$^]"
    rb"|(?P<class>\[\^?\]?)"
)
_OUTSIDE: Final = re.compile(_TOKEN % b"", re.DOTALL)
_OUTSIDE_EXTENDED: Final = re.compile(_TOKEN % rb"|#[^\n]*(?:\n|\Z)", re.DOTALL)
_REPEAT: Final = re.compile(rb"[*+?]|\{[0-9]+(?:,[0-9]*)?\}")
_SPACED_REPEAT: Final = re.compile(rb"\s*(?:" + _REPEAT.pattern + rb")")
_REPEATED_OPTION: Final = re.compile(rb"(?<!\\)\(\?[a-zA-Z^-]+\)\s*(?:" + _REPEAT.pattern + rb")")
_EMPTY_REPEAT: Final = re.compile(rb"\(\s+(?:" + _REPEAT.pattern + rb")")
_NAMED_GROUP: Final = re.compile(rb"\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>")
_ASSERTIONS: Final = frozenset({b"^", b"$", rb"\b", rb"\B", rb"\A", rb"\z", rb"\Z"})
"""PCRE repeats none of these."""
_INSIDE: Final = re.compile(rb"\[:(?P<not>\^?)(?P<posix>[a-z]+):\]|\\.|(?P<end>\])|[\[&~|]|--", re.DOTALL)
_SPELLING: Final = {
    rb"\h": rb"[\t \xa0]", rb"\H": rb"[^\t \xa0]", rb"\s": rb"[\t-\r ]", rb"\S": rb"[^\t-\r ]", rb"\E": b"",
    rb"\v": rb"[\n-\r\x85]", rb"\V": rb"[^\n-\r\x85]", rb"\e": rb"\x1b", rb"\N": rb"[^\n]", b"(?<": b"(?P<",
}  # fmt: skip
_IN_CLASS: Final = {rb"\h": rb"\t \xa0", rb"\s": rb"\t-\r ", rb"\v": rb"\n-\r\x85", rb"\e": rb"\x1b"}
_SHORTHANDS: Final = frozenset({rb"\d", rb"\D", rb"\w", rb"\W", rb"\s", rb"\S", rb"\h", rb"\v"})
_ENDS: Final = {rb"\z": (rb"\z", rb"\Z"), rb"\Z": (rb"\z", rb"(?=\n?\Z)")}
"""How RE2 and how `re` write the end; RE2 has no word for an end before a last line break."""


def translated(pattern: bytes, *, extended: bool) -> tuple[bytes, bytes, bool]:
    """The pattern as RE2 and as `re` write it, and whether it asks where a line or the text ends."""
    names = _NAMED_GROUP.findall(pattern)
    if len(names) > len(set(names)):
        raise re.error("two groups have one name")
    if extended and _REPEATED_OPTION.search(pattern):
        raise re.error("an option is repeated")
    linear: list[bytes] = []
    tracking: list[bytes] = []
    ends = False
    position = 0
    search = (_OUTSIDE_EXTENDED if extended else _OUTSIDE).search
    while match := search(pattern, position):
        for parts, plain in zip(
            (linear, tracking), _plain(pattern[position : match.start()], extended), strict=True
        ):
            parts.append(plain)
        position = match.end()
        token = match[0]
        if match["class"] is not None:
            members, position = _class(pattern, position)
            both = (token.replace(b"]", rb"\]") + members,) * 2
        elif match["comment"] is not None:
            both = (b"",) * 2
        elif match["quoted"] is not None:
            both = (re.escape(match["quoted"]),) * 2
        else:
            _refuse(token, pattern, position, extended=extended)
            ends = ends or token in {b"$", rb"\Z"}
            both = _ENDS.get(token, (_SPELLING.get(token, token),) * 2)
        linear.append(both[0])
        tracking.append(both[1])
    last = _plain(pattern[position:], extended)
    return b"".join((*linear, last[0])), b"".join((*tracking, last[1])), ends


def _refuse(token: bytes, pattern: bytes, position: int, *, extended: bool) -> None:
    if token in _ASSERTIONS and (_SPACED_REPEAT if extended else _REPEAT).match(pattern, position):
        raise re.error("an assertion cannot be repeated")
    if token == rb"\N" and pattern.startswith(b"{", position):
        raise re.error("no character has a name")


def _plain(text: bytes, extended: bool) -> tuple[bytes, bytes]:  # noqa: FBT001 - private
    """What stands between the tokens; an octet beyond ASCII has no other case, whatever RE2 takes it for."""
    if extended:
        if _EMPTY_REPEAT.search(text):
            raise re.error("there is nothing to repeat")  # without the blank it would begin an option
        text = b"".join(text.split())
    linear = re.sub(rb"[\x80-\xff]", lambda octet: b"(?-i:\\x%02x)" % octet[0][0], text)
    return linear, text.replace(b"{,", rb"\{,")


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
            if match[0] in _SHORTHANDS and re.compile(rb"-[^]]").match(pattern, position):
                raise re.error("a range does not start with a class")
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
