"""
What startds do when a schedd claims a slot: look whether job and slot suit each other, carve the part out, say how it stands.

The ads go into the negotiator's own picture of the pool at once: simulated news takes no time.
"""

import math
from collections.abc import Iterator
from typing import Final

import msgspec

from kettle.classad import (
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    evaluate_attribute,
    matches,
    rank,
)
from kettle.matchmaking.request import QUANTA, amount
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.simulator.domain.machine import Machine, Slot
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SlotSecret
from kettle_wire.subjects import slot_key

_COUNTED: Final = (
    "Name", "State", "Cpus", "SlotWeight", "PartitionableSlot", "DynamicSlot", "AccountingGroup", "RemoteUser",
)  # fmt: skip
"""What a negotiator adds up of slots that it cannot match."""
_DEFAULT: Final = {"Cpus": 1, "Memory": 128, "Disk": 1024}


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim has: some of a partitionable slot, or all of another."""

    claim: str
    startd: str
    name: str
    """Of the dynamic slot, or of the slot."""
    whole: str
    """Name of the slot that it is a part of."""
    amounts: dict[str, int]
    number: int
    """Of the dynamic slot; 0: it is a whole slot."""
    key: str
    """Of the slot's ads."""


class _Slot:
    """A slot of a machine that is there."""

    def __init__(self, startd: str, slot: Slot) -> None:
        self.startd = startd
        self.slot = slot
        self.name = f"slot{slot.number}@{startd}"
        self.key = slot_key(startd, self.name)
        self.contested = _ranks(slot.ad)
        """Whether claims of it may be matched to others."""
        self.totals = {f"TotalSlot{name}": whole for name, whole in slot.amounts.items()}
        self.left = dict(slot.amounts)
        self.parts: dict[str, Part] = {}

    def free_number(self) -> int:
        """The smallest that no dynamic slot of it has."""
        taken = {part.number for part in self.parts.values()}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)


class Startds:
    """All machines that are there."""

    def __init__(self, pool: Pool, *, whole_ads: bool = False) -> None:
        """
        `whole_ads`: the pool gets the whole ads of claimed slots, for somebody who explains; without, what a negotiator looks at.
        """
        self._pool, self._whole_ads = pool, whole_ads
        self._slots: dict[str, _Slot] = {}
        self._of: dict[str, list[str]] = {}
        self._parts: dict[str, Part] = {}
        self._named: dict[str, str] = {}
        """Claims by the names of their slots."""
        self._unsaid: dict[str, _Slot] = {}
        """Slots of which less or more is left than their ads in the pool say."""
        self._draining: set[str] = set()
        """Machines that take no more jobs."""

    # -- machines ----------------------------------------------------------------------------------------------------

    def join(self, machine: Machine) -> None:
        """A machine has joined; nothing of it is in use."""
        if machine.name in self._of:
            return
        self._of[machine.name] = []
        for slot in machine.slots:
            made = _Slot(machine.name, slot)
            self._slots[made.name] = made
            self._of[machine.name].append(made.name)
            self._say(made)

    def advertise(self) -> None:
        """Bring the pool's ads up to date, before somebody looks at them."""
        for slot in self._unsaid.values():
            self._say(slot)
        self._unsaid.clear()

    def claims_on(self, machine: str) -> list[str]:
        """The claims on a machine."""
        return [claim for slot in self._of.get(machine, []) for claim in self._slots[slot].parts]

    def leave(self, name: str) -> None:
        """A machine goes, with all claims on it."""
        for claim in self.claims_on(name):
            self.free(claim)
        self._draining.discard(name)
        for slot in self._of.pop(name, []):
            self._unsaid.pop(slot, None)
            self._withdraw(self._slots.pop(slot).key)

    def drain(self, name: str) -> None:
        """A machine takes no more jobs, if it is there; those that run there go on."""
        if name not in self._of:
            return
        self._draining.add(name)
        for slot in self._of[name]:
            self._say(self._slots[slot])

    def drains(self, claim: str) -> bool:
        """Whether the machine of a claim takes no more jobs."""
        return bool(self._draining) and self._parts[claim].startd in self._draining

    def free_ads(self) -> Iterator[tuple[str, Ad]]:
        """What is left of all slots of machines that take jobs, by machine and slot."""
        for found in self._slots.values():
            if found.startd not in self._draining and (found.slot.partitionable or not found.parts):
                yield f"{found.startd}.slot{found.slot.number}", self._free_ad(found)

    @property
    def machines(self) -> list[str]:
        """The names of those that are there."""
        return list(self._of)

    @property
    def parts(self) -> list[Part]:
        """What is claimed."""
        return list(self._parts.values())

    def left(self, slot: str) -> dict[str, int]:
        """The unused part of a slot."""
        return dict(self._slots[slot].left)

    # -- claims ------------------------------------------------------------------------------------------------------

    def whole(self, claim: str) -> str:
        """The name of the slot that a claim has, or has a part of."""
        return self._parts[claim].whole

    def holder(self, slot: str) -> str | None:
        """The claim that has a slot, by the slot's name."""
        return self._named.get(slot)

    def claim(
        self, slot: str, job: ClassAd, *, claim: str, submitter: str, schedd: str, context: Context
    ) -> Ad | None:
        """
        Make a dynamic slot for a job, or give it the slot; returns the ad of the claimed slot.

        None: the slot has left or is too small by now, or job and slot do not match.
        """
        found = self._slots.get(slot)
        if found is None or found.startd in self._draining or (not found.slot.partitionable and found.parts):
            return None
        whole = ClassAd.from_wire(self._free_ad(found))
        for amounts in _sizes(found, job, whole, context):
            part = Part(
                claim=claim,
                startd=found.startd,
                name=found.name,
                whole=found.name,
                amounts=amounts,
                number=found.free_number() if found.slot.partitionable else 0,
                key=found.key,
            )
            part = _named(part, found)
            ad = self._claimed_ad(found, part, submitter=submitter, schedd=schedd)
            its = ClassAd.from_wire(ad)
            if matches(job, its, context):
                ad["CurrentRank"] = rank(its, job, context)
                self._take(found, part, ad)
                return ad
        return None

    def restore(self, slot: str, ad: Ad, *, claim: str, submitter: str, schedd: str) -> bool:
        """
        Count a claim that there was already, with its ad; whether its machine is there and has that much.
        """
        number, _, startd = slot.partition("@")
        parent, _, part_number = number.removeprefix("slot").partition("_")
        found = self._slots.get(f"slot{parent}@{startd}")
        if found is None:
            return False
        amounts = {name: _amount(ad, name) for name in found.slot.amounts}
        if any(found.left[name] < asked for name, asked in amounts.items()):
            return False
        part = Part(
            claim=claim,
            startd=found.startd,
            name=slot,
            whole=found.name,
            amounts=amounts,
            number=int(part_number) if part_number.isdecimal() else 0,
            key=slot_key(found.startd, slot),
        )
        mine = self._claimed_ad(found, part, submitter=submitter, schedd=schedd)
        current = ad.get("CurrentRank")
        mine["CurrentRank"] = float(current) if isinstance(current, int | float) else 0.0
        self._take(found, part, mine)
        return True

    def free(self, claim: str) -> None:
        """A claim is over; what it had may be claimed again."""
        part = self._parts.pop(claim, None)
        if part is None:
            return
        found = self._slots[part.whole]
        del found.parts[claim], self._named[part.name]
        for name, amount_ in part.amounts.items():
            found.left[name] += amount_
        if part.number:
            self._withdraw(part.key)
            self._unsaid[found.name] = found
        else:
            self._say(found)

    def _take(self, found: _Slot, part: Part, ad: Ad) -> None:
        for name, asked in part.amounts.items():
            found.left[name] -= asked
        found.parts[part.claim] = self._parts[part.claim] = part
        self._named[part.name] = part.claim
        if found.contested or self._whole_ads:
            self._pool.slot(part.key, ad)
            self._pool.secret(part.key, SlotSecret(startd=found.startd, capability=part.name))
        else:  # it is matched to nobody, so only what it counts for is ever looked at
            self._pool.slot(part.key, {name: ad[name] for name in _COUNTED if name in ad})
            self._pool.secret(part.key, None)
        if part.number:
            self._unsaid[found.name] = found

    # -- ads ---------------------------------------------------------------------------------------------------------

    def _say(self, found: _Slot) -> None:
        if found.startd in self._draining:
            self._withdraw(found.key)
            return
        self._pool.slot(found.key, self._free_ad(found))
        self._pool.secret(found.key, SlotSecret(startd=found.startd, capability=found.name))

    def _withdraw(self, slot: str) -> None:
        self._pool.slot(slot, None)
        self._pool.secret(slot, None)

    @staticmethod
    def _free_ad(found: _Slot) -> Ad:
        slot = found.slot
        weight = slot.weight * found.left.get("Cpus", 0) if slot.partitionable else slot.weight
        return {
            **slot.ad,
            **found.left,
            **found.totals,
            "Name": found.name,
            "SlotType": "Partitionable" if slot.partitionable else "Static",
            "PartitionableSlot": slot.partitionable,
            "DynamicSlot": False,
            "State": "Unclaimed",
            "Activity": "Idle",
            "CurrentRank": 0.0,
            "SlotWeight": weight,
        }

    @staticmethod
    def _claimed_ad(found: _Slot, part: Part, *, submitter: str, schedd: str) -> Ad:
        slot = found.slot
        weight = slot.weight * part.amounts.get("Cpus", 0) if slot.partitionable else slot.weight
        return {
            **slot.ad,
            **part.amounts,
            **{f"TotalSlot{name}": whole for name, whole in part.amounts.items()},
            "Name": part.name,
            "SlotType": "Dynamic" if part.number else "Static",
            "PartitionableSlot": False,
            "DynamicSlot": bool(part.number),
            "State": "Claimed",
            "Activity": "Busy",
            "CurrentRank": 0.0,
            "SlotWeight": weight,
            "PublicClaimId": part.claim,
            "RemoteOwner": submitter,
            "RemoteUser": submitter,
            "AccountingGroup": submitter,
            "RemoteScheddName": schedd,
        }


def _named(part: Part, found: _Slot) -> Part:
    if not part.number:
        return part
    name = f"slot{found.slot.number}_{part.number}@{found.startd}"
    return msgspec.structs.replace(part, name=name, key=slot_key(found.startd, name))


def _ranks(ad: Ad) -> bool:
    """
    Whether the slot has a Rank that distinguishes jobs, or permits preemption by priorities: then its claim may be
    matched to others.
    """
    says = ad.get("Rank", 0.0)
    return ad.get("UserPreemption") is True or not isinstance(says, int | float)


def _amount(ad: Ad, name: str) -> int:
    value = ad.get(name, 0)
    return int(value) if isinstance(value, int | float) else 0


def _sizes(found: _Slot, job: ClassAd, whole: ClassAd, context: Context) -> list[dict[str, int]]:
    """
    What the job would get, rounded up as startds do and then as it was asked for, where there is that much left.
    """
    if not found.slot.partitionable:
        return [dict(found.left)]
    rounded: dict[str, int] = {}
    exact: dict[str, int] = {}
    for name in found.slot.amounts:
        said = job.stored.get(f"request{name.lower()}")
        try:  # most jobs say a number, which takes no evaluation
            value = said if type(said) is int else evaluate_attribute(f"Request{name}", job, whole, context)
        except EvaluationFailed:
            return []
        asked = _DEFAULT.get(name, 0) if value is UNDEFINED else amount(value)
        if asked is None:
            return []
        quantum = QUANTA.get(name, 1)
        exact[name] = math.ceil(asked)
        rounded[name] = -(-exact[name] // quantum) * quantum
    both = [rounded] if rounded == exact else [rounded, exact]
    return [each for each in both if all(asked <= found.left[name] for name, asked in each.items())]
