"""
What changes on a machine by itself, and the conditions between which expressions can tell: an owner leaves the keyboard, the
load goes down, the evening comes.
"""

from __future__ import annotations

import math
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.classad import EvaluationFailed, Node, evaluate, references
from kettle.classad.nodes import Binary
from kettle.classad.reference_analysis import depends_on_time, nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

CHANGING: Final[Mapping[str, float]] = {
    "clockday": 6, "clockmin": 24 * 60 - 1, "condorloadavg": math.inf, "consoleidle": math.inf, "keyboardidle": math.inf,
    "loadavg": math.inf, "totalcondorloadavg": math.inf, "totalloadavg": math.inf,
}  # fmt: skip
"""Attributes of slots, in lower case, and the largest value of each; the smallest is 0."""
_LARGE: Final = 2.0**31 - 1
_REAL: Final = 100
_MOST: Final = 512
"""So many combinations are looked at."""
_HOURS: Final = 24
_COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!=", "=?=", "=!=", "is", "isnt"})


class MachineCondition(msgspec.Struct, frozen=True):
    """Values of some attributes, and how many seconds from now."""

    values: dict[str, float]
    delay: int = 0


def conditions(expressions: Iterable[Node]) -> Iterator[MachineCondition]:
    """
    All combinations of values that the expressions can tell apart: the constants with which they compare what changes by
    itself, and one value between each two of these.
    """
    told: dict[str, set[float]] = {}
    timed = False
    for expression in expressions:
        timed = timed or depends_on_time(expression)
        for name, constants in _thresholds(expression):
            told.setdefault(name, set()).update(constants)
    names = sorted(told)
    delays = range(0, 3600 * _HOURS, 3600) if timed else (0,)
    choices = (_representative(told[name], CHANGING[name]) for name in names)
    for *values, delay in islice(product(*choices, delays), _MOST):
        yield MachineCondition(dict(zip(names, values, strict=True)), int(delay))


def _representative(constants: set[float], largest: float) -> list[float]:
    """The constants, the ends, and the middle of each two neighbours; of large ones a whole number."""
    ends = {0.0, min(_LARGE, largest)}
    edges = sorted(ends | {one for one in constants if 0 <= one <= largest})
    middles = ((low + high) / 2 for low, high in pairwise(edges))
    return sorted({*edges, *(float(int(one)) if one > _REAL else one for one in middles)})


def _thresholds(expression: Node) -> Iterator[tuple[str, set[float]]]:
    for node in nodes(expression):
        names = _changing(node)
        for name in names:
            yield name, set()
        if not isinstance(node, Binary) or node.op.lower() not in _COMPARISONS:
            continue
        for asked, other in ((node.left, node.right), (node.right, node.left)):
            constant = None if references(other).external else _number(other)
            if constant is not None:
                yield from ((name, {constant}) for name in _changing(asked))


def _changing(node: Node) -> set[str]:
    found = {name.lower().removeprefix("target.") for name in references(node).external}
    return found & CHANGING.keys()


def _number(node: Node) -> float | None:
    try:
        value = evaluate(node)
    except EvaluationFailed:
        return None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
