"""
What would have to be different for a job to match: every clause tried on every slot, and the nearest way out.

A request is looked at by asking each slot for just what it has: where that matches, the largest amount is the answer.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from kettle.classad import ClassAd, NotRepresentable, unparse
from kettle.classad.reference_analysis import external_references, references
from kettle.matchmaking.editing import Editing, asking, number, request_spelling
from kettle.matchmaking.explanation import Condition, Explainer, PatientExplainer, does_not_fit
from kettle.matchmaking.request import RESOURCES, Request
from kettle.matchmaking.slot_demands import own_names
from kettle.matchmaking.used_up import used_up
from kettle_wire.ads import Expr
from kettle_wire.commands.negotiator import Analysis, Present, Remedy, SuggestedEdit, Tried

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    import numpy.typing as npt

    Booleans: TypeAlias = npt.NDArray[np.bool_]
    Integers: TypeAlias = npt.NDArray[np.int64]
    Reals: TypeAlias = npt.NDArray[np.float64]

_CLAUSES: Final = 30
_ATTRIBUTES: Final = 3
_VALUES: Final = 5
_LOOKED_AT: Final = 1_000
"""So many slots are asked for which clauses refuse together; the first of those that lack least."""
_TEXT: Final = 80


class _Clause:
    """A condition, and which slots do not meet it."""

    def __init__(self, condition: Condition, slots: int, about: AbstractSet[str]) -> None:
        self.side, self.text, self.clause = condition.side, condition.text, condition.clause
        self.about = about
        """Requests that a clause of the job names, by the names of resources."""
        self.asked = 0
        self.fails = np.zeros(slots, np.bool_)
        self.changing = np.zeros(slots, np.bool_)
        """Which of these may meet it later, by what changes by itself."""
        self.add(condition)

    def add(self, condition: Condition) -> None:
        """Add a demand of the same clause on other slots, or a second one on the same slots."""
        self.asked = max(self.asked, len(condition.places)) if self.side == "job" else self.asked
        if self.side == "slot":
            self.asked += len(condition.places)
        refusing = condition.places[~condition.holds]
        self.fails[refusing] = True
        self.changing[condition.places[condition.changing & ~condition.holds]] = True


class Analyst:
    """Looks at slots as an `Explainer` does."""

    def __init__(self, explainer: Explainer) -> None:
        self._explainer = explainer
        self._slots = len(explainer.rows)

    def analyse(self, job: ClassAd) -> Analysis:
        """Try everything; costs some dozen looks at every slot."""
        explained = self._explainer.explain(job)
        if explained.fault is not None:
            return Analysis(slots=self._slots, able=0, clauses=[], fault=explained.fault)
        clauses = self._clauses(job)
        fails = np.zeros(self._slots, np.int64)
        for one in clauses:
            fails += one.fails
        willing, later = self._willing(job), self._explainer.later(job)
        editing = Editing(self._explainer, job, explained.able)
        tried = [self._tried(one, fails, job, willing, later, editing) for one in clauses]
        tried.sort(key=lambda one: (one.passes - one.asked, -one.only))
        together, slots = _together(clauses, fails)
        remedies = [] if not willing else self._remedies(job, willing, explained.able)
        edits = self._edits(job, editing, tried, clauses, together)
        hopeless = not (explained.able or later.any() or remedies or edits)
        patience = hopeless and any(one.changing.any() for one in clauses)
        if patience:
            remedies, edits = self._for_later(job, clauses)
        free = self._explainer.free(job)
        return Analysis(
            slots=self._slots,
            able=explained.able,
            free=free,
            used_up=used_up(self._explainer, job) if explained.able and not free else [],
            later=int(np.count_nonzero(later)),
            clauses=tried[:_CLAUSES],
            more=max(0, len(tried) - _CLAUSES),
            remedies=remedies,
            edits=edits,
            for_later=patience and bool(remedies or edits),
            together=together,
            together_slots=slots,
        )

    def _clauses(self, job: ClassAd) -> list[_Clause]:
        """
        All that is demanded, once each; a request has room unless no clause that names it says so already.
        """
        found: dict[tuple[str, str], _Clause] = {}
        request = Request(job, self._explainer.context)
        named = {*RESOURCES, *request.custom}
        for condition in self._explainer.conditions(job):
            known = found.get((condition.side, condition.text))
            if known is None:
                about = _requests(condition, job, named)
                found[condition.side, condition.text] = _Clause(condition, self._slots, about)
            else:
                known.add(condition)
        places = np.arange(self._slots)
        for name, small in self._explainer.too_small(job, request).items():
            said = np.zeros(self._slots, np.bool_)
            for one in found.values():
                if name in one.about:
                    said |= one.fails
            lacks = small & ~said
            if lacks.any():
                condition = Condition(
                    side="job",
                    text=does_not_fit(job, request, name),
                    clause=None,
                    places=places,
                    holds=~lacks,
                    changing=np.zeros(self._slots, np.bool_),
                )
                found["job", condition.text] = _Clause(condition, self._slots, {name})
        return list(found.values())

    def _willing(self, job: ClassAd) -> dict[str, Booleans]:
        """
        Which slots would take the job if it asked for just what they have of a resource, if that is less, by its name.
        """
        request = Request(job, self._explainer.context)
        willing: dict[str, Booleans] = {}
        for name, asked in {**request.fixed, **request.custom}.items():
            has = self._amounts(name)
            if has is not None and (less := (has > 0) & (has < asked)).any():
                willing[name] = less & self._explainer.able(asking(job, name, Expr(f"TARGET.{name}")))
        return willing

    def _for_later(
        self, job: ClassAd, clauses: Iterable[_Clause]
    ) -> tuple[list[Remedy], list[SuggestedEdit]]:
        """
        Single changes after which no slot would match now, but some when what changes by itself is otherwise.
        """
        known = self._explainer
        patient = Analyst(PatientExplainer(known.table, known.rows, known.context, policies=True))
        remedies = patient._remedies(job, patient._willing(job), 0)
        editing = Editing(patient._explainer, job, 0)
        removable = (
            one.text for one in clauses if one.side == "job" and one.clause is not None and one.fails.any()
        )
        edits = [edit for text in islice(removable, _CLAUSES) if (edit := editing.edited([text])) is not None]
        return remedies, sorted(edits, key=lambda one: -one.slots)

    def _edits(
        self,
        job: ClassAd,
        editing: Editing,
        tried: Iterable[Tried],
        clauses: Iterable[_Clause],
        together: Collection[str],
    ) -> list[SuggestedEdit]:
        """Clauses that could be left out; of those that refuse only together also with smaller requests."""
        single = [editing.edited([one.text]) for one in tried if one.without]
        found = [one for one in single if one is not None]
        if not found and together:
            of_job = [one for one in clauses if one.side == "job" and one.text in together]
            names = {name for one in of_job for name in one.about}
            dropped = [one.text for one in of_job if one.clause is not None and not one.about]
            place = next(iter(np.flatnonzero(_lacking(clauses, together))), None)
            amounts = {
                request_spelling(job, name): number(float(has[place]))
                for name in sorted(names)
                if place is not None and (has := self._amounts(name)) is not None
            }
            both = editing.edited(dropped, amounts)
            found = [] if both is None else [both]
        return sorted(found, key=lambda one: -one.slots)

    def _tried(
        self,
        one: _Clause,
        fails: Integers,
        job: ClassAd,
        willing: Mapping[str, Booleans],
        later: Booleans,
        editing: Editing,
    ) -> Tried:
        """
        A slot's own clause may refuse for what a clause of the job is about, so what lowers a request is tried as a whole.
        """
        alone = one.fails & (fails == 1)
        removable = one.side == "job" and one.clause is not None and alone.any()
        if one.side == "job":
            for name in one.about & willing.keys():
                alone = alone | (one.fails & willing[name])
        only, waiting = int(np.count_nonzero(alone)), one.changing & later
        shown = waiting if waiting.any() else alone if only else one.fails
        return Tried(
            side=one.side,
            text=one.text,
            asked=one.asked,
            passes=one.asked - int(np.count_nonzero(one.fails)),
            only=only,
            present=self._present(one, shown, job),
            without=editing.gain([one.text]) if removable else 0,
            waiting=int(np.count_nonzero(waiting)),
        )

    def _present(self, one: _Clause, places: Booleans, job: ClassAd) -> list[Present]:
        """
        What these slots say of what a clause of the job asks for, or of what their own asks of them, but of amounts: for
        these there are remedies.
        """
        if one.clause is None or not places.any():
            return []
        if one.side == "job":
            asked = sorted(external_references(one.clause, job))
        else:
            asked = sorted(self._spelled(own_names(one.clause)))
        named = [name for name in asked if name.lower() not in self._explainer.overlay]
        return [self._values(name, self._explainer.rows[places]) for name in named[:_ATTRIBUTES]]

    def _spelled(self, names: Iterable[str]) -> list[str]:
        """Attributes of slots as these spell them; others are the job's."""
        columns = self._explainer.table.columns
        return [columns[name].name for name in names if name in columns]

    def _values(self, name: str, rows: Integers) -> Present:
        table = self._explainer.table
        column = table.columns.get(name.lower())
        if column is None:
            return Present(attribute=name, values=[("undefined", len(rows))])
        classes = column.classes(len(table))
        numbers, counts = np.unique(classes.of[rows], return_counts=True)
        most = np.argsort(-counts, kind="stable")[:_VALUES]
        values = [
            (_shown(table.value(int(classes.examples[numbers[place]]), name)), int(counts[place]))
            for place in most.tolist()
        ]
        values.sort(key=lambda value: (-value[1], value[0]))
        return Present(attribute=name, values=values, others=len(rows) - sum(n for _, n in values))

    def _remedies(self, job: ClassAd, willing: Mapping[str, Booleans], able: int) -> list[Remedy]:
        request = Request(job, self._explainer.context)
        asked: dict[str, float] = {**request.fixed, **request.custom}
        found = (self._remedy(job, name, asked[name], slots, able) for name, slots in willing.items())
        return sorted((one for one in found if one is not None), key=lambda one: -one.least_slots)

    def _remedy(self, job: ClassAd, name: str, asked: float, slots: Booleans, able: int) -> Remedy | None:
        has = self._amounts(name)
        if has is None or not slots.any():
            return None
        most, least = float(has[slots].max()), float(has[slots].min())
        gains = [
            int(np.count_nonzero(self._explainer.able(asking(job, name, number(amount)))))
            for amount in (most, least)
        ]
        if max(gains) <= able:
            return None
        return Remedy(
            attribute=request_spelling(job, name),
            asked=asked,
            most=most,
            slots=gains[0],
            least=least,
            least_slots=gains[1],
        )

    def _amounts(self, name: str) -> Reals | None:
        """What each slot has of a resource when nothing runs there; None if nobody says so."""
        rows = self._explainer.rows
        over = self._explainer.overlay.get(name.lower())
        if isinstance(over, np.ndarray):
            return over[rows].astype(np.float64)
        table = self._explainer.table
        if name.lower() not in table.columns:
            return None
        whole = table.numbers(f"TotalSlot{name}")
        return np.nan_to_num(np.where(np.isnan(whole), table.numbers(name), whole)[rows], nan=0.0)


def _together(clauses: Iterable[_Clause], fails: Integers) -> tuple[list[str], int]:
    """
    The fewest clauses without which a slot would match, if they are more than one, and how many slots lack just these.
    """
    if not len(fails) or int(fails.min()) < 2:
        return [], 0
    places = np.flatnonzero(fails == fails.min())[:_LOOKED_AT]
    named = [(one.text, one.fails[places]) for one in clauses if one.fails[places].any()]
    sets = Counter(tuple(text for text, failing in named if failing[place]) for place in range(len(places)))
    ((together, slots),) = sets.most_common(1)
    return list(together), slots


def _lacking(clauses: Iterable[_Clause], together: Collection[str]) -> Booleans:
    """Which slots are refused by just these clauses."""
    lacking: Booleans | None = None
    for one in clauses:
        as_named = one.fails if one.text in together else ~one.fails
        lacking = as_named if lacking is None else lacking & as_named
    assert lacking is not None, "there are clauses that refuse together"
    return lacking


def _requests(condition: Condition, job: ClassAd, names: Iterable[str]) -> AbstractSet[str]:
    """The resources about whose requests a clause is, of either side."""
    if condition.clause is None:
        return frozenset()
    clause = condition.clause
    if condition.side == "slot":
        found = external_references(clause)
    else:  # a request that the job does not say is one too, by its default
        named = references(clause, job)
        found = named.internal | named.external
    known = {name.lower() for name in found}
    return {name for name in names if f"request{name.lower()}" in known}


def _shown(value: object) -> str:
    if value is None:
        return "undefined"
    try:
        text = unparse(value)  # type: ignore[arg-type]  # what a table stores is a value or an expression
    except NotRepresentable:
        return "(an expression that is nested too deeply to be shown)"
    return text if len(text) <= _TEXT else text[:_TEXT] + "..."
