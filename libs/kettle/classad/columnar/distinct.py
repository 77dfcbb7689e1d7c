"""
Expressions without a kernel: evaluated by a closure, once for each distinct combination of what they depend on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle.classad.columnar.column import Classes, Column, Tag, classify, combine
from kettle.classad.columnar.dependencies import Everything, dependencies
from kettle.classad.columnar.vector import Exhausted, Overrun, Partition, Unknown, Vector, of_value
from kettle.classad.errors import EvaluationFailed, StepsExceeded
from kettle.classad.evaluator import evaluate_within
from kettle.classad.nodes import Node
from kettle.classad.values import UNDEFINED, Exceptional, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from kettle.classad.ad import ClassAd
    from kettle.classad.columnar.column import Integers
    from kettle.classad.columnar.frame import Frame

Outcome: TypeAlias = "Value | EvaluationFailed"
Check: TypeAlias = "Callable[[Outcome, int], None]"

_TAGS: Final[Mapping[type, int]] = {bool: Tag.BOOLEAN, int: Tag.INTEGER, float: Tag.REAL}
_DTYPES: Final = {Tag.BOOLEAN: np.bool_, Tag.INTEGER: np.int64, Tag.REAL: np.float64}


_ROW: Final = 10
_ATTRIBUTE: Final = 4
"""Steps that putting an ad of a row together costs, and each of its attributes."""


def too_long() -> EvaluationFailed:
    """Why there is no value in the rows that are left."""
    return StepsExceeded("the expression takes too long for so many ads")


class Outcomes(msgspec.Struct, frozen=True):
    """The value, or the failure, of each class of rows, and the class of each row."""

    values: list[Outcome]
    of: Integers


def outcomes(
    expression: Node, frame: Frame, attribute: str | None = None, *, check: Check | None = None
) -> Outcomes:
    """
    What the closure of an expression, or of an attribute of the frame's side, gives in every row.

    `check` sees each value, with the number of classes, and raises what ends the matter.
    """
    frame.shared.own = True  # what the closures look at is not recorded
    if not frame.count:
        return Outcomes([], np.zeros(0, np.int64))
    keys: frozenset[str] | None
    try:
        keys = dependencies(expression, frame)
        classes = _classes(frame, sorted(keys))
    except Everything:
        keys = None
        everyone = np.arange(frame.count)
        classes = Classes(everyone, everyone)
    positions = classes.examples.tolist()
    return Outcomes(list(_each(expression, frame, positions, keys, attribute, check)), classes.of)


def _each(
    expression: Node,
    frame: Frame,
    positions: list[int],
    keys: frozenset[str] | None,
    attribute: str | None,
    check: Check | None,
) -> Iterator[Outcome]:
    """
    The closure in each of some rows; they start with the same steps, and the longest way is what counts.
    """
    shared = frame.shared
    spending = shared.spending
    begun = longest = shared.steps
    for position in positions:
        value: Outcome
        if not shared.exhausted:
            value, steps = _outcome(expression, frame, position, keys, attribute)
            spending.steps += steps - begun
            longest = max(longest, steps)
        elif check is None:
            value = too_long()
        else:
            raise Exhausted
        if check is not None:
            check(value, len(positions))
        yield value
    shared.steps = longest


def _classes(frame: Frame, keys: list[str]) -> Classes:
    """The frame's rows by what they have under these keys; examples are positions."""
    found: Classes | None = None
    for key in keys:
        classes = _classes_of(frame, key)
        found = classes if found is None else combine(found, classes)
    if found is None:
        return Classes(np.zeros(frame.count, np.int64), np.zeros(1, np.int64))
    return found


def _classes_of(frame: Frame, key: str) -> Classes:
    shared, rows = frame.shared, frame.rows
    overlaid = shared.overlay.get(key)
    if overlaid is not None and not isinstance(overlaid, Column):
        return classify(overlaid if rows is None else overlaid[rows])
    classes = (shared.table.columns[key] if overlaid is None else overlaid).classes(shared.count)
    return classes if rows is None else classify(classes.of[rows])


def _outcome(
    expression: Node, frame: Frame, position: int, keys: frozenset[str] | None, attribute: str | None
) -> tuple[Outcome, int]:
    """
    The closure in one row, on the way through the attributes that are being evaluated; with the steps so far.
    """
    shared = frame.shared
    row = position if frame.rows is None else int(frame.rows[position])
    there = _ad(frame, row, keys)
    shared.spending.steps += _ROW + _ATTRIBUTE * len(there)
    my, target = (there, shared.ad) if frame.mine else (shared.ad, there)
    assert my is not None, "a frame of the ad's side has an ad"
    path = [(there if mine else shared.ad, key) for mine, key in shared.path]
    depth = shared.depth
    exact = attribute is not None or not depth  # within a kernel, depth is the most that may have been used
    if attribute is not None:
        stored = my.find(attribute)
        if not isinstance(stored, Node):
            return UNDEFINED if stored is None else stored, shared.steps
        expression, path, depth = stored, [(my, attribute)], 1
    entered = [(ad, key) for ad, key in path if ad is not None]
    try:
        return evaluate_within(
            expression,
            my,
            target,
            shared.context,
            entered,
            depth,
            shared.steps,
            exact=exact,
            of_target=frame.mine != shared.begun_in_rows,
        )
    except EvaluationFailed as failure:
        return failure, shared.context.max_steps


def _ad(frame: Frame, row: int, keys: frozenset[str] | None) -> ClassAd:
    ad = frame.shared.table.ad(row, keys)
    for key, column in frame.shared.overlay.items():
        if keys is not None and key not in keys:
            continue
        if not isinstance(column, Column):
            ad[key] = int(column[row])
        elif (stored := frame.shared.table.stored(column, row)) is not None:
            ad[key] = stored
    return ad


def distinct(expression: Node, frame: Frame) -> Vector:
    """
    What the closure of an expression gives in every row, as a vector.

    Raises `Unknown` for values that no vector holds, among them that there is none.
    """
    if not frame.count:
        return Vector(Tag.UNDEFINED, undefined=True)
    found = outcomes(expression, frame, check=_check)
    if len(found.values) == 1:
        (value,) = found.values
        assert not isinstance(value, EvaluationFailed), "as checked"
        return of_value(value)
    tags = np.array([_tag(value) for value in found.values], np.int64)
    kinds = set(tags.tolist()) - {Tag.UNDEFINED, Tag.ERROR}
    if len(kinds) > 1:
        by_row = tags[found.of]
        raise Partition([np.flatnonzero(by_row == tag) for tag in np.unique(by_row)])
    undefined, error = (tags == Tag.UNDEFINED)[found.of], (tags == Tag.ERROR)[found.of]
    if not kinds:
        return Vector(Tag.UNDEFINED, undefined=undefined, error=error)
    kind = kinds.pop()
    data: npt.NDArray[np.generic] = np.array(
        [0 if isinstance(value, Exceptional) else value for value in found.values], _DTYPES[kind]
    )
    return Vector(kind, data[found.of], undefined, error)


def _tag(value: Outcome) -> int:
    if isinstance(value, Exceptional):
        return Tag.UNDEFINED if value is UNDEFINED else Tag.ERROR
    return _TAGS[type(value)]


def _check(value: Outcome, classes: int) -> None:
    """
    Whether a vector can hold a value that is one of so many.

    Strings made by an evaluation are not known to the table: let what compares them be evaluated instead.
    """
    if isinstance(value, EvaluationFailed):
        raise Overrun  # whether it comes to that depends on what is evaluated around it
    if not isinstance(value, bool | int | float | Exceptional) and not (
        classes == 1 and isinstance(value, str)
    ):
        raise Unknown
