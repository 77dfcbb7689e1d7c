"""A submit description taken apart into assignments and its first queue statement, nothing put in."""

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kettle.jobs.lines import joined, lines_of
from kettle.submit.conditions import Conditions
from kettle.submit.errors import PlacelessError
from kettle.submit.includes import MOST_NESTED, included
from kettle.submit.macros import Expander, substitute_self

_ASSIGNMENT: Final = re.compile(r"(\+?[A-Za-z0-9_.]+)\s*=(?!=)\s*(.*)", re.DOTALL)
_QUEUE: Final = re.compile(r"queue(?:\s+|(?=\()|$)(.*)", re.IGNORECASE | re.DOTALL)
_TAGGED: Final = re.compile(r"(\+?[A-Za-z0-9_.]+)\s*@=\s*(\S+)\s*")
_INCLUDE: Final = re.compile(r"@?include\b\s*([^:=]*?)\s*:\s*(.*)", re.IGNORECASE)
_CONDITIONAL: Final = re.compile(r"(if|elif|else|endif)(?:\s+(.*)|\s*)", re.IGNORECASE)
_ITEMS: Final = re.compile(
    r"\s*(\d*)\s*((?:[A-Za-z_][A-Za-z0-9_.]*[\s,]*)*?)\s*(?:\b(?:in|from|matching)\b.*)?",
    re.IGNORECASE | re.DOTALL,
)


class Read(NamedTuple):
    """What a description says."""

    assignments: dict[str, str]
    queue: str
    more: tuple[str, ...]
    """Further lines of the queue statement: its items."""


class ItemNames(NamedTuple):
    """A queue statement without its items."""

    times: int
    variables: tuple[str, ...]


def read(text: str) -> Read:
    """
    The assignments up to the first queue statement, and that.

    Raises:
        ValueError: a line is neither.
    """
    lines = _Lines(text)
    assignments: dict[str, str] = {}
    conditions = Conditions()
    for line in _logical(lines):
        if conditional := _CONDITIONAL.fullmatch(line):
            try:
                conditions.read(
                    conditional[1].lower(), conditional[2] or "", 0, lambda: _expander(assignments)
                )
            except PlacelessError as error:
                raise ValueError(f"'{line}': {error}") from error
        elif not conditions.active:
            continue
        elif tagged := _TAGGED.fullmatch(line):
            assignments[tagged[1]] = "\n".join(_until(f"@{tagged[2]}", lines))
        elif include := _INCLUDE.fullmatch(line):
            _include(include[1], include[2], lines, assignments)
        elif queue := _QUEUE.fullmatch(line):
            return Read(assignments, queue[1].strip(), tuple(_items(queue[1], lines)))
        elif assignment := _ASSIGNMENT.fullmatch(line):
            name = assignment[1]
            known = next((text for key, text in assignments.items() if key.lower() == name.lower()), "")
            assignments[name] = substitute_self(name, assignment[2].strip(), known)
        else:
            raise ValueError(f"'{line}' is neither NAME = VALUE nor a queue statement")
    return Read(assignments, "", ())


def _until(end: str, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.strip() == end:
            return
        yield line
    raise ValueError(f"a value has no end: expected a line {end}")


def _include(how: str, what: str, lines: "_Lines", assignments: dict[str, str]) -> None:
    try:
        said = _expander(assignments).expand(what).strip()
        for _, text in included(how.strip(), said, cwd=Path.cwd(), environ=os.environ):
            lines.include(text)
    except PlacelessError as error:
        raise ValueError(f"include : {what}: {error}") from error


class _Lines(Iterator[str]):
    """The lines of a description, and of what it includes."""

    def __init__(self, text: str) -> None:
        self._open = [iter(lines_of(text))]

    def include(self, text: str) -> None:
        """Go on with this text; raises PlacelessError for one that includes itself."""
        if len(self._open) > MOST_NESTED:
            raise PlacelessError(f"more than {MOST_NESTED} sources include each other")
        self._open.append(iter(lines_of(text)))

    def __next__(self) -> str:
        while self._open:
            if (line := next(self._open[-1], None)) is not None:
                return line
            self._open.pop()
        raise StopIteration


def item_names(queue: str) -> ItemNames | None:
    """How often, and for which variables, a queue statement queues; None if that is not plain to see."""
    found = _ITEMS.fullmatch(queue)
    if found is None:
        return None
    return ItemNames(int(found[1] or 1), tuple(re.findall(r"[A-Za-z_][A-Za-z0-9_.]*", found[2])))


def _items(queue: str, lines: Iterator[str]) -> Iterator[str]:
    """The lines of a list that stands in the description."""
    if "(" not in queue or ")" in queue[queue.index("(") :]:
        return
    for line in lines:
        yield line
        if ")" in line if not re.search(r"\bfrom\b", queue, re.IGNORECASE) else line.strip().startswith(")"):
            return


def _logical(lines: Iterator[str]) -> Iterator[str]:
    """Lines that say something, continuations joined."""
    for physical in lines:
        text = physical.strip()
        if not text or text.startswith("#"):
            continue
        yield joined(text, lambda: next(lines, None))


def _expander(assignments: dict[str, str]) -> Expander:
    table = {name.lower(): text for name, text in assignments.items()}
    return Expander(table, os.environ, entropy=random.SystemRandom())
