"""One look at the whole machine: what its policy does to each slot now."""

from kettle_services.startd.domain.ads import question, slot_ad
from kettle_services.startd.domain.slots.slot import Slot
from kettle_services.startd.domain.state.changes import Change, ClaimRemoved
from kettle_services.startd.domain.state.claim import Claim, Now
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.policy_expressions import JobEvaluation
from kettle_services.startd.domain.state.slot_transitions import state_of, step


def evaluate(machine: Machine, now: Now) -> list[Change]:
    """What the policy does to the slots that are claimed."""
    changes: list[Change] = []
    for claim in machine.claims.values():
        if machine.unfit and not claim.local and state_of(claim) == ("Claimed", "Idle"):
            changes.append(ClaimRemoved(claim.key.claim))  # its next job would be refused
        elif _concerned(machine, claim):
            changes += step(claim, question(machine, claim, now), now)
    return changes


def _concerned(machine: Machine, claim: Claim) -> bool:
    """Whether anything may happen to a claim by itself: with no policy, nothing does until it is ended."""
    policy = machine.policy_of(claim)
    match state_of(claim):
        case _, "Idle":
            return not policy.literal("START")
        case _, "Busy":
            return policy.watches
        case _:
            return True


def owned(machine: Machine, now: Now) -> frozenset[int]:
    """Numbers of the slots that the machine's owner has for himself now."""
    return frozenset(slot.number for slot in machine.facts.slots if _is_owners(machine, slot, now))


def _is_owners(machine: Machine, slot: Slot, now: Now) -> bool:
    policy = machine.facts.policy
    about = JobEvaluation(policy, lambda: slot_ad(machine, slot, now=now.time), None, now.context)
    return about.holds("IS_OWNER")
