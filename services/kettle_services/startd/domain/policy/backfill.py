"""
Backfill: a program that a slot runs for its owner while it does nothing for the pool.

    Unclaimed --START_BACKFILL--> Backfill: Idle --due--> Busy --slot is wanted, EVICT_BACKFILL--> Killing --> gone
                                             ^            |
                                             +-- it ends -+

It is not a claim: the slot is still offered, and when it is claimed the program is killed before a job begins. It is
not in the journal: a restarted startd ends the program of the previous one.

Pure: `look` and `ended` say what follows; time comes in.
"""

from typing import Final, Literal

import msgspec

from kettle.retry.backoff import Backoff
from kettle_services.startd.domain.ads import slot_ad
from kettle_services.startd.domain.slots.slot import Slot
from kettle_services.startd.domain.state.claim import Now
from kettle_services.startd.domain.state.machine import Backfill, Machine
from kettle_services.startd.domain.state.policy_expressions import JobEvaluation

Order = Literal["start", "kill"]

_SHORT_S: Final = 60.0
"""One that ends sooner has failed, as far as we can know: it is started again after a pause that grows."""
_BACKOFF: Final = Backoff(first=5.0, longest=600.0, spread=0.0)


class BackfillEvaluation(msgspec.Struct, frozen=True):
    """What a machine says of one of its slots now."""

    room: bool
    """Nothing else wants the slot: neither its owner, nor a schedd, nor a drain."""
    start: bool
    evict: bool
    beside: frozenset[str]
    """The claims that have parts of it."""


def evaluate(
    known: Backfill | None, says: BackfillEvaluation, now: Now
) -> tuple[Backfill | None, Order | None]:
    """The next state of the backfill of a slot, and what has to be done for it."""
    unwanted = says.evict or not says.room
    if known is None:
        return (None, None) if unwanted or not says.start else (Backfill("Idle", now.time), None)
    match known.activity:
        case "Idle" if unwanted or not says.start:
            return None, None
        case "Idle" if now.clock >= known.due:
            busy = msgspec.structs.replace(known, activity="Busy", since=now.time, beside=says.beside)
            return msgspec.structs.replace(busy, due=now.clock), "start"
        case "Busy" if unwanted or not says.beside <= known.beside:
            return msgspec.structs.replace(known, activity="Killing", since=now.time), "kill"
        case _:
            return known, None


def ended(known: Backfill, now: Now) -> Backfill | None:
    """The program and all its processes have ended."""
    if known.activity != "Busy":
        return None
    failed = known.failed + 1 if now.clock - known.due < _SHORT_S else 0
    pause = _BACKOFF.length(failed) if failed else 0.0
    return Backfill("Idle", now.time, due=now.clock + pause, failed=min(failed, 10))


def asked(machine: Machine, slot: Slot, now: Now) -> BackfillEvaluation:
    """What the machine says of a slot; no expression is asked whose answer is not needed."""
    known = machine.backfill.get(slot.number)
    policy = machine.facts.policy
    about = JobEvaluation(policy, lambda: slot_ad(machine, slot, now=now.time), None, now.context)
    room = _has_room(machine, slot, runs=known is not None and known.activity == "Busy")
    return BackfillEvaluation(
        room=room,
        start=room and about.holds("START_BACKFILL"),
        evict=room and about.holds("EVICT_BACKFILL"),
        beside=frozenset(claim.key.claim for claim in machine.claims_on(slot)),
    )


def _has_room(machine: Machine, slot: Slot, *, runs: bool) -> bool:
    if machine.shut or machine.draining or slot.number in machine.owned:
        return False
    if not machine.open_to_claims(slot):
        return False
    left = machine.offered(slot)
    return runs or (left.cpus >= 1 and left.memory >= 1 and left.disk >= 1)
