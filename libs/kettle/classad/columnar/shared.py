"""What one evaluation over a table knows, from whichever side it is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from kettle.classad.ad import SIDES
from kettle.classad.columnar.vector import Exhausted, Overrun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kettle.classad.ad import ClassAd
    from kettle.classad.columnar.column import Column, Integers
    from kettle.classad.columnar.kernels import Kernel
    from kettle.classad.columnar.table import Remembered, Table
    from kettle.classad.context import Context
    from kettle.classad.nodes import Node

    Compile: TypeAlias = Callable[[Node], Kernel]
    Overlay: TypeAlias = Mapping[str, Integers | Column]

_NODE: Final = 4
_ROWS: Final = 500


class Spending:
    """
    The cost of evaluations over tables, in steps of a closure: some half a microsecond each.

    Several evaluations for one user are counted in one object.
    """

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0


class Shared:
    """
    What both sides of one evaluation share.

    `path` are the attributes that are being evaluated, as (whether of the rows, key): circles end there.
    `begun_in_rows` is whether the rows are MY of the evaluation, and not its TARGET.
    `depth` is not less than what the interpreter would have used so far, `deepest` where it was greatest;
    `steps` is what has been charged.
    `plain` is whether MY and TARGET mean the two sides, no attribute of the ad, or of a row that counts, being
    named so.
    For the attribute that is being evaluated, `consulted` are names that were looked for in the ad and not found
    there, and `own` is whether anything was looked at but rows and names that are missing: a value for which nothing
    was is the same for any ad that lacks these names.
    """

    __slots__ = (
        "ad", "begun_in_rows", "compile", "consulted", "context", "count", "deepest", "depth", "now", "overlay", "own", "path", "plain",
        "spending", "steps", "table",
    )  # fmt: skip

    def __init__(
        self,
        table: Table,
        ad: ClassAd | None,
        context: Context,
        overlay: Overlay,
        compile_: Compile,
        *,
        odd: bool = False,
        spending: Spending | None = None,
    ) -> None:
        self.table = table
        self.count = len(table)
        self.ad = ad
        self.overlay = overlay
        now = self.now = context.now() if context.now is not None else None
        # All rows are looked at at once, also by closures.
        self.context = context if now is None else msgspec.structs.replace(context, now=lambda: now)
        self.compile = compile_
        self.path: list[tuple[bool, str]] = []
        self.depth = 0
        self.deepest = 0
        self.steps = 0
        self.begun_in_rows = ad is None
        self.plain = not odd and (ad is None or all(ad.find(name) is None for name in SIDES))
        self.consulted: set[str] = set()
        self.own = False
        self.spending = Spending() if spending is None else spending

    def holds_here(self, known: Remembered) -> bool:
        """Whether a value that was found for another ad and another overlay is the value here."""
        if not self.overlay.keys() <= known.overlaid:
            return False
        ad = self.ad
        return ad is None or all(ad.find(name) is None for name in known.absent)

    def check(self, beyond: int = 0) -> None:
        """
        Raise `Overrun` if the interpreter might run out of steps, or of levels so many `beyond` those here.
        """
        deepest = self.depth + beyond
        self.deepest = max(self.deepest, deepest)
        if deepest > self.context.max_depth or self.steps > self.context.max_steps:
            raise Overrun

    def spend(self, size: int, rows: int) -> None:
        """
        Count a kernel of so many nodes that runs over so many rows, or raise `Exhausted`.

        A node costs a few steps to come to, and hundreds of rows are as quick as one step.
        """
        self.spending.steps += size * (_NODE + rows // _ROWS)
        if self.exhausted:
            raise Exhausted

    @property
    def exhausted(self) -> bool:
        """Whether all rows together have taken what they may."""
        limit = self.context.max_table_steps
        return limit is not None and self.spending.steps > limit

    def begin(self) -> None:
        """Nothing has been used yet."""
        self.depth = self.steps = 0
