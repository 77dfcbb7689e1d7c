"""
The orders of a job's owner for its live attempt: to leave its machine, to suspend, to continue.

An order is recorded before it is carried out, so that the next process carries it out if one dies meanwhile.  It ends
with its attempt.
"""

from typing import Final, Literal, assert_never

import msgspec

from kettle_wire.events import JobOrdered
from kettle_wire.events.job import OrderKind


class Defer(msgspec.Struct, frozen=True):
    """The calendar says when it runs next, seconds since 1970."""

    until: int


class Order(msgspec.Struct, frozen=True):
    """Do this with the attempt that runs."""

    kind: OrderKind
    reason: str
    by: str


class Orders(msgspec.Struct, frozen=True, gc=False):
    """What counts of all orders to one attempt."""

    vacating: bool = False
    """It is to leave its machine."""
    fast: bool = False
    """At once."""
    reason: str = ""
    """Why it is to leave."""
    still: bool = False
    """The owner has suspended it, independently of its machine's policy."""
    count: int = 0
    """How many there were: a later one replaces an earlier one, in whatever order they arrive."""

    @property
    def standing(self) -> Literal["", "vacate", "vacate_fast", "suspend"]:
        """A word for what will happen to it or is happening."""
        if self.vacating:
            return "vacate_fast" if self.fast else "vacate"
        return "suspend" if self.still else ""

    def refuse(self, kind: OrderKind) -> str:
        """Why a job that runs cannot do this; empty: it can."""
        match kind:
            case "vacate" | "vacate_fast":
                return ""
            case "suspend":
                return "the job is leaving its machine" if self.vacating else ""
            case "continue":
                return "" if self.still else "nobody has suspended the job"
            case _:
                assert_never(kind)

    def meets(self, kind: OrderKind) -> bool:
        """Whether the same was ordered before."""
        match kind:
            case "vacate":
                return self.vacating
            case "vacate_fast":
                return self.fast
            case "suspend":
                return self.still
            case "continue":
                return False
            case _:
                assert_never(kind)


NONE: Final = Orders()


def ordered(orders: Orders, event: JobOrdered) -> Orders:
    """What counts after one more; total."""
    count = orders.count + 1
    match event.order:
        case "vacate" | "vacate_fast":
            return msgspec.structs.replace(
                orders,
                vacating=True,
                fast=orders.fast or event.order == "vacate_fast",
                reason=orders.reason or event.reason,
                count=count,
            )
        case "suspend" | "continue":
            return msgspec.structs.replace(orders, still=event.order == "suspend", count=count)
        case _:
            assert_never(event.order)
