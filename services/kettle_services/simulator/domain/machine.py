"""
Machines as a negotiator sees them and a schedd claims them: whole slots, and partitionable ones that are divided.

What a machine is like follows from the ads of the slots that were claimed on it: those are recorded with the claims.  Of one
on which nothing ever ran only its cores and its memory are recorded.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle.classad import ClassAd, rank
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.machine_abilities import UNLESS_TOLD

_DISK_KIB: Final = 1 << 40
"""Of a machine of which nobody has recorded how much it has."""
_LIMITS: Final = (
    "(TARGET.RequestCpus ?: 1) <= MY.Cpus && (TARGET.RequestMemory ?: 128) <= MY.Memory"
    " && (TARGET.RequestDisk ?: 1024) <= MY.Disk"
)
_OF_CLAIMS: Final = frozenset({
    "accountinggroup", "activity", "clientmachine", "currentrank", "dslotid", "enteredcurrentactivity",
    "enteredcurrentstate", "globaljobid", "jobid", "jobstart", "mycurrenttime", "parentslotid", "preemptingaccountinggroup",
    "preemptingowner", "preemptingrank", "preemptinguser", "publicclaimid", "remoteowner", "remotescheddname", "remoteuser",
    "startdname", "state", "totaljobsuspendtime",
})  # fmt: skip
"""Attributes (in lower case) of a slot's ad that belong to its claim, or are written again."""


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot as it is when nobody has it; a partitionable one with all that it has."""

    number: int
    partitionable: bool
    ad: Ad
    amounts: dict[str, int]
    """By resource, as the ad names it: cores, MiB, KiB, pieces."""
    weight: float
    """SlotWeight: of a core if it is partitionable, else of all of it."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine with its slots."""

    name: str
    slots: tuple[Slot, ...]
    guessed: bool = False
    """Only its cores and its memory are recorded."""


def bare(name: str, cpus: int, memory: int, like: Machine | None = None) -> Machine:
    """
    A machine of which only cores and memory (MiB) are known: one partitionable slot.

    Its other attributes are those of the machine `like`; without one it accepts every job.
    """
    ad: Ad = {
        "Arch": "X86_64",
        "OpSys": "LINUX",
        **UNLESS_TOLD,
        "Start": True,
        "Requirements": Expr("Start && WithinResourceLimits"),
        "WithinResourceLimits": Expr(_LIMITS),
        "Rank": 0.0,
    }
    disk, weight = _DISK_KIB, 1.0
    if like is not None and like.slots:
        model = like.slots[0]
        ad = dict(model.ad)
        disk = sum(slot.amounts.get("Disk", 0) for slot in like.slots)
        weight = model.weight if model.partitionable else 1.0
    amounts = {"Cpus": cpus, "Memory": memory, "Disk": disk}
    ad |= {"MyType": "Machine", "Name": f"slot1@{name}", "Machine": name, "SlotID": 1, "TotalSlots": 1}
    ad |= {f"Total{key}": value for key, value in amounts.items()}
    slot = Slot(number=1, partitionable=True, ad=ad, amounts=amounts, weight=weight)
    return Machine(name=name, slots=(slot,), guessed=True)


def recorded(name: str, ads: Mapping[int, Ad]) -> Machine:
    """
    A machine by the ads of slots as they were claimed, by number of the slot or of the one that it was a part of.

    A partitionable slot has what the machine has if that has one slot only, else an equal part of it.
    """
    slots = [_slot(name, number, ad) for number, ad in sorted(ads.items())]
    return Machine(name=name, slots=tuple(slots))


def _slot(name: str, number: int, claimed: Ad) -> Slot:
    partitionable = claimed.get("SlotType") == "Dynamic"
    named = [key.removeprefix("TotalSlot") for key in claimed if key.startswith("TotalSlot")]
    resources = [key for key in named if key in claimed and key != "s"]
    parts = max(1, _whole(claimed.get("TotalSlots", 1)))
    amounts: dict[str, int] = {}
    for key in resources:
        total = claimed.get(f"Total{key}", claimed.get(key, 0))
        amounts[key] = _whole(total) // parts if partitionable else _whole(claimed.get(key, 0))
    cores = max(1.0, float(_whole(claimed.get("Cpus", 1))))
    weight = claimed.get("SlotWeight", cores)
    weight = float(weight) if isinstance(weight, int | float) else cores
    ad: Ad = {
        key: value
        for key, value in claimed.items()
        if key.lower() not in _OF_CLAIMS
        and not key.startswith(("TotalSlot", "Child", "Assigned", "Available"))
    }
    if claimed.get("Requirements") is False:  # it was claimed when the slot was about to end
        ad["Requirements"] = Expr("Start && WithinResourceLimits")
    ad |= {"Name": f"slot{number}@{name}", "Machine": name, "SlotID": number, "TotalSlots": parts}
    return Slot(
        number=number,
        partitionable=partitionable,
        ad=ad,
        amounts=amounts,
        weight=weight / cores if partitionable else weight,
    )


def _whole(value: Scalar) -> int:
    return int(value) if isinstance(value, int | float) and value == value else 0  # noqa: PLR0124 - not a number


def changed(machine: Machine, said: Ad) -> Machine:
    """The machine if all its slots had these attributes too."""
    return msgspec.structs.replace(
        machine,
        slots=tuple(msgspec.structs.replace(slot, ad={**slot.ad, **said}) for slot in machine.slots),
    )


def renamed(machine: Machine, name: str) -> Machine:
    """Another machine that is the same."""
    slots = tuple(
        msgspec.structs.replace(slot, ad={**slot.ad, "Name": f"slot{slot.number}@{name}", "Machine": name})
        for slot in machine.slots
    )
    return msgspec.structs.replace(machine, name=name, slots=slots)


def cores(machines: Iterable[Machine]) -> int:
    """Of all these."""
    return sum(slot.amounts.get("Cpus", 0) for machine in machines for slot in machine.slots)


def rank_of_all(ad: Ad) -> float | None:
    """What the slot's Rank is whatever the job, if it is a number; None: it has to be evaluated."""
    said = [value for name, value in ad.items() if name.lower() == "rank"]
    if len(said) != 1 or type(said[0]) not in (int, float):
        return None
    return rank(ClassAd.from_wire({"Rank": said[0]}), ClassAd())
