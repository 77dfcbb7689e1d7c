"""
What a machine has, what a job asks for, and how much of it a dynamic slot gets.
"""

from typing import Final

import msgspec

from kettle.classad import UNDEFINED, ClassAd, Context, EvaluationFailed, evaluate_attribute


class Resources(msgspec.Struct, frozen=True):
    """
    An amount of a machine.
    """

    cpus: int
    memory: int
    """MiB."""
    disk: int
    """KiB."""

    def __sub__(self, other: "Resources") -> "Resources":
        return Resources(self.cpus - other.cpus, self.memory - other.memory, self.disk - other.disk)

    def fits(self, room: "Resources") -> bool:
        """
        Whether there is room for it.
        """
        return self.cpus <= room.cpus and self.memory <= room.memory and self.disk <= room.disk


DEFAULT: Final = Resources(cpus=1, memory=128, disk=1024)
"""What a job gets that does not say."""

QUANTUM: Final = Resources(cpus=1, memory=128, disk=1024)
"""MODIFY_REQUEST_EXPR_REQUEST*: slots are carved in multiples of it, so that they can be used again."""


def requested(job: ClassAd, slot: ClassAd, context: Context) -> Resources | None:
    """
    What the job asks of this slot; None if it asks for what is no amount: negative, not finite, beyond 2**53, no number,
    or an expression that cannot be evaluated.
    """
    amounts = [
        _amount(job, slot, name, default, context)
        for name, default in (
            ("RequestCpus", DEFAULT.cpus),
            ("RequestMemory", DEFAULT.memory),
            ("RequestDisk", DEFAULT.disk),
        )
    ]
    cpus, memory, disk = amounts
    return None if cpus is None or memory is None or disk is None else Resources(cpus, memory, disk)


def _amount(job: ClassAd, slot: ClassAd, name: str, default: int, context: Context) -> int | None:
    try:
        value = evaluate_attribute(name, job, slot, context)
    except EvaluationFailed:
        return None
    if value is UNDEFINED:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return -int(-value // 1) if 0 <= value < 2**53 else None


def carve(request: Resources, room: Resources) -> Resources | None:
    """
    The size of the dynamic slot: the request rounded up, or as it is if the rounded one no longer fits; None: no room.
    """
    rounded = Resources(
        cpus=_round_up(request.cpus, QUANTUM.cpus),
        memory=_round_up(request.memory, QUANTUM.memory),
        disk=_round_up(request.disk, QUANTUM.disk),
    )
    return next((size for size in (rounded, request) if size.fits(room)), None)


def _round_up(amount: int, quantum: int) -> int:
    return -(-amount // quantum) * quantum
