"""A submit description taken apart into assignments and its first queue statement, nothing put in."""

import os
import random
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kettle.submit.conditions import Conditions
from kettle.submit.errors import PlacelessError
from kettle.submit.macros import Expander

_ASSIGNMENT: Final = re.compile(r"(\+?[A-Za-z0-9_.]+)\s*=(?!=)\s*(.*)", re.DOTALL)
_QUEUE: Final = re.compile(r"queue(?:\s+|(?=\()|$)(.*)", re.IGNORECASE | re.DOTALL)
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
    lines = iter(text.splitlines())
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
        elif queue := _QUEUE.fullmatch(line):
            return Read(assignments, queue[1].strip(), tuple(_items(queue[1], lines)))
        elif assignment := _ASSIGNMENT.fullmatch(line):
            assignments[assignment[1]] = assignment[2].strip()
        else:
            raise ValueError(f"'{line}' is neither NAME = VALUE nor a queue statement")
    return Read(assignments, "", ())


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
        while text.endswith("\\"):
            text = text[:-1] + next(lines, "").strip()
        yield text


def _expander(assignments: dict[str, str]) -> Expander:
    table = {name.lower(): text for name, text in assignments.items()}
    return Expander(table, os.environ, entropy=random.SystemRandom())
