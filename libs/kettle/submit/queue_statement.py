"""`queue [count] [variables] [in|from|matching ...]`: which items there are, and how often each is queued."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from glob import iglob
from pathlib import Path
from typing import Final

import msgspec

from kettle.classad import ClassAdError, parse
from kettle.jobs.lines import lines_of
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import constant
from kettle.submit.includes import NO_PROGRAMS, printed, read_bounded
from kettle.submit.item_tables import LINES, ItemTable, headed, table_of

_KEYWORD: Final = re.compile(r"(?:^|(?<=\s))(in|from|matching)(?=[\s(\[]|$)\s*", re.IGNORECASE)
_HEAD: Final = re.compile(
    r"(?P<count>[^A-Za-z_]*?)\s*(?P<names>[A-Za-z_][A-Za-z0-9_.]*(?:[\s,]+[A-Za-z_][A-Za-z0-9_.]*)*)?\s*"
)
_SLICE: Final = re.compile(r"\[\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*(?::\s*(\d+)?\s*)?)?\]\s*")
_KIND: Final = re.compile(r"(files|dirs|any)\b\s*", re.IGNORECASE)
_SEPARATOR: Final = re.compile(r"\s*,\s*|\s+")
_NOT_TEXT: Final = re.compile(r"[\0\ud800-\udfff]")

MOST_JOBS: Final = 1_000_000
"""
In one description: every job takes some memory here before the pool is asked whether it takes that many.
"""
_TOO_MANY: Final = f"cannot queue {{}} jobs at once, at most {MOST_JOBS}"

More = Callable[[], str | None]


class QueueItem(msgspec.Struct, frozen=True):
    """One item: its place in the whole list, and one value per variable."""

    index: int
    values: tuple[str, ...]


class Iteration(msgspec.Struct, frozen=True):
    """The items of a queue statement, each queued `count` times."""

    count: int
    variables: tuple[str, ...]
    rows: tuple[QueueItem, ...]
    inline: bool = True
    """The items stand in the description itself."""
    empty: str = ""
    """Why there is no item, as a sentence."""
    warnings: tuple[str, ...] = ()


def read_iteration(
    text: str, *, cwd: Path, more: More, environ: Mapping[str, str] | None = None, programs: bool = True
) -> Iteration:
    """
    What follows the word `queue`, macros expanded; `more` gives further lines, `environ` is that of commands that print
    items, if `programs` may be run.  Raises PlacelessError.
    """
    keyword = _KEYWORD.search(text)
    if keyword is None:
        return Iteration(_count(text), (), (QueueItem(0, ()),), empty="the queue statement makes no job")
    head = _HEAD.fullmatch(text[: keyword.start()].strip())
    if head is None:
        raise PlacelessError(f"'{text[: keyword.start()].strip()}' is not a count and names of variables")
    names = tuple(_SEPARATOR.split(head["names"].strip())) if head["names"] else ("Item",)
    count = _count(head["count"] or "")
    how = keyword[1].lower()
    rest = text[keyword.end() :]
    kind = ""
    table = LINES
    if how == "from":
        table, rest = table_of(rest)
    if how == "matching" and (found := _KIND.match(rest)):
        kind, rest = found[1].lower(), rest[found.end() :]
    cut = _SLICE.match(rest)
    rest = rest[cut.end() :] if cut else rest
    if how == "matching" and not kind and (found := _KIND.match(rest)):
        kind, rest = found[1].lower(), rest[found.end() :]
    warnings: list[str] = []
    match how:
        case "in":
            items, inline = _listed(rest, more), True
        case "from":
            items, inline = _from(rest.strip(), cwd, more, environ, programs=programs)
            own, items = headed(table, items)
            names = own or names
        case _:
            items, inline = _matching(rest, cwd, kind or "any", warnings), True
    if len(items) > MOST_JOBS:
        raise PlacelessError(_TOO_MANY.format(len(items)))
    rows = list(_rows(items, len(names), table if how == "from" else None))[_slice(cut)]
    if count * len(rows) > MOST_JOBS:
        raise PlacelessError(_TOO_MANY.format(count * len(rows)))
    empty = "" if rows else _nothing(how, rest.strip(), sliced=bool(items))
    return Iteration(count, names, tuple(rows), inline, empty, tuple(warnings))


def _rows(items: list[str], wanted: int, table: ItemTable | None) -> Iterator[QueueItem]:
    """
    The values of each item.  A line that says nothing leaves the variables as they were at the line before it.
    """
    last = ("",) * wanted
    for index, item in enumerate(items):
        values = [item] if table is None else table.split(item, wanted)
        last = tuple([*values, *[""] * wanted][:wanted]) if values else last
        yield QueueItem(index, last)


def _nothing(how: str, rest: str, *, sliced: bool) -> str:
    if sliced:
        return "the queue statement has no items: the slice leaves none of the list"
    match how:
        case "matching":
            return f"the queue statement has no items: nothing matches {rest}"
        case "from" if not rest.startswith("("):
            return f"the queue statement has no items: {rest} is empty"
        case _:
            return "the queue statement has no items: the list is empty"


def _count(text: str) -> int:
    text = text.strip()
    if not text:
        return 1
    try:
        value = constant(parse(text))
    except ClassAdError as error:
        raise PlacelessError(
            f"'{text}' is not a number of jobs; to queue one job per item write: queue NAME in (A B C)"
        ) from error
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlacelessError(
            f"'{text}' is not a number of jobs; to queue one job per item write: queue NAME in (A B C)"
        )
    if value < 0:
        raise PlacelessError(f"cannot queue {value} jobs")
    if value > MOST_JOBS:
        raise PlacelessError(_TOO_MANY.format(value))
    return value


def _listed(rest: str, more: More) -> list[str]:
    rest = rest.strip()
    if rest.startswith("("):
        while ")" not in rest:
            line = more()
            if line is None:
                raise PlacelessError("the list of items is never closed: expected )")
            rest += "\n" + ("" if line.strip().startswith("#") else line)
        rest = rest[1 : rest.index(")")]
    return [item for item in re.split(r"[\s,]+", rest) if item]


def _from(
    rest: str, cwd: Path, more: More, environ: Mapping[str, str] | None, *, programs: bool
) -> tuple[list[str], bool]:
    if rest.startswith("("):
        return list(_inline(rest[1:].strip(), more)), True
    if rest.endswith("|"):
        command = rest[:-1].strip()
        if not programs:
            raise PlacelessError(NO_PROGRAMS.format(command))
        text = printed(command, cwd=cwd, environ=os.environ if environ is None else environ)
        return _lines(rest, text), False
    if not rest:
        raise PlacelessError("queue ... from needs the name of a file, or items in parentheses")
    try:
        text = read_bounded(cwd / rest)
    except OSError as error:
        raise PlacelessError(f"cannot read the items from {rest}: {error.strerror}") from error
    return _lines(rest, text), False


def _lines(source: str, text: str) -> list[str]:
    if _NOT_TEXT.search(text):
        raise PlacelessError(
            f"cannot read the items from {source}: it is not text in UTF-8, or has a NUL in it"
        )
    return lines_of(text)


def _inline(first: str, more: More) -> Iterator[str]:
    if first.endswith(")"):
        first = first[:-1].strip()
        yield from [first] if first else []
        return
    if first:
        yield first
    while (line := more()) is not None:
        line = line.strip()
        if line.startswith(")"):
            return
        if not line.startswith("#"):
            yield line
    raise PlacelessError("the list of items is never closed: expected a line that begins with )")


def _matching(rest: str, cwd: Path, kind: str, warnings: list[str]) -> list[str]:
    """Names that match; those of directories end with a slash."""
    rest = rest.strip().removeprefix("(").removesuffix(")")
    found: dict[str, int] = {}
    for pattern in re.split(r"[\s,]+", rest):
        for name in sorted(iglob(pattern, root_dir=cwd)) if pattern else ():  # noqa: PTH207 - it may be absolute
            directory = os.path.isdir(cwd / name)  # noqa: PTH112 - pathlib's raises where we may not look
            if kind != "any" and directory != (kind == "dirs"):
                continue
            item = f"{name.rstrip('/')}/" if directory else name
            if item in found:
                warnings.append(
                    f"'{item}' matching pattern '{pattern}' is a duplicate of item {found[item]}, skipping"
                )
            found.setdefault(item, len(found))
    return list(found)


def _slice(cut: re.Match[str] | None) -> slice:
    if cut is None:
        return slice(None)
    start, stop, step = (int(part) if part else None for part in cut.groups())
    if step == 0:
        raise PlacelessError("the step of a slice is a positive number")
    return slice(start, stop, step)
