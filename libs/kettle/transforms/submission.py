"""A transform on all jobs of a submission: each different one is looked at once, however many they are."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from kettle.classad import conceals, parse, references
from kettle_wire.ads.types import Ad, Expr, Scalar

_encode: Final = msgspec.msgpack.Encoder().encode

Table = tuple[Ad, list[str], list[list[Scalar]]]
"""What the jobs share, and columns and rows of what they do not."""


class TooDifferentError(ValueError):
    """So many jobs differ in what is looked at that looking at all of them would take too much."""


def transformed(
    table: Table, words: Collection[str] | None, change: Callable[[Ad], Ad], *, most: int = 1_000_000
) -> Table:
    """
    The jobs of a submission, each changed by `change`, which looks at no attributes but `words` and what these mention.

    `words`, in lower case; None: it may look at all. At most `most` values are kept while at it: attributes, times jobs that
    differ in what is looked at.

    Raises:
        TooDifferentError: it would be more.
    """
    ad, columns, rows = table
    reached = None if words is None else _reached(ad, columns, rows, set(words))
    kept = 0
    seen = [i for i, name in enumerate(columns) if reached is None or name.lower() in reached]
    others = [i for i in range(len(columns)) if i not in seen]
    known: dict[bytes, int] = {}
    results: list[Ad] = []
    groups: list[int] = []
    for row in rows:
        values = [row[i] for i in seen]
        group = known.setdefault(_encode(values), len(results))
        if group == len(results):
            own = {columns[i]: value for i, value in zip(seen, values, strict=True)}
            results.append(change({**ad, **own}))
            kept += len(results[-1])
            if kept > most:
                raise TooDifferentError(
                    f"the first {len(results)} jobs that differ in what is looked at have {kept} attributes, more than {most}"
                )
        groups.append(group)
    names = list(dict.fromkeys(name for result in results for name in result))
    same = [name for name in names if all(_alike(result, results[0], name) for result in results)]
    differing = [name for name in names if name not in set(same)]
    absent = Expr("undefined")
    parts = [[result.get(name, absent) for name in differing] for result in results]
    return (
        {name: results[0][name] for name in same},
        [*differing, *(columns[i] for i in others)],
        [parts[group] + [row[i] for i in others] for group, row in zip(groups, rows, strict=True)],
    )


def _alike(one: Mapping[str, Scalar], other: Mapping[str, Scalar], name: str) -> bool:
    return name in one and name in other and _encode(one[name]) == _encode(other[name])


def _reached(ad: Ad, columns: list[str], rows: list[list[Scalar]], words: set[str]) -> set[str] | None:
    """
    The words, and all that expressions which they name mention; None: one of these may look at anything.
    """
    texts: dict[str, set[str]] = {
        name.lower(): {value.expr} for name, value in ad.items() if isinstance(value, Expr)
    }
    for i, name in enumerate(columns):
        texts[name.lower()] = {value.expr for row in rows if isinstance(value := row[i], Expr)}
    pending = list(words)
    while pending:
        for text in texts.get(pending.pop(), ()):
            expression = parse(text)
            if conceals(expression):
                return None
            names = {name.lower() for name in references(expression).external}
            pending.extend(names - words)
            words |= names
    return words
