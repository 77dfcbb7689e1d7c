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
from kettle_services.simulator.domain.counting_pool import CountingPool
from kettle_services.simulator.domain.machine import Machine, Slot, rank_of_all
from kettle_services.simulator.domain.slot_numbers import SlotNumbers
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
        self.rank = rank_of_all(slot.ad)
        self.totals = {f"TotalSlot{name}": whole for name, whole in slot.amounts.items()}
        self.left = dict(slot.amounts)
        self.parts: dict[str, Part] = {}
        self.numbers: Final = SlotNumbers()
        self.is_shown = False
        """Whether the pool has its ad, of which nothing but what is left changes."""
        self._claimed: Final[Ad] = {
            **slot.ad,
            **self.left,
            **self.totals,
            "Name": "",
            "SlotType": "",
            "PartitionableSlot": False,
            "DynamicSlot": False,
            "State": "Claimed",
            "Activity": "Busy",
            "CurrentRank": 0.0,
            "SlotWeight": 0.0,
            "PublicClaimId": "",
            "RemoteOwner": "",
            "RemoteUser": "",
            "AccountingGroup": "",
            "RemoteScheddName": "",
        }
        """The ad of any claimed part of it."""
        self._named: Final[dict[int, tuple[str, str]]] = {0: (self.name, self.key)}

    def named(self, number: int) -> tuple[str, str]:
        """The name of a dynamic slot of it, or its own for 0, and the key of its ads."""
        names = self._named.get(number)
        if names is None:
            name = f"slot{self.slot.number}_{number}@{self.startd}"
            names = self._named[number] = name, slot_key(self.startd, name)
        return names

    @property
    def weight(self) -> float:
        """What the unused part of it counts for, or all of one that is not divided."""
        slot = self.slot
        return slot.weight * self.left.get("Cpus", 0) if slot.partitionable else slot.weight

    @property
    def free_ad(self) -> Ad:
        """The ad of what is left of it."""
        slot = self.slot
        return {
            **slot.ad,
            **self.left,
            **self.totals,
            "Name": self.name,
            "SlotType": "Partitionable" if slot.partitionable else "Static",
            "PartitionableSlot": slot.partitionable,
            "DynamicSlot": False,
            "State": "Unclaimed",
            "Activity": "Idle",
            "CurrentRank": 0.0,
            "SlotWeight": self.weight,
        }

    def claimed_ad(self, part: Part, *, submitter: str, schedd: str) -> Ad:
        """The ad of a claimed part of it, but for its CurrentRank."""
        slot, amounts, dynamic = self.slot, part.amounts, bool(part.number)
        ad = self._claimed.copy()
        ad.update(amounts)
        ad.update(zip(self.totals, amounts.values(), strict=True))
        ad.update(
            {
                "Name": part.name,
                "SlotType": "Dynamic" if dynamic else "Static",
                "DynamicSlot": dynamic,
                "SlotWeight": slot.weight * amounts.get("Cpus", 0) if slot.partitionable else slot.weight,
                "PublicClaimId": part.claim,
                "RemoteOwner": submitter,
                "RemoteUser": submitter,
                "AccountingGroup": submitter,
                "RemoteScheddName": schedd,
            }
        )
        return ad


class Startds:
    """All machines that are there."""

    def __init__(self, pool: Pool, *, whole_ads: bool = False) -> None:
        """
        `whole_ads`: the pool gets the whole ads of claimed slots, for somebody who explains; without, what a negotiator looks at.

        In a `CountingPool` dynamic slots only count, until a slot comes whose claims may be matched to others.
        """
        self._pool, self._whole_ads = pool, whole_ads
        self._counting = pool if isinstance(pool, CountingPool) else None
        self._counted = not whole_ads
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
            self._counted &= not made.contested
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
                yield f"{found.startd}.slot{found.slot.number}", found.free_ad

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
        for amounts in _sizes(found, job, context):
            number = found.numbers.smallest if found.slot.partitionable else 0
            name, key = found.named(number)
            part = Part(
                claim=claim,
                startd=found.startd,
                name=name,
                whole=found.name,
                amounts=amounts,
                number=number,
                key=key,
            )
            ad = found.claimed_ad(part, submitter=submitter, schedd=schedd)
            its = ClassAd.from_wire(ad)
            if matches(job, its, context):
                ad["CurrentRank"] = rank(its, job, context) if found.rank is None else found.rank
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
        mine = found.claimed_ad(part, submitter=submitter, schedd=schedd)
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
        if not part.number:
            self._say(found)
            return
        found.numbers.free(part.number)
        if self._counting is not None and self._counting.counts(part.key):
            self._counting.count(part.key, None)
        else:
            self._withdraw(part.key)
        self._unsaid[found.name] = found

    def _take(self, found: _Slot, part: Part, ad: Ad) -> None:
        for name, asked in part.amounts.items():
            found.left[name] -= asked
        found.parts[part.claim] = self._parts[part.claim] = part
        self._named[part.name] = part.claim
        if found.contested or self._whole_ads:
            self._pool.slot(part.key, ad)
            self._pool.secret(part.key, SlotSecret(startd=found.startd, capability=part.name))
        elif self._counting is not None and self._counted and part.number:
            self._counting.count(part.key, ad)
        else:  # it is matched to nobody, so only what it counts for is ever looked at
            self._pool.slot(part.key, {name: ad[name] for name in _COUNTED if name in ad})
            self._pool.secret(part.key, None)
        if part.number:
            found.numbers.take(part.number)
            self._unsaid[found.name] = found
        else:
            found.is_shown = False

    # -- ads ---------------------------------------------------------------------------------------------------------

    def _say(self, found: _Slot) -> None:
        if found.startd in self._draining:
            self._withdraw(found.key)
            found.is_shown = False
        elif found.is_shown and self._counting is not None:
            self._counting.change(found.key, {**found.left, "SlotWeight": found.weight})
        else:
            self._pool.slot(found.key, found.free_ad)
            self._pool.secret(found.key, SlotSecret(startd=found.startd, capability=found.name))
            found.is_shown = True

    def _withdraw(self, slot: str) -> None:
        self._pool.slot(slot, None)
        self._pool.secret(slot, None)


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


def _sizes(found: _Slot, job: ClassAd, context: Context) -> list[dict[str, int]]:
    """
    What the job would get, rounded up as startds do and then as it was asked for, where there is that much left.
    """
    if not found.slot.partitionable:
        return [dict(found.left)]
    rounded: dict[str, int] = {}
    exact: dict[str, int] = {}
    whole: ClassAd | None = None
    for name in found.slot.amounts:
        key = f"request{name.lower()}"
        value: object = job.stored.get(key)
        if type(value) is not int:  # most jobs say a number, which takes no evaluation
            whole = whole or ClassAd.from_wire(found.free_ad)
            try:
                value = evaluate_attribute(key, job, whole, context)
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
