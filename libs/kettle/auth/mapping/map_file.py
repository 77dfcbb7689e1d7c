"""
HTCondor's unified map file: lines `METHOD pattern user`, of which the first counts whose pattern matches a credential.

The reader is HTCondor's in what a line means, and stricter in what is a line: what HTCondor skips with a message in its log
is refused here, with file and line, so that nobody is let in or shut out by a line that was never read.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle.auth.mapping.findings import Because, Finding, Place
from kettle.auth.mapping.names import missing_group
from kettle.auth.mapping.patterns import Pattern, PatternError

METHODS: Final = (
    "SCITOKENS", "IDTOKENS", "SSL", "FS", "FS_REMOTE", "KERBEROS", "MUNGE", "PASSWORD", "CLAIMTOBE", "ANONYMOUS",
)  # fmt: skip
"""Ways to show who one is; lines of others are legal and never looked at."""

_BLANK: Final = " \t"
_INCLUDE: Final = re.compile(rf"@include(?=[{_BLANK}]|$)")
_SHADOWED_MOST: Final = 300
"""Expressions of a method up to which each is compared with each: more are a list that a program has written."""

Include = Callable[[str, str], Sequence[tuple[str, str]]]
"""The files, with their texts, that `@include NAME` in a file means; raises OSError if they cannot be read."""


class MapLine(msgspec.Struct, frozen=True):
    """One line: the holder of a credential of the method that matches is `user`."""

    place: Place
    method: str
    pattern: Pattern
    user: str
    """The name, in which `\\1` is the first group of the pattern."""

    def __str__(self) -> str:
        return f"{self.method} {self.pattern} {self.user}"

    def because(self, groups: Sequence[str]) -> Because:
        """The line as a reason."""
        return Because(self.place, str(self), tuple(groups[1:]))


class MapFile:
    """The lines of a file and of those that it includes, in their order."""

    def __init__(self, lines: Sequence[MapLine] = ()) -> None:
        self.lines: Final = tuple(lines)
        self._methods: dict[str, list[dict[str, MapLine] | MapLine]] = {}
        for line in self.lines:
            steps = self._methods.setdefault(line.method, [])
            if line.pattern.is_expression:
                steps.append(line)
                continue
            # literal lines in a row are one table: a site may have a line for each of its users
            if not steps or isinstance(steps[-1], MapLine):
                steps.append({})
            table = steps[-1]
            assert isinstance(table, dict)
            table.setdefault(line.pattern.text, line)

    def find(self, method: str, text: str) -> tuple[MapLine, tuple[str, ...]] | None:
        """The first line that matches, with the whole match and the groups."""
        for step in self._methods.get(method.upper(), ()):
            if isinstance(step, MapLine):
                if (groups := step.pattern.match(text)) is not None:
                    return step, groups
            elif (line := step.get(text)) is not None:
                return line, (text,)
        return None


class _LineError(ValueError):
    """A line cannot be used."""


def read(file: str, text: str, include: Include) -> tuple[MapFile, list[Finding]]:
    """What a file says, and what is wrong with it; it is to be used only if nothing is refused."""
    reader = _Reader(include)
    reader.read(file, text, nested=False)
    return MapFile(reader.lines), [*reader.findings, *_shadowed(reader.lines)]


class _Reader:
    def __init__(self, include: Include) -> None:
        self.lines: list[MapLine] = []
        self.findings: list[Finding] = []
        self._include = include

    def read(self, file: str, text: str, *, nested: bool) -> None:
        for number, raw in enumerate(text.split("\n"), 1):
            place = Place(file, number)
            line = raw.removesuffix("\r").strip(_BLANK)
            if not line or line.startswith("#"):
                continue
            try:
                if _INCLUDE.match(line):
                    self._read_included(place, line, nested=nested)
                else:
                    self._read_line(place, line)
            except (_LineError, PatternError) as error:
                self.findings.append(Finding(place, f"{error}."))

    def _read_included(self, place: Place, line: str, *, nested: bool) -> None:
        fields = list(_fields(line, slashes_at=-1))
        if len(fields) != 2:
            raise _LineError("@include takes the name of one file or directory")
        if nested:
            raise _LineError("a file that was included cannot include others")
        try:
            found = self._include(place.file, fields[1].text)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error.reason
            raise _LineError(f"{fields[1].text} cannot be included: {why}") from error
        for file, text in found:
            self.read(file, text, nested=True)

    def _read_line(self, place: Place, line: str) -> None:
        fields = list(_fields(line, slashes_at=1))
        if len(fields) > 3 and not fields[3].text.startswith("#"):
            self.findings.append(
                Finding(place, f"what follows '{fields[2].text}' is not looked at", warning=True)
            )
        if len(fields) < 3:
            raise _LineError("a line has a method, a pattern and a user; quote what has blanks in it")
        method, pattern, user = fields[0].text.upper(), fields[1], fields[2].text
        made = Pattern(pattern.text, pattern.flags)
        if why := missing_group(user, made.groups):
            raise _LineError(why)
        if method not in METHODS:
            self.findings.append(
                Finding(place, f"there are no credentials of the method {method}", warning=True)
            )
        self.findings += [Finding(place, each, warning=True) for each in made.warnings()]
        self.lines.append(MapLine(place, method, made, user))


class _Field(msgspec.Struct, frozen=True):
    text: str
    flags: str | None = None
    """Of an expression in slashes."""


def _fields(line: str, slashes_at: int) -> Iterator[_Field]:
    """The words of a line; the one with the number `slashes_at` may be an expression. Raises _LineError."""
    at = number = 0
    while at < len(line):
        if line[at] in _BLANK:
            at += 1
            continue
        ends = line[at] if line[at] == '"' or (line[at] == "/" and number == slashes_at) else ""
        if not ends:
            begin = at
            while at < len(line) and line[at] not in _BLANK:
                at += 1
            yield _Field(line[begin:at])
        else:
            text, at = _quoted(line, at)
            begin = at
            while at < len(line) and line[at] not in _BLANK:
                at += 1
            yield _Field(text, _flags(line[begin:at], ends))
        number += 1


def _flags(text: str, ends: str) -> str | None:
    if ends == "/" and not text.strip("iU"):
        return text
    if not text:
        return None
    known = "; i and U are known" if ends == "/" else ""
    raise _LineError(f"'{text}' follows the closing {ends}{known}")


def _quoted(line: str, at: int) -> tuple[str, int]:
    """What is between the character at a place and its next, and the place behind it. Raises _LineError."""
    ends, found = line[at], list[str]()
    end = line.find(ends, at + 1)
    if end != -1 and "\\" not in line[at:end]:
        return line[at + 1 : end], end + 1
    begin, at = at, at + 1
    while at < len(line):
        if line[at] == ends:
            return "".join(found), at + 1
        if line[at] == "\\" and at + 1 < len(line):
            at += 1
            if line[at] not in {ends, "\\"}:
                found.append("\\")
        found.append(line[at])
        at += 1
    hint = "; a text that begins with a / has to be in quotes" if ends == "/" else ""
    raise _LineError(f"nothing closes the {ends} in column {begin + 1}{hint}")


def _shadowed(lines: Sequence[MapLine]) -> Iterator[Finding]:
    """Lines that never count, because one before them matches all that they match."""
    literal: dict[tuple[str, str], MapLine] = {}
    expressions: dict[str, list[MapLine]] = {}
    for line in lines:
        known: Mapping[tuple[str, str], MapLine] = literal
        before = expressions.setdefault(line.method, [])
        first = None if line.pattern.is_expression else known.get((line.method, line.pattern.text))
        first = first or next(
            (each for each in before[:_SHADOWED_MOST] if each.pattern.covers(line.pattern)), None
        )
        if first is not None:
            yield Finding(line.place, f"never counts: {first.place} ({first}) comes first", warning=True)
        elif line.pattern.is_expression:
            before.append(line)
        else:
            literal[line.method, line.pattern.text] = line
