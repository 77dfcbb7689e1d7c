"""How slot types divide a machine."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from kettle_services.startd.domain.slots.resources import Resources, of_names
from kettle_services.startd.domain.slots.slot import Slot, whole_machine

Share = int | str
"""
An amount (cores, MiB, KiB, pieces), a part of the machine ("25%", "1/4"), or "auto": an equal part of what is left.
"""

_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_FRACTION: Final = re.compile(r"(\d+)\s*/\s*([1-9]\d*)")


_NONE: Final = (0, "0", "auto")
"""
Allowed values for a resource that the machine does not have, so that one file of settings can serve many machines.
"""


class SlotType(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """So many slots that are alike."""

    count: int = 1
    partitionable: bool = False
    cpus: Share = "auto"
    memory: Share = "auto"
    disk: Share = "auto"
    resources: dict[str, Share] = {}
    """Of custom resources, by tag; those that are not named are "auto"."""

    def share(self, name: str) -> Share:
        """What it says about a resource, by its name in ads."""
        if name in {"Cpus", "Memory", "Disk"}:
            return {"Cpus": self.cpus, "Memory": self.memory, "Disk": self.disk}[name]
        named = {tag.lower(): share for tag, share in self.resources.items()}
        return named.get(name.lower(), "auto")


class LayoutError(ValueError):
    """The slot types cannot divide this machine; the message is a sentence that says why."""


def lay_out(
    types: Sequence[SlotType], total: Resources, devices: Mapping[str, tuple[str, ...]]
) -> tuple[Slot, ...]:
    """
    The slots; without types one partitionable slot with everything.

    Raises:
        LayoutError: they ask for more than there is, for what there is not, or leave a slot without a core.
    """
    if not types:
        return whole_machine(total, devices)
    _check(types, total)
    kinds = [number for number, kind in enumerate(types, 1) for _ in range(kind.count)]
    amounts = {name: _divide(name, whole, types, kinds) for name, whole in total.named().items()}
    for slot, cpus in enumerate(amounts["Cpus"]):
        if cpus < 1:
            raise LayoutError(
                f"slot type {kinds[slot]} gets no core; the machine has {total.cpus} for {len(kinds)} slots."
            )
        for name, whole in (("memory", total.memory), ("disk", total.disk)):
            if (
                whole >= len(kinds) and not amounts[name.title()][slot]
            ):  # otherwise there is none, no matter who shares it
                raise LayoutError(f"slot type {kinds[slot]} gets no {name}, which every job needs.")
    given = dict.fromkeys(devices, 0)
    slots: list[Slot] = []
    for place, kind in enumerate(kinds):
        own: dict[str, tuple[str, ...]] = {}
        for tag, ids in devices.items():
            own[tag] = ids[given[tag] : given[tag] + amounts[tag][place]]
            given[tag] += len(own[tag])
        slots.append(
            Slot(
                number=place + 1,
                type=kind,
                partitionable=types[kind - 1].partitionable,
                total=of_names({name: each[place] for name, each in amounts.items()}),
                devices=own,
            )
        )
    return tuple(slots)


def _check(types: Sequence[SlotType], total: Resources) -> None:
    tags = {tag.lower() for tag in total.custom}
    for number, kind in enumerate(types, 1):
        if kind.count < 0:
            raise LayoutError(f"slot type {number} has a count of {kind.count}.")
        for tag, share in kind.resources.items():
            if tag.lower() not in tags and share not in _NONE:
                raise LayoutError(
                    f"slot type {number} wants {tag}, which this machine does not have; it has "
                    f"{', '.join(total.custom) or 'no custom resources'}."
                )
    if not any(kind.count for kind in types):
        raise LayoutError("there is no slot type with a count above 0.")


def _divide(name: str, whole: int, types: Sequence[SlotType], kinds: Sequence[int]) -> list[int]:
    """How much of one resource each slot gets; what cannot be divided evenly goes to the first ones."""
    shares = [
        _amount(types[kind - 1].share(name), whole, f"{name.lower()} of slot type {kind}") for kind in kinds
    ]
    left = whole - sum(share for share in shares if share is not None)
    if left < 0:
        raise LayoutError(f"the slot types ask for {whole - left} of {name}, but the machine has {whole}.")
    takers = shares.count(None)
    amounts: list[int] = []
    for share in shares:
        if share is None:
            amounts.append(-(-left // takers))
            left, takers = left - amounts[-1], takers - 1
        else:
            amounts.append(share)
    return amounts


def _amount(share: Share, whole: int, what: str) -> int | None:
    """None: an equal part of what is left."""
    if isinstance(share, int):
        if share >= 0:
            return share
    elif share.strip().lower() == "auto":
        return None
    elif share.strip().isdecimal():
        return int(share)
    elif (percent := _PERCENT.fullmatch(share.strip())) is not None:
        return int(Fraction(percent[1]) / 100 * whole)
    elif (part := _FRACTION.fullmatch(share.strip())) is not None:
        return int(Fraction(int(part[1]), int(part[2])) * whole)
    raise LayoutError(f'{what}: {share!r} is none of an amount, "25%", "1/4" and "auto".')
