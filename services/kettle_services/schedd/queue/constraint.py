"""
A constraint on jobs of a queue, which may be very many: it looks at those attributes only that it depends on, and at each
combination of their values once.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle.classad import ClassAd, ClassAdError, Context, Node, conceals, parse, references
from kettle.classad.reference_analysis import calls, trimmed
from kettle.classad.scope import MAGIC
from kettle.jobs.private_attributes import PRIVATE
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.queue.job_ads import Present, QueuedJobAds
from kettle_services.schedd.queue.ad_reader import AdReader
from kettle_wire.ads import Ad, Expr
from kettle_wire.codes import RefusalCode
from kettle_wire.jobs import JobId

_REMEMBERED: Final = 1 << 16
"""Combinations of values; when there are more, they differ from job to job, and all are forgotten."""
_encode: Final = msgspec.msgpack.Encoder().encode


def parsed(text: str) -> Node | None:
    """
    What is demanded of each job; None: nothing, which clients that want all jobs often send as `true`.

    Raises RefusedError for what cannot be read.
    """
    if text.strip().lower() in {"", "true"}:
        return None
    try:
        return parse(text)
    except ClassAdError as error:
        raise RefusedError(
            RefusalCode.MALFORMED, f"the constraint '{text}' cannot be read: {error}"
        ) from error


class Constraint:
    """Says of jobs in a queue whether an expression is true of their ads."""

    def __init__(self, queue: Present, expression: Node, now: float, reader: AdReader | None = None) -> None:
        """
        `reader`: who demands it, so that it is about what he may see; None: it is about the ads as they are recorded.
        """
        self._reader = reader
        self._private = False
        """Whether it may depend on what not everybody sees."""
        self._queue = queue
        self._expression = expression
        self._context: Context = evaluation.at(now)
        self._known: dict[bytes, bool] = {}
        self._names: set[str] = set(MAGIC)
        self._expressions: set[str] = set()
        """The texts of values that are expressions, whose attributes are looked at as well."""
        self._constant = True
        """Whether equal values have the same answer: it draws no random number."""
        self._whole = False
        """Whether all attributes are looked at, since nobody can say on which it depends."""
        self._view = QueuedJobAds(queue)
        self._depend_on([expression])

    def holds(self, job: JobId) -> bool:
        """Whether it is true of a job that is in the queue."""
        ad = self._ad(job)
        if not self._constant or self._whole:
            return self._evaluated(ad)
        key = _encode(ad)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._evaluated(ad)
        return known

    def _evaluated(self, ad: Ad) -> bool:
        return evaluation.holds(self._expression, ClassAd.from_wire(ad), self._context)

    def _ad(self, job: JobId) -> Ad:
        """Those attributes of a job on which it depends, however many steps away."""
        while True:
            ad = self._view.ad(job)
            if self._private and self._reader is not None:
                ad = self._reader.seen(job, ad)
            if self._whole:
                return ad
            stored = {value.expr for value in ad.values() if type(value) is Expr} - self._expressions
            if not stored:
                return ad
            self._expressions |= stored
            self._depend_on(map(parse, stored))

    def _depend_on(self, expressions: Iterable[Node]) -> None:
        for one in expressions:
            self._whole = self._whole or conceals(one)
            self._constant = self._constant and not calls(one, "random")
            self._names.update(trimmed(name) for name in references(one).external)
        self._private = self._whole or any(name.lower() in PRIVATE for name in self._names)
        self._view = QueuedJobAds(self._queue, () if self._whole else self._names)
