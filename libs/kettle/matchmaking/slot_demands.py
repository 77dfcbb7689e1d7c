"""
What slots demand of jobs: the clauses of their Requirements, and in the place of START those of the owner's policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle.classad import (
    Node,
    NotRepresentable,
    conjuncts,
    external_references,
    is_true,
    references,
    unparse,
)
from kettle.classad.nodes import Reference
from kettle.classad.reference_analysis import depends_on_time
from kettle.matchmaking.machine_conditions import CHANGING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import numpy.typing as npt

    from kettle.classad import ClassAd
    from kettle.classad.columnar import Table
    from kettle.classad.values import Stored

    Integers: TypeAlias = npt.NDArray[np.int64]

MISSING: Final = "Requirements (missing)"
_WHOLE: Final = frozenset({"withinresourcelimits"})
"""Own attributes that are shown as they are named: it is about requests, for which there are figures and remedies."""
_LONGEST: Final = 500
"""Characters of a clause that are shown."""


class Demand(msgspec.Struct, frozen=True):
    """One clause of some slots, by their places among the rows that are looked at."""

    places: Integers
    text: str
    clause: Node | None
    """None: they refuse whatever comes."""
    behind: tuple[Node, ...] = ()
    """The clause, and what the attributes that it names are of these slots, if they are expressions."""
    changing: bool = False
    """Whether it depends on what changes by itself."""
    closed: bool = False
    """Whether they are closed for a while, for the reason that stands in the text."""


class SlotDemands:
    """The demands of the slots in `rows`."""

    def __init__(self, table: Table, rows: Integers, fixed: Collection[str], *, policies: bool) -> None:
        """
        `fixed`: attributes, in lower case, in whose place other values stand. `policies`: take START apart, and say why
        slots are closed; a record of every cycle had news all the time.
        """
        self._policies = policies
        self._table = table
        self._rows = rows
        self._fixed = fixed
        self._all = np.arange(len(rows))

    def all(self) -> list[Demand]:
        """A slot's own are as many as its Requirements have clauses, or else one that nothing meets."""
        return list(self._of(self._all, "requirements", frozenset()))

    def of_job(self, clause: Node, job: ClassAd) -> Iterator[Demand]:
        """What a clause of a job depends on, of all slots."""
        asked = frozenset(name.lower() for name in external_references(clause, job))
        own = (job.find(name.lower()) for name in references(clause, job).internal)
        behind = (clause, *(one for one in own if isinstance(one, Node)))
        return self._dependences(self._all, clause, asked, behind)

    def _of(self, places: Integers, name: str, within: frozenset[str]) -> Iterator[Demand]:
        for same, stored in self._stored(places, name):
            if isinstance(stored, Node):
                for clause in conjuncts(stored):
                    yield from self._clause(same, clause, within | {name})
            elif stored is None or not is_true(stored):
                yield from self._closed(same, MISSING if stored is None else unparse(stored))

    def _clause(self, places: Integers, clause: Node, within: frozenset[str]) -> Iterator[Demand]:
        inner = own_name(clause)
        if inner is None or not self._policies or inner in within or inner in _WHOLE:
            yield from self._demand(places, clause)
            return
        for same, stored in self._expressions(places, inner):
            if stored is None:
                yield from self._demand(same, clause)
            else:
                yield from self._of(same, inner, within)

    def _demand(self, places: Integers, clause: Node) -> Iterator[Demand]:
        return self._dependences(places, clause, own_names(clause), (clause,))

    def _dependences(
        self,
        places: Integers,
        clause: Node,
        names: frozenset[str],
        behind: tuple[Node, ...],
        done: frozenset[str] = frozenset(),
    ) -> Iterator[Demand]:
        """
        Slots by what a clause depends on that names these of their attributes, which may be expressions, of each others.
        """
        todo = min(names - done, default=None)
        if todo is None:
            changing = bool(names & CHANGING.keys()) or any(map(depends_on_time, behind))
            yield Demand(places, text_of(clause), clause, behind, changing)
            return
        for same, stored in self._expressions(places, todo):
            if stored is None:
                yield from self._dependences(same, clause, names, behind, done | {todo})
            else:
                more = names | own_names(stored)
                yield from self._dependences(same, clause, more, (*behind, stored), done | {todo})

    def _closed(self, places: Integers, text: str) -> Iterator[Demand]:
        """Slots that refuse every job, by the reason that they give for it."""
        for same, reason in self._reasons(places) if self._policies else ((places, ""),):
            if len(same):
                yield Demand(same, f"{text} ({reason})" if reason else text, None, closed=bool(reason))

    def _reasons(self, places: Integers) -> Iterator[tuple[Integers, str]]:
        draining, owned = self._table.truths("Draining"), self._table.says("State", "Owner")
        for some, trouble in self._stored(places, "trouble"):
            if isinstance(trouble, str) and trouble:
                yield some, f"Trouble: {trouble}"
                continue
            rows = self._rows[some]
            for same, reason in self._stored(some[draining[rows]], "drainreason"):
                because = f": {reason}" if isinstance(reason, str) and reason else ""
                yield same, f"the machine is being drained{because}"
            yield some[owned[rows] & ~draining[rows]], "its owner has the machine for himself"
            yield some[~owned[rows] & ~draining[rows]], ""

    def _stored(self, places: Integers, name: str) -> Iterator[tuple[Integers, Stored | None]]:
        """Places of slots by what they say of an attribute."""
        column = self._table.columns.get(name)
        if column is None:
            if len(places):
                yield places, None
            return
        classes = column.classes(len(self._table)).of[self._rows[places]]
        for number in np.unique(classes):
            same = places[classes == number]
            yield same, self._table.stored(column, int(self._rows[same[0]]))

    def _expressions(self, places: Integers, name: str) -> Iterator[tuple[Integers, Node | None]]:
        """
        Places of slots by the expression that they say of an attribute; None: it is a plain value, or missing.
        """
        expressed = np.zeros(len(places), np.bool_)
        if name not in self._fixed:
            expressed = self._table.expressed(name)[self._rows[places]]
        if not expressed.all():
            yield places[~expressed], None
        if expressed.any():
            for same, stored in self._stored(places[expressed], name):
                yield same, stored if isinstance(stored, Node) else None


def own_name(clause: Node) -> str | None:
    """The attribute that a clause is, if it is just that: `START`, `MY.Start`."""
    if not isinstance(clause, Reference):
        return None
    base = clause.base
    own = base is None or (isinstance(base, Reference) and base.base is None and base.key in {"my", "self"})
    return clause.key if own else None


def own_names(clause: Node) -> frozenset[str]:
    """What a clause asks for without `TARGET.`, in lower case."""
    found = {name.lower() for name in references(clause).external}
    return frozenset(name for name in found if not name.startswith("target."))


def text_of(clause: Node) -> str:
    """A clause as it is shown."""
    try:
        text = unparse(clause)
    except NotRepresentable:
        return "(a clause that is nested too deeply to be shown)"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
