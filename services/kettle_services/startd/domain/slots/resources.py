"""What a machine has, what a job asks for, and how much of it a dynamic slot gets."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import msgspec

from kettle.classad import (
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    Node,
    Value,
    evaluate,
    evaluate_attribute,
)


class Resources(msgspec.Struct, frozen=True):
    """An amount of a machine."""

    cpus: int
    memory: int
    """MiB."""
    disk: int
    """KiB."""
    custom: dict[str, int] = {}
    """
    Of each resource that the administrator or a discovery has named (MACHINE_RESOURCE_<tag>), by its tag.
    """

    def __sub__(self, other: "Resources") -> "Resources":
        left = {tag: count - other.custom.get(tag, 0) for tag, count in self.custom.items()}
        return Resources(self.cpus - other.cpus, self.memory - other.memory, self.disk - other.disk, left)

    def __add__(self, other: "Resources") -> "Resources":
        tags = {**self.custom, **other.custom}
        both = {tag: self.custom.get(tag, 0) + other.custom.get(tag, 0) for tag in tags}
        return Resources(self.cpus + other.cpus, self.memory + other.memory, self.disk + other.disk, both)

    def fits(self, room: "Resources") -> bool:
        """Whether there is room for it."""
        own = self.cpus <= room.cpus and self.memory <= room.memory and self.disk <= room.disk
        return own and all(count <= room.custom.get(tag, 0) for tag, count in self.custom.items())

    def within(self, room: "Resources") -> "Resources":
        """As much of it as there is room for, and never less than nothing."""
        return Resources(
            max(0, min(self.cpus, room.cpus)),
            max(0, min(self.memory, room.memory)),
            max(0, min(self.disk, room.disk)),
            {tag: max(0, min(count, room.custom.get(tag, 0))) for tag, count in self.custom.items()},
        )

    def named(self) -> dict[str, int]:
        """Each amount by the name that it has in ads."""
        return {"Cpus": self.cpus, "Memory": self.memory, "Disk": self.disk, **self.custom}


def of_names(amounts: Mapping[str, int]) -> Resources:
    """The inverse of `Resources.named`."""
    custom = {name: amount for name, amount in amounts.items() if name not in STANDARD}
    return Resources(amounts["Cpus"], amounts["Memory"], amounts["Disk"], custom)


STANDARD: Final[Mapping[str, int]] = {"Cpus": 1, "Memory": 128, "Disk": 1024}
"""What every machine has: cores, MiB, KiB; and how much of each a job gets that does not say."""

QUANTA: Final[Mapping[str, int]] = {"Memory": 128, "Disk": 1024}
"""Slots are carved in multiples of these, so that they can be used again (MODIFY_REQUEST_EXPR_REQUEST*)."""


class Carving(msgspec.Struct, frozen=True):
    """How the size of a dynamic slot follows from what its job requests."""

    modify: dict[str, Node] = {}
    """
    By the resource's name: an expression of the job (its target is the slot) in the place of rounding up to `QUANTA`.
    """
    must: bool = False
    """The request as it is is not tried where the modified one does not fit (MUST_MODIFY_REQUEST_EXPRS)."""


def requested(job: ClassAd, slot: ClassAd, tags: Iterable[str], context: Context) -> Resources | None:
    """
    What the job asks of this slot; None if it asks for what is no amount: negative, not finite, beyond 2**53, no number,
    or an expression that cannot be evaluated.
    """
    defaults = {**STANDARD, **dict.fromkeys(tags, 0)}
    amounts: dict[str, int] = {}
    for name, default in defaults.items():
        amount = _amount(partial(evaluate_attribute, f"Request{name}", job, slot, context), default)
        if amount is None:
            return None
        amounts[name] = amount
    return of_names(amounts)


def modified(
    request: Resources, job: ClassAd, slot: ClassAd, carving: Carving, context: Context
) -> Resources | None:
    """
    The request as this machine carves; None if an expression of the administrator's makes no amount of it.
    """
    amounts: dict[str, int] = {}
    for name, asked in request.named().items():
        expression = carving.modify.get(name)
        if expression is None:
            amounts[name] = _round_up(asked, QUANTA.get(name, 1))
            continue
        amount = _amount(partial(evaluate, expression, job, slot, context), asked)
        if amount is None:
            return None
        amounts[name] = amount
    return of_names(amounts)


def _amount(evaluation: Callable[[], Value], default: int) -> int | None:
    try:
        value = evaluation()
    except EvaluationFailed:
        return None
    if value is UNDEFINED:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return -int(-value // 1) if 0 <= value < 2**53 else None


def sizes(
    request: Resources, job: ClassAd, slot: ClassAd, carving: Carving, context: Context
) -> list[Resources]:
    """
    The sizes that a dynamic slot may have, the best first: the request modified, then, unless that is forbidden, as it is.
    """
    changed = modified(request, job, slot, carving, context)
    if changed is None:
        return [] if carving.must else [request]
    return [changed] if carving.must else [changed, request]


def _round_up(amount: int, quantum: int) -> int:
    return -(-amount // quantum) * quantum
