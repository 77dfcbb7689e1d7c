"""
Matchmaking: which jobs may go to which slots, and why the others may not. Pure.

`Slot` and `Demand` are filled from ads; `allocate` shares the free slots out; `explain` says what refuses an autocluster.
"""

from kettle.matchmaking.allocate import Allocation, Demand, Grant, Unmet, allocate
from kettle.matchmaking.explain import Explanation, Refusal, explain
from kettle.matchmaking.request import Amounts, Request
from kettle.matchmaking.slots import Slot

__all__ = [
    "Allocation",
    "Amounts",
    "Demand",
    "Explanation",
    "Grant",
    "Refusal",
    "Request",
    "Slot",
    "Unmet",
    "allocate",
    "explain",
]
