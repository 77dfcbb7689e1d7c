"""What a job asks of a slot: amounts of resources, some of which may depend on the slot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.classad import (
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    Node,
    Value,
    evaluate_attribute,
    external_references,
)

RESOURCES: Final = ("Cpus", "Memory", "Disk")
QUANTA: Final[Mapping[str, int]] = {"Cpus": 1, "Memory": 128, "Disk": 1024}
"""A startd rounds a request up to these (MODIFY_REQUEST_EXPR_REQUEST*): cores, MiB, KiB."""
_DEFAULT: Final[Mapping[str, float]] = {"Cpus": 1, "Memory": 128, "Disk": 1024}
_LIMIT: Final = 2.0**53
"""Amounts are counted in floats, which stop to count one by one here."""


def amount(value: Value | None) -> float | None:
    """The amount that a value is: a number that is neither negative nor beyond counting; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and 0 <= value < _LIMIT else None


class Amounts(msgspec.Struct, frozen=True):
    """So much of each of `RESOURCES`."""

    asked: dict[str, float]

    def quantized(self, name: str) -> float:
        """The amount that a startd would carve out."""
        quantum = QUANTA[name]
        return -(-self.asked[name] // quantum) * quantum


class Request:
    """
    What one job asks of each slot.

    An expression that asks something of the slot is evaluated once for each slot, everything else once.
    `fault` names what can be no request for any slot.
    """

    def __init__(self, job: ClassAd, context: Context) -> None:
        self._job = job
        self._context = context
        self._varying = frozenset(name for name in RESOURCES if _asks_slot(job, name))
        self._fixed: dict[str, float] = {}
        self._of: dict[str, Amounts | None] = {}
        self.fault: str | None = None
        for name in RESOURCES:
            if name not in self._varying:
                self._fix(name)

    def _fix(self, name: str) -> None:
        value = self._evaluated(name, None)
        if value is None:
            self.fault = self.fault or f"Request{name} is no amount"
        else:
            self._fixed[name] = value

    def of(self, slot: str, ad: ClassAd) -> Amounts | None:
        """What is asked of a slot, by the slot's key and as it was when first asked; None if it is no amount."""
        if self.fault is not None:
            return None
        shared = slot if self._varying else ""
        if shared not in self._of:
            self._of[shared] = self._amounts(ad)
        return self._of[shared]

    def _amounts(self, ad: ClassAd) -> Amounts | None:
        asked: dict[str, float] = {}
        for name in RESOURCES:
            value = self._evaluated(name, ad) if name in self._varying else self._fixed[name]
            if value is None:
                return None
            asked[name] = value
        return Amounts(asked)

    def _evaluated(self, name: str, target: ClassAd | None) -> float | None:
        try:
            value = evaluate_attribute(f"Request{name}", self._job, target, self._context)
        except EvaluationFailed:
            return None
        return _DEFAULT[name] if value is UNDEFINED else amount(value)

    def failure(self) -> str | None:
        """Why no slot was asked for anything, if none of those that were looked at could be."""
        if self.fault is None and self._of and not any(self._of.values()):
            return f"{' or '.join('Request' + n for n in RESOURCES if n in self._varying)} is no amount for any slot"
        return self.fault


def _asks_slot(job: ClassAd, name: str) -> bool:
    stored = job.find(f"request{name.lower()}")
    return isinstance(stored, Node) and bool(external_references(stored, job))
