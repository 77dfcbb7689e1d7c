"""
Matchmaking: which jobs may go to which slots, and why the others may not. Pure.

`SlotTable` and `Demand` are filled from ads; `allocate` shares the free slots out; `explain` says what refuses an autocluster.
"""

from kettle.matchmaking.allocate import Allocation, Demand, Grant, Unmet, allocate
from kettle.matchmaking.explain import Refusal, explain
from kettle.matchmaking.slots import Request, Slot

__all__ = ["Allocation", "Demand", "Grant", "Refusal", "Request", "Slot", "Unmet", "allocate", "explain"]
