"""
Which ads a query selects, a page at a time.

A page is one piece of work of bounded size, so that no query keeps others waiting, and all of it is of one moment.
It goes through the ads in the order of their names, some together: those that have only plain values behind what the
constraint names are looked at in columns; the others, and all if it hides what it names, one by one.
How many are taken together is found out: constraints differ in what they cost by more than a thousand.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from kettle.classad import FOREIGN_STEPS, ClassAd, Context, EvaluationFailed, Node, evaluate, is_true
from kettle.classad.columnar import Evaluator, Spending, Table
from kettle.classad.reference_analysis import asks_own, external_references, hides
from kettle_services.collector.domain.ads import CLOCK, Adverts, Place, Shelf
from kettle_wire.ads.types import Ad, Expr, Scalar

MOST_BYTES: Final = 1 << 20
"""In the ads of one page."""
MOST_SECONDS: Final = 0.1
_FIRST: Final = 16
"""Ads that are looked at together at first."""
_MOST: Final = 4096
_QUICK_S: Final = 0.01
_SLOW_S: Final = 0.03
_STEPS: Final = 100_000
"""Of an evaluation in some ads together; if they do not suffice, fewer ads are looked at."""
_PLAIN_BYTES: Final = 9
"""Of a number on the wire."""

Booleans = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """
    What is asked: ads of a type (empty: any) that meet the constraint (None: all), cut down to the attributes that they
    have of `projection` (empty: all), at most `limit` of them (0: all), from `after` a place on.
    """

    kind: str = ""
    constraint: Node | None = None
    projection: Sequence[str] = ()
    limit: int = 0
    after: Place | None = None
    forwarded: bool = False
    """Ads of other pools too."""


class Page(msgspec.Struct, frozen=True):
    """
    Ads in the order of their names; `rest`: behind which place there may be more, None: there are no more.
    """

    ads: list[Ad]
    rest: Place | None


def page(
    adverts: Adverts, query: Query, now: float, clock: Callable[[], float], *, most_bytes: int = MOST_BYTES
) -> Page:
    """
    The first ads that a query selects, as of `now` (seconds since 1970); `clock` measures how many seconds it takes.

    The candidate is both MY and TARGET: tools write conditions on it either way.  Undefined and error select nothing.
    """
    found = adverts.of_type(query.kind, forwarded=query.forwarded)
    shelves = [_Selected(shelf, query.constraint, now) for shelf in found]
    line = _Line(shelves, query.after)
    wanted = frozenset(name.lower() for name in (*query.projection, "MyType")) if query.projection else None
    ads: list[Ad] = []
    size, at, together, begun = 0, 0, _FIRST, clock()
    while at < len(line):
        looked = clock()
        some = line.some(at, together)
        selected = _look(some)
        if selected is None:
            together = max(1, together // 8)
            continue
        for (place, shelf), meets in zip(some, selected, strict=True):
            at += 1
            if not meets:
                continue
            ads.append(shelf.ad(place[1], wanted))
            size += _size(ads[-1])
            if len(ads) == query.limit:
                return Page(ads, None)
            if size >= most_bytes:
                return Page(ads, place if at < len(line) else None)
        took = clock() - looked
        if clock() - begun > MOST_SECONDS and at < len(line):
            return Page(ads, some[-1][0])
        together = (
            min(_MOST, together * 2)
            if took < _QUICK_S
            else max(1, together // 4)
            if took > _SLOW_S
            else together
        )
    return Page(ads, None)


_Some = Sequence[tuple[Place, "_Selected"]]


class _Line:
    """
    The ads behind a place in the order of their names.

    Those of one type are in order already: of them only what a page comes to is touched, however many there are.
    """

    def __init__(self, shelves: Sequence["_Selected"], after: Place | None) -> None:
        self._one = shelves[0] if len(shelves) == 1 else None
        self._places: Sequence[Place] = () if self._one is None else self._one.after(after)
        self._all: _Some = ()
        if self._one is None:
            found = [(place, shelf) for shelf in shelves for place in shelf.after(after)]
            self._all = sorted(found, key=lambda each: each[0])

    def __len__(self) -> int:
        return len(self._all) if self._one is None else len(self._places)

    def some(self, at: int, count: int) -> _Some:
        """The next ones from a position on."""
        if self._one is None:
            return self._all[at : at + count]
        return [(place, self._one) for place in self._places[at : at + count]]


def _look(some: _Some) -> Sequence[bool] | None:
    """Which ads are selected; None if it takes too much to look at so many together."""
    met: dict[Place, bool] = {}
    for shelf in dict.fromkeys(shelf for _, shelf in some):
        places = [place for place, other in some if other is shelf]
        selected = shelf.look([key for _, key in places])
        if selected is None:
            return None
        met.update(zip(places, selected, strict=True))
    return [met[place] for place, _ in some]


class _Selected:
    """The ads of one type, and what is known of them for one constraint."""

    def __init__(self, shelf: Shelf, constraint: Node | None, now: float) -> None:
        self._table = shelf.table
        self.after = shelf.after
        self._constraint = constraint
        self._now = int(now)
        self._context = Context(now=lambda: int(now), max_steps=FOREIGN_STEPS)
        self._single = _single(shelf.table, constraint)
        self._clock = np.full(len(shelf.table), self._now)

    def look(self, keys: Sequence[str]) -> Sequence[bool] | None:
        """Which of the ads are selected; None: fewer should be looked at together."""
        if self._constraint is None:
            return [True] * len(keys)
        rows = np.fromiter((self._table.row(key) for key in keys), np.int64, len(keys))
        single = self._single[rows]
        meets = np.zeros(len(rows), np.bool_)
        if not single.all():
            found = self._together(self._constraint, rows[~single], alone=len(keys) == 1)
            if found is None:
                return None
            meets[~single] = found
        for position in np.flatnonzero(single).tolist():
            meets[position] = self._alone(self._constraint, int(rows[position]))
        return meets.tolist()

    def ad(self, key: str, wanted: frozenset[str] | None) -> Ad:
        """An ad as it is shown now: a sender that states its own time is believed."""
        row = self._table.row(key)
        ad = self._table.wire(row, wanted)
        if (wanted is None or CLOCK.lower() in wanted) and self._table.value(row, CLOCK) is None:
            ad[CLOCK] = self._now
        return ad

    def _together(self, constraint: Node, rows: Rows, *, alone: bool) -> Booleans | None:
        spending = Spending()
        limit = None if alone else _STEPS
        evaluator = Evaluator(
            self._table,
            my=ClassAd(),
            rows=rows,
            overlay={CLOCK.lower(): self._clock},
            context=msgspec.structs.replace(self._context, max_table_steps=limit),
            spending=spending,
        )
        found = evaluator.holds(constraint)
        return None if limit is not None and spending.steps > limit else found

    def _alone(self, constraint: Node, row: int) -> bool:
        ad = self._table.ad(row)
        if CLOCK not in ad:
            ad[CLOCK] = self._now
        try:
            return is_true(evaluate(constraint, ad, ad, self._context))
        except EvaluationFailed:
            return False


def _single(table: Table, constraint: Node | None) -> Booleans:
    """
    Which ads cannot be looked at together with others.

    In columns an ad is only TARGET; that it is MY as well makes no difference to plain values behind plain names.
    """
    single = np.zeros(len(table), np.bool_)
    if constraint is None:
        return single
    if hides(constraint) or asks_own(constraint):
        return ~single
    for name in external_references(constraint):
        # Its own clock may be no integer, which is all that can stand in for a column.
        single |= table.present(name) if name.lower() == CLOCK.lower() else table.expressed(name)
    odd = table.odd_rows()
    return single if odd is None else single | odd


def _size(ad: Ad) -> int:
    return sum(len(name) + _bytes(value) for name, value in ad.items())


def _bytes(value: Scalar) -> int:
    text = value.expr if isinstance(value, Expr) else value
    return len(text) if isinstance(text, str) else _PLAIN_BYTES
