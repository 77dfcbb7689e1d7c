"""
Which attributes of a job a route may change.

Pure. Who the job is, what has happened to it, who is charged for it and when it starts is settled when it is submitted; how and
where it runs is the route's, the universe included.
"""

from collections.abc import Iterable
from typing import Final

from kettle.jobs.editable_attributes import refusal as refusal_of_edit

AWAITS: Final = "AwaitsRoute"
"""Set when it is submitted: the job is offered to no machine until an entrypoint has given it a route."""
SUBMIT_ARGS: Final = "BatchExtraSubmitArgs"
OWN_SUBMIT_ARGS: Final = "BatchExtraSubmitArgsAreOwn"
"""True of a routed job whose BatchExtraSubmitArgs are its own and not its route's."""
OWN_WORDS: Final = OWN_SUBMIT_ARGS.lower()
_AWAITS: Final = AWAITS.lower()
_UNIVERSE: Final = "jobuniverse"


WHERE: Final = frozenset({
    "gridresource", "batchqueue", "batchproject", "batchextrasubmitargs", "batchruntime", "cerequirements", "onlocalremove",
    "onlocalremoveretries", OWN_WORDS,
})  # fmt: skip
"""Attributes, in lower case, that say where a job goes, who is charged there, and for how long: what its route says of them stays."""


def awaits_route(names: Iterable[str]) -> bool:
    """Whether jobs with these attributes may be those of an entrypoint."""
    return any(name.lower() == _AWAITS for name in names)


def refusal(name: str) -> str:
    """Why no route may set or remove this attribute, in one sentence; empty if it may."""
    folded = name.lower()
    if folded == _UNIVERSE:
        return ""
    if folded == _AWAITS:
        return f"the attribute {name} says that the job is to be routed: routes leave it as it is"
    if why := refusal_of_edit(name):
        return why.partition("; ")[0]
    return ""
