"""What a job asks of a slot: amounts of resources, some of which may depend on the slot."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias, overload

import msgspec
import numpy as np

from kettle.classad import (
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    Node,
    Value,
    evaluate_attribute,
    references,
)
from kettle.classad.columnar import Evaluator
from kettle.classad.reference_analysis import hides

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Reals: TypeAlias = npt.NDArray[np.float64]

RESOURCES: Final = ("Cpus", "Memory", "Disk")
QUANTA: Final[Mapping[str, int]] = {"Cpus": 1, "Memory": 128, "Disk": 1024}
"""A startd rounds a request up to these (MODIFY_REQUEST_EXPR_REQUEST*): cores, MiB, KiB."""
_DEFAULT: Final[Mapping[str, float]] = {"Cpus": 1, "Memory": 128, "Disk": 1024}
_ASKING: Final = "request"
LIMIT: Final = 2.0**53
"""Amounts are compared as reals, which stop to count one by one here."""


def amount(value: Value | None) -> float | None:
    """
    The amount that a value is: a number that is neither negative nor beyond counting; None for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and 0 <= value < LIMIT else None


@overload
def quantized(name: str, asked: float) -> float: ...
@overload
def quantized(name: str, asked: Reals) -> Reals: ...
@overload
def quantized(name: str, asked: float | Reals) -> float | Reals: ...
def quantized(name: str, asked: float | Reals) -> float | Reals:
    """The amount that a startd would carve out."""
    quantum = QUANTA[name]
    return -(-asked // quantum) * quantum


class Amounts(msgspec.Struct, frozen=True):
    """
    So much of each of `RESOURCES`, and so many pieces of custom resources, by their names in lower case.
    """

    asked: dict[str, float]
    custom: dict[str, int] = {}

    def quantized(self, name: str) -> float:
        """The amount that a startd would carve out."""
        return quantized(name, self.asked[name])


class Request:
    """
    What one job asks of each slot.

    An expression that asks something of the slot is evaluated for each slot, everything else once.
    `fault` names what can be no request for any slot.
    """

    def __init__(self, job: ClassAd, context: Context) -> None:
        self._job = job
        self._context = context
        self.varying = tuple(name for name in RESOURCES if _asks_slot(job, name))
        self.fixed: dict[str, float] = {}
        self.fault: str | None = None
        self._unanswered = False
        """Slots were asked, and for none of them was what varies an amount."""
        self._answered = not self.varying
        for name in RESOURCES:
            if name not in self.varying:
                self._fix(name)
        self.custom = self._pieces()
        """
        Custom resources of which every slot is asked for the same number of pieces, by name in lower case.
        """
        self._same = Amounts(self.fixed, self.custom)

    def _pieces(self) -> dict[str, int]:
        standard = {name.lower() for name in RESOURCES}
        names = {name.lower().removeprefix(_ASKING) for name in self._job if name.lower().startswith(_ASKING)}
        pieces: dict[str, int] = {}
        for name in names - standard:
            if _asks_slot(self._job, name):
                continue
            try:
                found = amount(evaluate_attribute(f"{_ASKING}{name}", self._job, None, self._context))
            except EvaluationFailed:
                continue
            if found:
                pieces[name] = math.ceil(found)
        return pieces

    def _fix(self, name: str) -> None:
        try:
            value = evaluate_attribute(f"Request{name}", self._job, None, self._context)
        except EvaluationFailed:
            value = None
        found = _DEFAULT[name] if value is UNDEFINED else amount(value)
        if found is None:
            self.fault = self.fault or f"Request{name} is no amount"
        else:
            self.fixed[name] = found

    def of(self, slots: Evaluator) -> dict[str, Reals]:
        """The varying part of what is asked of each of some slots; not a number where that is no amount."""
        asked: dict[str, Reals] = {}
        for name in self.varying:
            found = slots.amounts(f"request{name.lower()}", _DEFAULT[name])
            with np.errstate(invalid="ignore"):
                asked[name] = np.where((found >= 0) & (found < LIMIT), found, np.nan)
        if not self._answered and slots.count:
            answers = [~np.isnan(asked[name]) for name in self.varying]
            self._answered = bool(np.logical_and.reduce(answers).any())
            self._unanswered = not self._answered
        return asked

    def amounts(self, asked: Mapping[str, float | Reals], position: int) -> Amounts:
        """What is asked of one of some slots."""
        if not self.varying:
            return self._same
        return Amounts(
            {
                name: float(amount[position]) if isinstance(amount, np.ndarray) else amount
                for name, amount in asked.items()
            },
            self.custom,
        )

    def failure(self) -> str | None:
        """Why no slot was asked for anything, if none of those that were looked at could be."""
        if self.fault is None and self._unanswered:
            return f"{' or '.join('Request' + name for name in self.varying)} is no amount for any slot"
        return self.fault


def _asks_slot(job: ClassAd, name: str) -> bool:
    stored = job.find(f"request{name.lower()}")
    if not isinstance(stored, Node):
        return False
    found = references(stored, job)
    behind = (job.find(key.lower()) for key in found.internal)
    return bool(found.external) or any(hides(one) for one in (stored, *behind) if isinstance(one, Node))
