"""What would match if a job was edited: each is tried on every slot before it is suggested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kettle.classad import ClassAd, Node, NotRepresentable, conjuncts, unparse
from kettle.classad.nodes import Conditional, Elvis, Logical
from kettle.matchmaking.slot_demands import text_of
from kettle_wire.ads import Expr
from kettle_wire.commands.negotiator import SuggestedEdit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kettle.matchmaking.explanation import Explainer
    from kettle_wire.ads import Scalar


class Editing:
    """Tries one job without clauses of its Requirements, and with other requests."""

    def __init__(self, explainer: Explainer, job: ClassAd, able: int) -> None:
        """`able`: how many slots could run it as it is."""
        self._explainer = explainer
        self._job = job
        self._able = able
        self._known: dict[tuple[str, ...], int] = {}

    def gain(self, dropped: Collection[str]) -> int:
        """How many slots more match without these clauses."""
        edit = self.edited(dropped)
        return 0 if edit is None else edit.slots - self._able

    def edited(
        self, dropped: Collection[str], requests: Mapping[str, int | float] | None = None
    ) -> SuggestedEdit | None:
        """The job without these clauses and with these requests, if more slots match then."""
        requests = requests or {}
        requirements = self._without(dropped) if dropped else ""
        if requirements is None or not (dropped or requests):
            return None
        changed: dict[str, Scalar] = dict(requests)
        if dropped:
            changed[spelling(self._job, "requirements", "Requirements")] = Expr(requirements)
        slots = self._able_with(changed)
        if slots <= self._able:
            return None
        return SuggestedEdit(
            dropped=list(dropped),
            requirements=requirements,
            requests={name: float(amount) for name, amount in requests.items()},
            slots=slots,
        )

    def _able_with(self, changed: Mapping[str, Scalar]) -> int:
        keys = {name.lower() for name in changed}
        rest = {name: said for name, said in self._job.to_wire().items() if name.lower() not in keys}
        edited = ClassAd.from_wire({**rest, **changed})
        return int(np.count_nonzero(self._explainer.able(edited)))

    def _without(self, dropped: Collection[str]) -> str | None:
        """What is left of its Requirements; None: that cannot be written."""
        stored = self._job.find("requirements")
        if not isinstance(stored, Node):
            return None
        try:
            left = [_joined(clause) for clause in conjuncts(stored) if text_of(clause) not in dropped]
        except NotRepresentable:
            return None
        return " && ".join(left) or "true"


def _joined(clause: Node) -> str:
    """A clause as it stands between others."""
    loose = isinstance(clause, Conditional | Elvis | Logical)
    return f"({unparse(clause)})" if loose else unparse(clause)


def asking(job: ClassAd, name: str, value: Scalar) -> ClassAd:
    """The job with another request."""
    key = f"request{name.lower()}"
    rest = {attribute: said for attribute, said in job.to_wire().items() if attribute.lower() != key}
    return ClassAd.from_wire({**rest, request_spelling(job, name): value})


def request_spelling(job: ClassAd, name: str) -> str:
    """The attribute that asks for a resource, as the job spells it."""
    return spelling(job, f"request{name.lower()}", f"Request{name}")


def spelling(job: ClassAd, key: str, usual: str) -> str:
    """An attribute as the job spells it."""
    return next((attribute for attribute in job if attribute.lower() == key), usual)


def number(amount: float) -> int | float:
    """A whole number where it is one."""
    return int(amount) if amount == int(amount) else amount
