"""
Matchmaking: which jobs may go to which slots, and why the others may not. Pure.

Slots are rows of a `kettle.classad.columnar.Table`.
`Offer` is what may be given of them, `allocate` shares it out, `Explainer` says what refuses an autocluster.
"""

from kettle.matchmaking.allocation import allocate
from kettle.matchmaking.analysis import Analyst
from kettle.matchmaking.candidates import NO_RANKS, Ranks, gives_way
from kettle.matchmaking.concurrency_limits import Concurrency, LimitRules
from kettle.matchmaking.demands import Allocation, Demand, Grant, Limit, Unmet
from kettle.matchmaking.explanation import Explainer, Explanation, Refusal
from kettle.matchmaking.groups import NO_GROUPS, ROOT, Group, GroupError, GroupRule, Tree
from kettle.matchmaking.hierarchy import SORT, GroupShare, Policy
from kettle.matchmaking.request import Amounts, Request
from kettle.matchmaking.shares import Claimant, shares
from kettle.matchmaking.slots import Offer, Tenants, cost_of, weight_of, weights

__all__ = [
    "NO_GROUPS",
    "NO_RANKS",
    "ROOT",
    "SORT",
    "Allocation",
    "Amounts",
    "Analyst",
    "Claimant",
    "Concurrency",
    "Demand",
    "Explainer",
    "Explanation",
    "Grant",
    "Group",
    "GroupError",
    "GroupRule",
    "GroupShare",
    "Limit",
    "LimitRules",
    "Offer",
    "Policy",
    "Ranks",
    "Refusal",
    "Request",
    "Tenants",
    "Tree",
    "Unmet",
    "allocate",
    "cost_of",
    "gives_way",
    "shares",
    "weight_of",
    "weights",
]
