"""The three evaluators behind one signature: what holds for one has to hold for all."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kettle.classad import ClassAd, Context, EvaluationFailed, Node, Value, evaluate, interpret
from kettle.classad.columnar import Evaluator, Table
from kettle_wire.ads.types import Ad

Engine: TypeAlias = Callable[[Node, ClassAd | None, ClassAd | None, Context], Value]

_OTHERS: Final[tuple[Ad, ...]] = ({"Other": 1}, {"Other": "two", "Memory": 3.5})
"""Ads beside the one that is asked about, so that columns have gaps and kinds."""


def target_rows(node: Node, my: ClassAd | None, target: ClassAd | None, context: Context) -> Value:
    """The columnar evaluator with the other side of the match in a table."""
    if target is None:
        return my_rows(node, my, None, context)
    return _first(Evaluator(_table(target), my=my if my is not None else ClassAd(), context=context), node)


def my_rows(node: Node, my: ClassAd | None, target: ClassAd | None, context: Context) -> Value:
    """The columnar evaluator with the side in which the expression is written in a table."""
    table = _table(my if my is not None else ClassAd())
    return _first(Evaluator(table, target=target, context=context), node)


def _table(ad: ClassAd) -> Table:
    table = Table()
    table.put("", ad.to_wire())
    for number, other in enumerate(_OTHERS):
        table.put(str(number), other)
    return table


def _first(rows: Evaluator, node: Node) -> Value:
    value = rows.values(node)[0]
    if isinstance(value, EvaluationFailed):
        raise value
    return value


ENGINES: Final[Mapping[str, Engine]] = {
    "interpreter": interpret,
    "closures": evaluate,
    "columnar, target in rows": target_rows,
    "columnar, my in rows": my_rows,
}
