"""
Matchmaking: which jobs may go to which slots, and why the others may not. Pure.

Slots are rows of a `kettle.classad.columnar.Table`.
`Offer` is what may be given of them, `allocate` shares it out, `Explainer` says what refuses an autocluster.
"""

from kettle.matchmaking.allocate import Allocation, Demand, Grant, Unmet, allocate
from kettle.matchmaking.explain import Explainer, Explanation, Refusal
from kettle.matchmaking.request import Amounts, Request
from kettle.matchmaking.slots import Offer

__all__ = [
    "Allocation",
    "Amounts",
    "Demand",
    "Explainer",
    "Explanation",
    "Grant",
    "Offer",
    "Refusal",
    "Request",
    "Unmet",
    "allocate",
]
