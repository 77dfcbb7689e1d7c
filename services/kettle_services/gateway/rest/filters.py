"""Filters: ClassAd expressions about one ad, refused if they name what no ad has."""

import difflib
import time
from typing import Final

from kettle.classad import (
    FOREIGN_STEPS,
    ClassAd,
    ClassAdError,
    Context,
    EvaluationFailed,
    Node,
    evaluate,
    is_true,
    parse,
)
from kettle.classad.ad import OTHER, OWN
from kettle.classad.nodes import Reference
from kettle.classad.reference_analysis import conceals, depends_on_time, external_references, nodes
from kettle.submit.known_attributes import KnownAttributes
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.rest.problem import ProblemCode

_MAGIC: Final = frozenset({"my", "self", "parent", "root", "toplevel", "currenttime"})


class AdFilter:
    """A filter that can be used."""

    def __init__(self, expression: Node) -> None:
        now = int(time.time())
        self.expression: Final = expression
        self.context: Final = Context(now=lambda: now, max_steps=FOREIGN_STEPS)
        self.is_timeless: Final = not depends_on_time(expression)
        """Whether the same ad always gives the same answer."""
        self.asked: Final = None if conceals(expression) else _asked(expression)
        """The attributes that it asks for, in lower case; None: it may ask for any."""

    def holds(self, ad: Ad) -> bool:
        """Whether the filter is true of an ad; one that takes too many steps is not."""
        try:
            return is_true(evaluate(self.expression, ClassAd.from_wire(self._part(ad)), None, self.context))
        except EvaluationFailed:
            return False

    def _part(self, ad: Ad) -> Ad:
        """What of an ad decides: to look at all of it takes longer than to evaluate the filter."""
        if self.asked is None:
            return ad
        part = {name: value for name, value in ad.items() if name.lower() in self.asked}
        return ad if any(isinstance(value, Expr) for value in part.values()) else part


def _asked(expression: Node) -> frozenset[str]:
    return frozenset(name.lower() for name in external_references(expression))


class Filters:
    """Reads filters."""

    def __init__(self, known: KnownAttributes) -> None:
        self._known = known

    def read(self, text: str, pointer: str = "/query/filter") -> AdFilter | None:
        """None for no filter; raises RequestRefused."""
        if not text:
            return None
        try:
            expression = parse(text)
        except ClassAdError as error:
            raise refused_field(
                pointer,
                f"the filter is no ClassAd expression: {error}",
                code=ProblemCode.FILTER_INVALID,
            ) from error
        self.check(expression, pointer)
        return AdFilter(expression)

    def check(self, expression: Node, pointer: str) -> None:
        """
        Raises RequestRefused for a name that no ad has; `MY.name` is not looked at, because jobs may have attributes of
        their own.
        """
        for node in nodes(expression):
            if not isinstance(node, Reference):
                continue
            if isinstance(node.base, Reference) and node.base.base is None and node.base.key in OTHER:
                raise refused_field(
                    pointer,
                    f"a filter is about one ad, and {node.base.name}.{node.name} asks for another: write {node.name}",
                    code=ProblemCode.FILTER_INVALID,
                )
            if node.base is None and node.key not in _MAGIC | OWN and node.key not in self._known:
                raise self._unknown(node, pointer)

    def _unknown(self, node: Reference, pointer: str) -> RequestRefused:
        spelt = {name.lower(): name for name in self._known.names}
        near = difflib.get_close_matches(node.key, spelt, n=1, cutoff=0.6)
        nearest = f"the nearest is {spelt[near[0]]}; " if near else ""
        return refused_field(
            pointer,
            f"there is no attribute {node.name[:256]}: {nearest}an attribute that only some jobs were given is MY.{node.name[:256]}",
            code=ProblemCode.ATTRIBUTE_UNKNOWN,
        )
