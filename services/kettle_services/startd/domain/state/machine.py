"""The machine: what it is, and the fold of everything that happened to its claims."""

import hmac
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from kettle_services.startd.domain.slots.resources import Carving, Resources
from kettle_services.startd.domain.slots.slot import LOCAL, Device, Slot
from kettle_services.startd.domain.state.changes import (
    AttemptFinished,
    Change,
    Claimed,
    ClaimRemoved,
    ClaimWaiting,
    Drained,
    Draining,
    PastAttemptsRecorded,
    Renewed,
)
from kettle_services.startd.domain.state.claim import Claim, DrainInForce
from kettle_services.startd.domain.state.claim_fold import OfClaim, after, inherited
from kettle_services.startd.domain.state.policy_expressions import PolicyExpressions
from kettle_wire.ads import Ad
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId

_LONGEST_LEASE: Final = 2.0**31
"""Seconds: beyond it is no lease, but a mistake."""


class Backfill(msgspec.Struct, frozen=True):
    """What a slot does for its owner while it does nothing for the pool."""

    activity: Literal["Idle", "Busy", "Killing"]
    since: float
    """Seconds since the epoch."""
    due: float = 0.0
    """When it is, or was, started, seconds since boot."""
    failed: int = 0
    """How often it has ended soon, one time after the other."""
    beside: frozenset[str] = frozenset()
    """Claims that had parts of the slot before it was started."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while the startd lives."""

    name: str
    """The machine's name, and the startd's."""
    total: Resources
    detected: Resources
    slots: tuple[Slot, ...]
    local: Slot | None = None
    """The slot of jobs that run where they were submitted; None: there is no access point here."""
    local_overcommit: float = 1.0
    """How many times their cores and memory such jobs may have all together: beside what the others have."""
    devices: dict[str, dict[str, Device]] = {}
    """What may be given away and has an id: by tag, then by id."""
    offline: dict[str, list[str]] = {}
    """Ids that are there and not given away (OFFLINE_MACHINE_RESOURCE_<tag>)."""
    carving: Carving = Carving()
    policy: PolicyExpressions = PolicyExpressions()
    """What the owner of the machine allows the pool's jobs."""
    user_preemption: bool = False
    """Claims make room for those of submitters whom the negotiator prefers."""
    local_policy: PolicyExpressions = PolicyExpressions()
    """What local jobs are subject to; how many there are is for their schedd to say."""
    local_account: str = ""
    """Whose rights a local job has, as an expression; empty: those that all jobs here have."""
    max_lease: float = _LONGEST_LEASE
    """Seconds that a job may run without word from its schedd."""
    weight: str = "Cpus"
    """The SLOT_WEIGHT expression."""
    attributes: Ad = {}
    """What else every slot says: platform, what the administrator adds."""
    started: int = 0
    """Seconds since the epoch."""

    def slot_name(self, number: int) -> str:
        """Name of a slot."""
        return f"local@{self.name}" if number == LOCAL else f"slot{number}@{self.name}"

    def name_of(self, claim: Claim) -> str:
        """Name of the slot that a claim has."""
        slot, _, _ = self.slot_name(claim.parent).partition("@")
        carved = "" if claim.whole else f"_{claim.slot}"
        return f"{slot}{carved}@{self.name}"

    def slot(self, name: str) -> Slot | None:
        """The slot of that name, if the machine is divided so."""
        slots = self.slots if self.local is None else (*self.slots, self.local)
        return next((slot for slot in slots if self.slot_name(slot.number) == name), None)


class Machine:
    """All claims.  `apply` is the only way to change them, and is total: what was recorded has happened."""

    def __init__(self, facts: Facts, *, capability: str, local_capability: str = "") -> None:
        """
        `capability` is the secret that proves a match, `local_capability` the one that proves that a schedd is this
        machine's own; they live as long as this startd.
        """
        self.facts = facts
        self.capability = capability
        self.local_capability = local_capability
        self.claims: dict[str, Claim] = {}
        self.waiting: dict[str, Claim] = {}
        """Claims that have no slot yet, because others have to make room for them."""
        self.stopping = False
        """The startd is being stopped."""
        self.drain: DrainInForce | None = None
        """The wish to have the machine empty."""
        self.owned: frozenset[int] = frozenset()
        """Numbers of the slots that the machine's owner has for himself (IS_OWNER)."""
        self.changed = float(facts.started)
        """When draining or the owner's presence began or ended, seconds since the epoch."""
        self.backfill: dict[int, Backfill] = {}
        """By number of the slot; no claim, and not in the journal."""
        self.conditions: Ad = {}
        """How busy the machine is and how long nobody has touched it, as measured last."""
        self.trouble = ""
        """Why nothing new is accepted although the machine is not draining; empty: it is well."""
        self.unfit = ""
        """Which probe that the machine requires fails, and why; it is for the pool's jobs. Empty: none does."""
        self.kept_outputs: Ad = {}
        """Of whose jobs there are results here, for those that come next."""
        self.probed: Ad = {}
        """What probes make slots say."""
        self.tried: Ad = {}
        """What slots say of containers, which may be tried while jobs run already."""
        self._done: dict[str, set[tuple[JobId, int]]] = {}

    @property
    def draining(self) -> bool:
        """Whether the machine is being emptied, or is kept empty."""
        return self.stopping or self.drain is not None

    @property
    def start(self) -> str:
        """The START expression, which draining replaces."""
        if self.stopping:
            return "false"
        return self.facts.policy.texts["START"] if self.drain is None else self.drain.start

    @property
    def shut(self) -> bool:
        """Whether it takes nothing new, whatever it is."""
        return bool(self.why_closed) or (self.draining and self.start.strip().lower() == "false")

    @property
    def why_closed(self) -> str:
        """Why it takes nothing new of the pool although nobody wants it empty; empty: it is well."""
        return self.trouble or self.unfit

    @property
    def shared(self) -> list[Claim]:
        """The claims on what is shared out to the pool."""
        return [claim for claim in self.claims.values() if not claim.local]

    def proves_match(self, slot: Slot, capability: str) -> bool:
        """Whether this is the secret of those who may claim a slot."""
        own = self.local_capability if slot.number == LOCAL else self.capability
        return bool(own) and hmac.compare_digest(capability.encode(), own.encode())

    def shut_for(self, *, local: bool) -> str:
        """
        Why nothing may begin, in the local slot or elsewhere; empty: it may.  Draining is for the pool's jobs.
        """
        if closed := self.trouble if local else self.why_closed:
            return closed
        shut = self.stopping if local else self.shut
        return "the machine is draining" if shut else ""

    def turns_away(self, number: int, lease: float) -> str:
        """
        Why no new claim for `lease` seconds may have what is of the slot of that number; empty: one may.
        """
        if shut := self.shut_for(local=number == LOCAL):
            return shut
        if number in self.owned:
            return "the machine's owner has it for himself (IS_OWNER)"
        if not 0 < lease < _LONGEST_LEASE:  # nor is it one that is no number
            return f"a lease of {lease} seconds is none that a claim can have"
        return ""

    def lease(self, wanted: float) -> float:
        """
        The lease of a claim for which somebody wants so many seconds: what runs unattended here its owner bounds.
        """
        return min(wanted, self.facts.max_lease)

    def policy_of(self, claim: Claim) -> PolicyExpressions:
        """What the jobs on a claim are subject to."""
        return self.facts.local_policy if claim.local else self.facts.policy

    def claims_on(self, slot: Slot) -> list[Claim]:
        """Claims that have this slot or a part of it."""
        return [claim for claim in self.claims.values() if claim.parent == slot.number]

    def _waiting_on(self, slot: Slot) -> list[Claim]:
        """Claims that have a part of this slot already, and wait for more of it."""
        return [claim for claim in self.waiting.values() if claim.parent == slot.number]

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
        """What a claim could get of a slot: what is left of a partitionable one, all of another."""
        left = self.free(slot)
        return left if slot.partitionable else msgspec.structs.replace(slot.total, disk=left.disk)

    def free(self, slot: Slot) -> Resources:
        """What no claim has of a slot."""
        left = slot.total
        if slot.number == LOCAL:
            return self._free_locally(left)
        for claim in (*self.claims_on(slot), *self._waiting_on(slot)):
            left -= claim.resources
        left = left.within(self._unclaimed())
        counts = {tag: len(ids) for tag, ids in self.free_devices(slot).items()}
        return msgspec.structs.replace(left, custom={**left.custom, **counts})

    def _free_locally(self, whole: Resources) -> Resources:
        """
        What one more local job may have: no more than the machine has, and what the others leave of what they share.
        """
        others = [claim.resources for claim in self.claims.values() if claim.local]
        share = self.facts.local_overcommit
        return msgspec.structs.replace(
            whole,
            cpus=max(0, min(whole.cpus, int(whole.cpus * share) - sum(each.cpus for each in others))),
            memory=max(0, min(whole.memory, int(whole.memory * share) - sum(each.memory for each in others))),
        )

    def _unclaimed(self) -> Resources:
        left = self.facts.total
        for claim in (*self.shared, *self.waiting.values()):
            left -= claim.resources
        return left

    def free_devices(self, slot: Slot) -> dict[str, list[str]]:
        """Ids of a slot that no claim has, by tag."""
        used = {
            (tag, each)
            for claim in (*self.claims.values(), *self.waiting.values())
            for tag, ids in claim.devices.items()
            for each in ids
        }
        return {tag: [each for each in ids if (tag, each) not in used] for tag, ids in slot.devices.items()}

    def free_number(self) -> int:
        """The lowest number that no claim has."""
        taken = {claim.slot for claim in (*self.claims.values(), *self.waiting.values())}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def proven(self, key: ClaimKey) -> Claim | None:
        """The claim, if there is one and `key` is the right to use it."""
        claim = self.claims.get(key.claim)
        return claim if claim is not None and claim.proves(key) else None

    def waits(self, key: ClaimKey) -> Claim | None:
        """The claim that waits for a slot, if there is one and `key` is the right to use it."""
        claim = self.waiting.get(key.claim)
        return claim if claim is not None and claim.proves(key) else None

    def of_schedd(self, schedd: str) -> Iterable[Claim]:
        """Its claims."""
        return [claim for claim in self.claims.values() if claim.schedd == schedd]

    def next_deadline(self) -> float | None:
        """When the next lease ends; claims that are being ended already do not count."""
        live = [claim.deadline for claim in self.claims.values() if not claim.preempting]
        return min((*live, *(claim.deadline for claim in self.waiting.values())), default=None)

    def apply(self, change: Change) -> None:
        """Fold one change."""
        match change:
            case Claimed(claim=claim):
                self.claims[claim.key.claim] = claim
            case Renewed(claims=names, deadline=deadline):
                for among in (self.claims, self.waiting):
                    for claim in [among[name] for name in names if name in among]:
                        renewed = msgspec.structs.replace(claim, deadline=max(deadline, claim.deadline))
                        among[claim.key.claim] = renewed
            case ClaimWaiting(claim=claim):
                self.waiting[claim.key.claim] = claim
            case PastAttemptsRecorded(claim=name, done=done):
                self._remember(name, done)
            case ClaimRemoved(claim=name):
                self._forget(name)
            case Draining(drain=drain):
                self.drain, self.changed = drain, drain.at
            case Drained(at=at):
                self.drain, self.changed = None, at
            case _:
                self._apply_to_claim(change)

    def _forget(self, name: str) -> None:
        """
        Who waited first for a claim that is gone has what it had; and the slot, if it waits for no other.

        A journal of a former version may know of several: what the others wait for does not come, so they go too.
        """
        gone = self.claims.pop(name, None)
        self.waiting.pop(name, None)
        self._done.pop(name, None)
        if gone is None:
            return
        heirs = [claim for claim in self.waiting.values() if gone.key.claim in claim.after]
        for waiting in heirs:
            del self.waiting[waiting.key.claim]
        if heirs:
            heir = inherited(heirs[0], gone)
            (self.waiting if heir.after else self.claims)[heir.key.claim] = heir

    def waits_for(self, claim: Claim) -> Claim | None:
        """The claim for which another one makes room."""
        return next((heir for heir in self.waiting.values() if claim.key.claim in heir.after), None)

    def _apply_to_claim(self, change: OfClaim) -> None:
        claim = self.claims.get(change.claim)
        if claim is None:
            return
        self.claims[change.claim] = after(claim, change)
        if isinstance(change, AttemptFinished):
            self._remember(change.claim, [(change.job, change.attempt)])

    def _remember(self, claim: str, done: Iterable[tuple[JobId, int]]) -> None:
        if claim in self.claims:  # for an ended one nobody can ask again, and nothing would ever clean up
            self._done.setdefault(claim, set()).update(done)

    def snapshot(self) -> list[Change]:
        """Changes whose fold is this machine."""
        done = [PastAttemptsRecorded(claim, sorted(attempts)) for claim, attempts in self._done.items()]
        drain = [Draining(self.drain)] if self.drain is not None else []
        waiting = [ClaimWaiting(claim) for claim in self.waiting.values()]
        return [*(Claimed(claim) for claim in self.claims.values()), *waiting, *done, *drain]

    def copy(self) -> "Machine":
        """A machine that can be changed independently: to try what would be if."""
        twin = Machine(self.facts, capability=self.capability, local_capability=self.local_capability)
        twin.claims, twin.waiting = dict(self.claims), dict(self.waiting)
        twin.drain, twin.trouble = self.drain, self.trouble
        twin.unfit, twin.probed, twin.tried = self.unfit, self.probed, self.tried
        twin.kept_outputs = self.kept_outputs
        twin.stopping, twin.owned, twin.conditions = self.stopping, self.owned, self.conditions
        return twin

    def used(self, claim: str) -> bool:
        """Whether an attempt has ended on a claim."""
        return bool(self._done.get(claim))

    def knows(self, claim: str, job: JobId, attempt: int) -> bool:
        """Whether this attempt runs or ran here."""
        found = self.claims.get(claim)
        if found is None:
            return False
        running = found.attempt
        return (job, attempt) in self._done.get(claim, ()) or (
            running is not None and (running.job, running.attempt) == (job, attempt)
        )
