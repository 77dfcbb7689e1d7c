"""
The machine: what it is, and the fold of everything that happened to its claims.
"""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from kettle.startd.domain.claim import (
    Begun,
    Change,
    Claim,
    Claimed,
    Closing,
    Gone,
    Met,
    Over,
    Remembered,
    Renewed,
    Stopped,
)
from kettle.startd.domain.resources import Carving, Resources
from kettle.startd.domain.slots import Device, Slot
from kettle.wire.ads import Ad
from kettle.wire.commands.startd import ClaimKey
from kettle.wire.jobs import JobId


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """
    What does not change while the startd lives.
    """

    name: str
    """The machine's name, and the startd's."""
    total: Resources
    detected: Resources
    slots: tuple[Slot, ...]
    devices: dict[str, dict[str, Device]] = {}
    """What may be given away and has an id: by tag, then by id."""
    offline: dict[str, list[str]] = {}
    """Ids that are there and not given away (OFFLINE_MACHINE_RESOURCE_<tag>)."""
    carving: Carving = Carving()
    start: str = "true"
    """The START expression."""
    weight: str = "Cpus"
    """The SLOT_WEIGHT expression."""
    attributes: Ad = {}
    """What else every slot says: platform, what the administrator adds."""
    started: int = 0
    """Seconds since the epoch."""

    def slot_name(self, number: int) -> str:
        """
        Name of a slot.
        """
        return f"slot{number}@{self.name}"

    def name_of(self, claim: Claim) -> str:
        """
        Name of the slot that a claim has.
        """
        carved = "" if claim.whole else f"_{claim.slot}"
        return f"slot{claim.parent}{carved}@{self.name}"

    def slot(self, name: str) -> Slot | None:
        """
        The slot of that name, if the machine is divided so.
        """
        return next((slot for slot in self.slots if self.slot_name(slot.number) == name), None)


class Machine:
    """
    All claims.  `apply` is the only way to change them, and is total: what was recorded has happened.
    """

    def __init__(self, facts: Facts, *, capability: str) -> None:
        """
        `capability` is the secret that proves a match; it lives as long as this startd.
        """
        self.facts = facts
        self.capability = capability
        self.claims: dict[str, Claim] = {}
        self.draining = False
        self.trouble = ""
        """Why nothing new is accepted although the machine is not draining; empty: it is well."""
        self._done: dict[str, set[tuple[JobId, int]]] = {}

    def claims_on(self, slot: Slot) -> list[Claim]:
        """
        Claims that have this slot or a part of it.
        """
        return [claim for claim in self.claims.values() if claim.parent == slot.number]

    def open_to_claims(self, slot: Slot) -> bool:
        """
        Whether any claim could be made on it now: not if one has all of it.

        After a change of the layout, claims that began before it may be in the way, and go on until they end.
        Of disk a whole slot gets what is left: how much the machine has of it is never measured twice alike.
        """
        claims = self.claims_on(slot)
        if slot.partitionable:
            return not any(claim.whole for claim in claims)
        present = {tag: len(ids) for tag, ids in self.free_devices(slot).items()}
        lacking = any(len(ids) > present[tag] for tag, ids in slot.devices.items())
        needed = msgspec.structs.replace(slot.total, disk=0)
        return not claims and not lacking and needed.fits(self._unclaimed())

    def offered(self, slot: Slot) -> Resources:
        """
        What a claim could get of a slot: what is left of a partitionable one, all of another.
        """
        left = self.free(slot)
        return left if slot.partitionable else msgspec.structs.replace(slot.total, disk=left.disk)

    def free(self, slot: Slot) -> Resources:
        """
        What no claim has of a slot.
        """
        left = slot.total
        for claim in self.claims_on(slot):
            left -= claim.resources
        left = left.within(self._unclaimed())
        counts = {tag: len(ids) for tag, ids in self.free_devices(slot).items()}
        return msgspec.structs.replace(left, custom={**left.custom, **counts})

    def _unclaimed(self) -> Resources:
        left = self.facts.total
        for claim in self.claims.values():
            left -= claim.resources
        return left

    def free_devices(self, slot: Slot) -> dict[str, list[str]]:
        """
        Ids of a slot that no claim has, by tag.
        """
        used = {
            (tag, each)
            for claim in self.claims.values()
            for tag, ids in claim.devices.items()
            for each in ids
        }
        return {tag: [each for each in ids if (tag, each) not in used] for tag, ids in slot.devices.items()}

    def free_number(self) -> int:
        """
        The lowest number that no claim has.
        """
        taken = {claim.slot for claim in self.claims.values()}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def proven(self, key: ClaimKey) -> Claim | None:
        """
        The claim, if there is one and `key` is the right to use it.
        """
        claim = self.claims.get(key.claim)
        return claim if claim is not None and claim.proves(key) else None

    def of_schedd(self, schedd: str) -> Iterable[Claim]:
        """
        Its claims.
        """
        return [claim for claim in self.claims.values() if claim.schedd == schedd]

    def next_deadline(self) -> float | None:
        """
        When the next lease ends; claims that are ending already do not count.
        """
        return min((claim.deadline for claim in self.claims.values() if not claim.ending), default=None)

    def apply(self, change: Change) -> None:
        """
        Fold one change.
        """
        match change:
            case Claimed(claim=claim):
                self.claims[claim.key.claim] = claim
            case Renewed(claims=names, deadline=deadline):
                for name in names:
                    if name in self.claims:
                        self._replace(name, deadline=max(deadline, self.claims[name].deadline))
            case Begun(claim=name, attempt=attempt):
                self._replace(name, attempt=attempt, changed=attempt.began)
            case Met() | Stopped():
                self._change_attempt(change)
            case Over() | Remembered():
                self._finish(change)
            case Closing(claim=name, reason=reason):
                self._replace(name, ending=reason)
            case Gone(claim=name):
                self.claims.pop(name, None)
                self._done.pop(name, None)
            case _:
                assert_never(change)

    def _change_attempt(self, change: Met | Stopped) -> None:
        claim = self.claims.get(change.claim)
        if claim is None or claim.attempt is None:
            return
        if isinstance(change, Met):
            attempt = msgspec.structs.replace(claim.attempt, pid=change.pid, start_time=change.start_time)
        else:
            attempt = msgspec.structs.replace(claim.attempt, stop=change.stop)
        self._replace(change.claim, attempt=attempt)

    def _finish(self, change: Over | Remembered) -> None:
        if change.claim not in self.claims:
            return  # of a claim that is gone nobody can ask again, and nobody would ever clean up
        done = self._done.setdefault(change.claim, set())
        if isinstance(change, Remembered):
            done.update(change.done)
            return
        done.add((change.job, change.attempt))
        last = max(change.sequence, self.claims[change.claim].sequence)
        self._replace(change.claim, attempt=None, changed=change.at, sequence=last)

    def _replace(self, name: str, **fields: object) -> None:
        if name in self.claims:
            self.claims[name] = msgspec.structs.replace(self.claims[name], **fields)

    def snapshot(self) -> list[Change]:
        """
        Changes whose fold is this machine.
        """
        done = [Remembered(claim, sorted(attempts)) for claim, attempts in self._done.items()]
        return [*(Claimed(claim) for claim in self.claims.values()), *done]

    def copy(self) -> "Machine":
        """
        A machine that can be changed independently: to try what would be if.
        """
        twin = Machine(self.facts, capability=self.capability)
        twin.claims, twin.draining, twin.trouble = dict(self.claims), self.draining, self.trouble
        return twin

    def knows(self, claim: str, job: JobId, attempt: int) -> bool:
        """
        Whether this attempt runs or ran here.
        """
        found = self.claims.get(claim)
        if found is None:
            return False
        running = found.attempt
        return (job, attempt) in self._done.get(claim, ()) or (
            running is not None and (running.job, running.attempt) == (job, attempt)
        )
