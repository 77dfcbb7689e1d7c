"""What the negotiator's ad tells of its last cycle, under HTCondor's names."""

from kettle_services.negotiator.domain.cycle import Outcome
from kettle_wire.ads import Ad


def last_cycle(outcome: Outcome, started: float, duration: float) -> Ad:
    """Times in seconds, the start since 1970; the cycle is number 0, the newest."""
    last = "LastNegotiationCycle"
    return {
        f"{last}Time": int(started),
        f"{last}End0": int(started + duration),
        f"{last}Duration0": round(duration),
        f"{last}CandidateSlots0": outcome.slots,
        f"{last}NumIdleJobs0": outcome.idle,
        f"{last}Matches0": len(outcome.matches),
        f"{last}Rejections0": len(outcome.rejections),
        f"{last}NumSchedulers0": len(outcome.messages),
    }
