"""
Concurrency limits in a cycle: of what the pool has only so many, what is used, and how many more jobs may have some. Pure.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle.classad import Node
from kettle.classad.columnar import Evaluator, Spending
from kettle.jobs.concurrency_limits import LimitsError, limits_of
from kettle.matchmaking.candidates import Candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from kettle.classad import ClassAd, Context
    from kettle.matchmaking.slots import Offer

Uses: TypeAlias = "dict[str, float]"
"""How much of each limit one job uses, by its name in lower case."""
DEFAULT: Final = 2_308_032.0
"""CONCURRENCY_LIMIT_DEFAULT: what has no limit of its own is hardly limited."""
_ATTRIBUTE: Final = "concurrencylimits"
_EXACTLY: Final = 1e-9
_COUNTLESS: Final = 2.0**53
"""More jobs than there are, and still a whole number."""
MOST_TEXTS: Final = 64
"""Lists of limits among which an expression of one job may choose: each is work in every cycle."""


class LimitRules(msgspec.Struct, frozen=True):
    """How much there is of what, by names in lower case."""

    limits: dict[str, float] = {}
    """<NAME>_LIMIT."""
    prefixes: dict[str, float] = {}
    """CONCURRENCY_LIMIT_DEFAULT_<prefix>, of each `prefix.name` that has no limit of its own."""
    default: float = DEFAULT

    def most(self, name: str) -> float:
        """How much there is of one."""
        if (said := self.limits.get(name)) is not None:
            return said
        prefix, dot, _ = name.partition(".")
        return self.prefixes.get(prefix, self.default) if dot else self.default


class Concurrency:
    """What is in use, while a cycle gives more of it away."""

    def __init__(self, rules: LimitRules, in_use: Mapping[str, float]) -> None:
        self._rules = rules
        self._in_use = dict(in_use)

    def room(self, uses: Uses) -> float:
        """How many more jobs may run that use this much."""
        left = math.inf
        for name, number in uses.items():
            free = self._rules.most(name) - self._in_use.get(name, 0.0)
            left = min(left, math.floor(min(free / number, _COUNTLESS) + _EXACTLY))
        return max(0.0, left)

    def reached(self, uses: Uses) -> list[str]:
        """Which of the limits have no room for one such job."""
        return [name for name in uses if not self.room({name: uses[name]})]

    def take(self, uses: Uses, jobs: int) -> None:
        """So many jobs were given slots."""
        for name, number in uses.items():
            self._in_use[name] = self._in_use.get(name, 0.0) + number * jobs


class WantedLimits:
    """What one job says that it uses: the same everywhere, or by an expression that looks at the slot."""

    def __init__(self, job: ClassAd) -> None:
        self._stored = job.find(_ATTRIBUTE)
        self.fault: str | None = None
        self._same: Uses = {}
        self._known: dict[str, Uses | None] = {}
        if isinstance(self._stored, str):
            try:
                self._same = limits_of(self._stored)
            except LimitsError as error:
                self.fault = f"ConcurrencyLimits: {error}"

    @property
    def varies(self) -> bool:
        """Whether it depends on the slot, for all that is known."""
        return isinstance(self._stored, Node)

    def divided(
        self,
        found: Candidates,
        job: ClassAd,
        offer: Offer,
        context: Context,
        spending: Spending,
        room: Callable[[Uses], float],
    ) -> Iterator[tuple[Candidates, Uses]]:
        """
        The slots in their order, in groups in which the job uses the same limits; none where there is no `room` any
        more.

        Where the expression has no value nothing is used; where its value is not a list of limits, the slot does not
        match. With too many values there is a `fault`, and no slot.
        """
        if not isinstance(self._stored, Node):
            yield found, self._same
            return
        slots = Evaluator(
            offer.table, my=job, rows=found.rows, overlay=offer.overlay, context=context, spending=spending
        )
        texts = [value if isinstance(value, str) else "" for value in slots.values(self._stored)]
        if not self._learn(set(texts)):
            return
        full: set[str] = set()
        starts = [i for i, text in enumerate(texts) if not i or text != texts[i - 1]]
        for start, end in zip(starts, [*starts[1:], len(texts)], strict=True):
            text = texts[start]
            uses = self._known[text]
            if uses is None or text in full:
                continue
            asked: dict[str, float | npt.NDArray[np.float64]] = {
                name: amount[start:end] if isinstance(amount, np.ndarray) else amount
                for name, amount in found.asked.items()
            }
            yield Candidates(found.rows[start:end], asked, found.room[start:end]), uses
            if not room(uses):
                full.add(text)

    def _learn(self, texts: set[str]) -> bool:
        """Read what was not read before; false if that is more than may be."""
        news = texts - self._known.keys()
        if len(self._known) + len(news) > MOST_TEXTS:
            self.fault = f"ConcurrencyLimits has more than {MOST_TEXTS} values among the slots"
            return False
        for text in news:
            try:
                self._known[text] = limits_of(text)
            except LimitsError:
                self._known[text] = None
        return True
