"""The rules of a simulated pool: its settings, and those of single submitters."""

import msgspec

from kettle.matchmaking import LimitRules, Policy, Ranks
from kettle_services.negotiator.domain.preemption import Preemption
from kettle_services.negotiator.domain.principals import Factors


class PoolRules(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    groups: Policy
    limits: LimitRules
    ranks: Ranks
    preemption: Preemption
    factors: Factors
    half_life: float
    interval: float
    charge_interval: float
    worklife: float
    """After which a claim takes no further job."""
    prio_factors: dict[str, float] = {}
    """Of single submitters and groups, whatever is recorded of these."""
