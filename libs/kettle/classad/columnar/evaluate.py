"""One expression, or one attribute, in many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

import numpy as np

from kettle.classad.columnar.arithmetic import as_reals
from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.distinct import Outcome, Outcomes, outcomes, too_long
from kettle.classad.columnar.frame import Frame, frame_of
from kettle.classad.columnar.kernels import kernel_of
from kettle.classad.columnar.logic import holds
from kettle.classad.columnar.shared import Spending
from kettle.classad.columnar.vector import Exhausted, Overrun, Partition, Unknown, Vector, spread
from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import EvaluationFailed
from kettle.classad.nodes import Node, Reference
from kettle.classad.values import ERROR, UNDEFINED, is_true

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from kettle.classad.ad import ClassAd
    from kettle.classad.columnar.column import Booleans, Integers
    from kettle.classad.columnar.shared import Overlay
    from kettle.classad.columnar.table import Table
    from kettle.classad.values import Value

    Part: TypeAlias = tuple[Frame, Integers | None, Vector | Outcomes]


_T = TypeVar("_T", bound=np.generic)
_MANY: Final = 4
"""Where more than one row in so many takes part, all rows are looked at."""


class Evaluator:
    """
    Expressions in rows of a table, matched against one ad.

    With `my` the expressions are written in that ad and each row is its target; otherwise they are written in the rows,
    and `target`, if there is one, is theirs. `rows` are the numbers of the rows that take part, in any order; by
    default all. `overlay` gives integers that replace attributes, by lower-case name, one for each row of the table, or
    whole columns of it (`Table.with_instead`). The steps of all rows together (`Context.max_table_steps`) are limited
    for all evaluations with one `spending`, by default this evaluator's own. All answers have one entry for each row
    that takes part, in that order; arrays must not be changed, and are valid only while the table does not change.
    """

    def __init__(
        self,
        table: Table,
        *,
        my: ClassAd | None = None,
        target: ClassAd | None = None,
        rows: Integers | None = None,
        overlay: Overlay | None = None,
        context: Context = NOTHING,
        spending: Spending | None = None,
    ) -> None:
        self.count = len(table) if rows is None else len(rows)
        everyone = rows is None or (len(rows) == len(table) and np.array_equal(rows, table.all_rows))
        self._rows = None if everyone else rows
        spending = Spending() if spending is None else spending

        def frame(some: Integers | None, *, odd: bool) -> Frame:
            return frame_of(
                table, kernel_of, my=my, target=target, rows=some, overlay=overlay, context=context,
                odd=odd, spending=spending,
            )  # fmt: skip

        self._frame = frame(self._rows, odd=False)
        self._odd: tuple[Integers, Frame] | None = None
        odd = table.odd_rows()
        if odd is not None:
            # One machine with an attribute named MY must not make all others take the long way.
            positions = np.flatnonzero(odd if self._rows is None else odd[self._rows])
            some = positions if self._rows is None else self._rows[positions]
            self._odd = (positions, frame(some, odd=True)) if len(positions) else None

    def values(self, expression: Node) -> list[Outcome]:
        """The value in each row, or why there is none."""
        answer = _values_in(self._frame, expression)
        if self._odd is not None:
            positions, odd = self._odd
            for position, value in zip(positions.tolist(), _values_in(odd, expression), strict=True):
                answer[position] = value
        return answer

    def holds(self, expression: Node | str) -> Booleans:
        """In which rows an expression, or an attribute named in lower case, is true as a requirement is."""
        return self._mended(_together(self._frame, expression, np.bool_, _holds), expression, _holds)

    def numbers(self, expression: Node | str) -> npt.NDArray[np.float64]:
        """
        The value as a rank: 0.0 for whatever is no number.

        Where most rows take part all are looked at: whole columns need no gathering, and what depends on nothing else
        is remembered.
        """
        rows, frame = self._rows, self._frame
        if rows is not None and self.count * _MANY > frame.shared.count:
            whole = Frame(frame.shared, None, mine=frame.mine)
            found = _together(whole, expression, np.float64, _numbers)[rows]
        else:
            found = _together(frame, expression, np.float64, _numbers)
        return self._mended(found, expression, _numbers)

    def amounts(self, attribute: str, default: float) -> npt.NDArray[np.float64]:
        """
        An attribute, named in lower case, as an amount.

        `default` where it is undefined, not a number (NaN) where it is anything but a number.
        """

        def answer(part: Vector | Outcomes, frame: Frame) -> npt.NDArray[np.float64]:
            return _amounts(part, frame, default)

        return self._mended(_together(self._frame, attribute, np.float64, answer), attribute, answer)

    def _mended(
        self,
        found: npt.NDArray[_T],
        expression: Node | str,
        answer: Callable[[Vector | Outcomes, Frame], npt.NDArray[_T]],
    ) -> npt.NDArray[_T]:
        """What was found as if no row were odd, with what is in those that are."""
        if self._odd is None:
            return found
        positions, odd = self._odd
        mended = found.copy()
        mended[positions] = _together(odd, expression, found.dtype.type, answer)
        return mended

    def failure(self, attribute: str) -> str | None:
        """Why an attribute, named in lower case, has no value in any row; None if it has one in some."""
        reason: str | None = None
        frames = [self._frame] if self._odd is None else [self._frame, self._odd[1]]
        for _, _, part in (found for frame in frames for found in _of(frame, attribute)):
            if isinstance(part, Vector):
                return None
            for value in part.values:
                if not isinstance(value, EvaluationFailed):
                    return None
                reason = str(value)
        return reason


def _values_in(frame: Frame, expression: Node) -> list[Outcome]:
    answer: list[Outcome] = [UNDEFINED] * frame.count
    for part_frame, positions, part in _parts(frame, expression, None):
        found = _values(part, part_frame)
        for position, value in zip(
            range(frame.count) if positions is None else positions, found, strict=True
        ):
            answer[position] = value
    return answer


def _of(frame: Frame, expression: Node | str) -> Iterator[Part]:
    if isinstance(expression, Node):
        return _parts(frame, expression, None)
    return _parts(frame, Reference(expression, expression), expression)


def _together(
    frame: Frame,
    expression: Node | str,
    dtype: type[_T],
    answer: Callable[[Vector | Outcomes, Frame], npt.NDArray[_T]],
) -> npt.NDArray[_T]:
    """One answer of those for the groups of rows; nearly always there is one group."""
    together: npt.NDArray[_T] | None = None
    for part_frame, positions, part in _of(frame, expression):
        found = answer(part, part_frame)
        if positions is None:
            view = found.view()
            view.flags.writeable = False  # it may be a column of the table, or what is remembered
            return view
        if together is None:
            together = np.zeros(frame.count, dtype)
        together[positions] = found
    assert together is not None, "a partition has groups"
    return together


def _parts(frame: Frame, expression: Node, attribute: str | None) -> Iterator[Part]:
    """
    The rows in groups that have one kind of value, each with its positions; None for all of them at once.

    An `attribute` is what the frame's side itself says, entered as a reference to it would.
    """
    pending: list[tuple[Frame, Integers | None]] = [(frame, None)]
    while pending:
        part, positions = pending.pop()
        part.shared.begin()
        try:
            yield part, positions, _vector(part, expression, attribute)
        except Partition as partition:
            pending.extend(
                (part.part(group), group if positions is None else positions[group])
                for group in partition.groups
            )
        except (Unknown, Overrun):
            part.shared.begin()
            yield part, positions, outcomes(expression, part, attribute)
        except Exhausted:
            yield part, positions, Outcomes([too_long()], np.zeros(part.count, np.int64))


def _vector(frame: Frame, expression: Node, attribute: str | None) -> Vector:
    if attribute is not None:
        return frame.selected(attribute)
    kernel = kernel_of(expression)
    shared = frame.shared
    shared.depth, shared.steps = kernel.height, kernel.size
    if shared.depth > shared.context.max_depth or shared.steps > shared.context.max_steps:
        raise Overrun
    shared.spend(kernel.size, frame.count)
    return kernel.run(frame)


def _holds(part: Vector | Outcomes, frame: Frame) -> Booleans:
    if isinstance(part, Vector):
        return spread(holds(part), frame.count)
    truths = np.array([not isinstance(v, Exception) and is_true(v) for v in part.values], np.bool_)
    return truths[part.of]


def _numbers(part: Vector | Outcomes, frame: Frame) -> npt.NDArray[np.float64]:
    if isinstance(part, Outcomes):
        found = np.array([float(v) if isinstance(v, int | float) else 0.0 for v in part.values])[part.of]
    elif part.kind in {Tag.UNDEFINED, Tag.STRING}:
        return np.zeros(frame.count)
    else:
        found = np.full(frame.count, as_reals(part)) if part.constant else np.asarray(as_reals(part))
        for mask in (part.undefined, part.error):
            if mask is not False:
                found = np.where(mask, 0.0, found)
    if isinstance(part, Vector) and part.kind != Tag.REAL:
        return found
    if not found.size or not np.isnan(found.min()):
        return found
    return np.where(np.isnan(found), 0.0, found)


def _amounts(part: Vector | Outcomes, frame: Frame, default: float) -> npt.NDArray[np.float64]:
    values = [
        default if value is UNDEFINED else float(value) if type(value) in {int, float} else np.nan  # type: ignore[arg-type]
        for value in (part.values if isinstance(part, Outcomes) else ())
    ]
    if isinstance(part, Outcomes):
        return np.array(values, np.float64)[part.of]
    found = np.full(frame.count, np.nan)
    if part.kind in {Tag.INTEGER, Tag.REAL}:
        found[:] = part.data
    found[spread(part.undefined, frame.count)] = default
    found[spread(part.error, frame.count)] = np.nan
    return found


def _values(part: Vector | Outcomes, frame: Frame) -> list[Outcome]:
    if isinstance(part, Outcomes):
        return [part.values[number] for number in part.of]
    if part.constant:
        return [part.value()] * frame.count
    undefined, error = spread(part.undefined, frame.count), spread(part.error, frame.count)
    strings = frame.shared.table.strings
    coded = part.kind == Tag.STRING and isinstance(part.data, np.ndarray)
    data = cast(
        "list[Value]", part.data.tolist() if isinstance(part.data, np.ndarray) else [part.data] * frame.count
    )
    return [
        ERROR if e else UNDEFINED if u else strings[cast("int", value)] if coded else value
        for value, u, e in zip(data, undefined, error, strict=True)
    ]
