"""From text to statements: everything that can be known without an ad is checked here."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final

from kettle.classad import ClassAdParseError
from kettle.classad import parse as parse_expression
from kettle.jobs.lines import joined, lines_of
from kettle.submit.errors import PlacelessError
from kettle.transforms.statements import PATTERNED, Statement
from kettle.transforms.transform import Transform
from kettle_wire.codes import Universe

_ASSIGNMENT: Final = re.compile(r"([A-Za-z0-9_.]+)\s*=(?!=)\s*(.*)", re.DOTALL)
_TAGGED: Final = re.compile(r"([A-Za-z0-9_.]+)(?:\s+([A-Za-z0-9_.]+))?\s*@=\s*(\S+)\s*")
_KEYWORD: Final = re.compile(r"([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)\s*[=,]?\s*(.*)", re.DOTALL)
_PAIR: Final = re.compile(r"(/(?:[^/\\]|\\.)*/i?|[^\s,=]+)(?:\s*[=,]?\s*(\S+))?\s*")
_CONDITIONAL: Final = frozenset({"if", "elif", "else", "endif"})
_EXPRESSIONS: Final = frozenset({"set", "evalset", "default"})


class TransformError(ValueError):
    """A transform that makes no sense: where, and one sentence, which is that of its first mistake."""

    def __init__(self, *mistakes: str) -> None:
        """Each with its place, the first one first."""
        super().__init__(mistakes[0])
        self.mistakes: Final = mistakes


def parse(
    text: str, *, source: str, protected: Iterable[str] = (), lines: Sequence[int] | None = None
) -> Transform:
    """
    Read a transform. `source` is how errors call it; it may not touch the attributes in `protected`.

    `lines` are the numbers of the text's lines in a file that has it among others.

    Raises:
        TransformError: lines make no sense.
    """
    guarded = frozenset(name.lower() for name in protected)
    statements: list[Statement] = []
    depth: list[int] = []
    mistakes: list[str] = []
    for line, found in _statements(text, lines or count(1)):
        try:
            statements.append(_understood(found, line, guarded, depth))
        except PlacelessError as error:
            mistakes.append(f"{source}, line {line}: {error}")
    if depth:
        mistakes.append(f"{source}, line {depth[-1]}: this if has no endif")
    if mistakes:
        raise TransformError(*mistakes)
    requirements = tuple(each.text for each in statements if each.word == "requirements")
    return Transform(source, tuple(statements), guarded, requirements)


def _understood(
    found: tuple[str, str] | str, line: int, guarded: frozenset[str], depth: list[int]
) -> Statement:
    """The statement; `depth` has the lines of the conditions that it is within."""
    if isinstance(found, str):
        raise PlacelessError(found)
    word, rest = found
    if word in _CONDITIONAL - {"if"} and not depth:
        raise PlacelessError(f"{word} without an if before it")
    if word == "if":
        depth.append(line)
    elif word == "endif":
        depth.pop()
    statement = _statement(word, rest, line)
    _guard(statement, guarded)
    return statement


def _statements(text: str, numbers: Iterable[int]) -> Iterator[tuple[int, tuple[str, str] | str]]:
    """
    Each statement as keyword and rest, with its line, or why it is none; an assignment has the keyword `=`.
    """
    lines = zip(numbers, lines_of(text), strict=False)
    for line, raw in lines:
        said = raw.strip()
        if not said or said.startswith("#"):
            continue
        said = joined(said, lambda: next(lines, (0, ""))[1])
        if tagged := _TAGGED.fullmatch(said):
            body = _until(f"@{tagged[3]}", lines)
            if body is None:
                yield line, f"the value has no end: expected a line @{tagged[3]}"
                return
            yield (
                line,
                (tagged[1].lower(), f"{tagged[2]} {body}") if tagged[2] else ("=", f"{tagged[1]}={body}"),
            )
        elif _ASSIGNMENT.fullmatch(said):
            yield line, ("=", said)
        elif keyword := _KEYWORD.fullmatch(said):
            yield line, (keyword[1].lower(), (keyword[2] or "").strip())
        else:
            yield line, f"'{said[:60]}' is no statement of a transform"


def _until(end: str, lines: Iterator[tuple[int, str]]) -> str | None:
    body: list[str] = []
    for _, raw in lines:
        if raw.strip() == end:
            return "\n".join(body)
        body.append(raw)
    return None


def _statement(word: str, rest: str, line: int) -> Statement:
    match word:
        case "=":
            name, _, text = rest.partition("=")
            return Statement(line, "=", name.strip(), text.strip())
        case "name":
            return Statement(line, word, "", rest)
        case "requirements":
            _check(rest)
            return Statement(line, word, "", rest)
        case "set" | "evalset" | "default" | "evalmacro":
            return _valued(word, rest, line)
        case "copy" | "rename" | "delete":
            return _named(word, rest, line)
        case _ if word in _CONDITIONAL:
            return Statement(line, word, "", rest)
        case "universe" | "transform" | "include":
            return _noted(word, rest, line)
        case _:
            raise PlacelessError(f"there is no statement {word.upper()}")


def _noted(word: str, rest: str, line: int) -> Statement:
    """What changes no ad, as in HTCondor: for which universe a transform is meant, and that it ends."""
    known = {each.name.lower() for each in Universe} | {str(int(each)) for each in Universe}
    if word == "universe" and rest.lower() not in known | {"docker", "container"}:
        raise PlacelessError(f"there is no universe '{rest}'")
    if word == "transform" and rest not in {"", "1"}:
        raise PlacelessError("a transform of the queue makes one ad of each: write TRANSFORM alone")
    if word == "include":
        raise PlacelessError("INCLUDE has no place in a transform of the queue")
    return Statement(line, word, "", rest)


def _valued(word: str, rest: str, line: int) -> Statement:
    found = _VALUED.fullmatch(rest)
    if found is None or not found[2].strip():
        raise PlacelessError(f"{word.upper()} takes a name and an expression")
    if word in _EXPRESSIONS and not _ATTRIBUTE.fullmatch(found[1]):
        raise PlacelessError(f"'{found[1]}' is not the name of an attribute")
    _check(found[2])
    return Statement(line, word, found[1], found[2].strip())


def _check(text: str) -> None:
    """An expression without macros either can be read or never can."""
    if "$(" in text or re.search(r"\$[A-Z_]+\(", text):
        return
    try:
        parse_expression(text)
    except ClassAdParseError as error:
        raise PlacelessError(f"'{text}' is not an expression: {error.sentence}") from error


def _named(word: str, rest: str, line: int) -> Statement:
    found = _PAIR.fullmatch(rest)
    if found is None or bool(found[2]) != (word != "delete"):
        many = "a name" if word == "delete" else "two names"
        raise PlacelessError(
            f"{word.upper()} takes {many}, the first of which may be a pattern between slashes"
        )
    old, new = found[1], found[2] or ""
    if old.startswith("/"):
        try:
            re.compile(old.removesuffix("i")[1:-1])
        except re.error as error:
            raise PlacelessError(f"'{old}' is no regular expression: {error}") from error
        return Statement(line, PATTERNED[word], old.removesuffix("i")[1:-1], new)
    for name in (old, new) if new else (old,):
        if not _ATTRIBUTE.fullmatch(name):
            raise PlacelessError(f"'{name}' is not the name of an attribute")
    return Statement(line, word, old, new)


def _guard(statement: Statement, guarded: frozenset[str]) -> None:
    for name in statement.changes:
        if name.lower() in guarded:
            raise PlacelessError(
                f"the attribute {name} says whose the job is, or which: no transform may change it"
            )
