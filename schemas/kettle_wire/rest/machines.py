"""One machine: its slots, what runs there, when it came and left."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.jobs import Name
from kettle_wire.rest.claims import RunningJob
from kettle_wire.rest.jobs import Attribute, Filter
from kettle_wire.rest.pool import AdOf
from kettle_wire.rest.route import Moment, Route


class GetMachine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a machine with its slots, what runs there, and when it came and left."""

    name: Name
    """The name of its startd, as lists of machines have it."""
    fields: list[Attribute] = []
    """Attributes that the machine and each slot are to be shown with; none: all."""
    as_of: Moment | None = None
    """What ran there then; the ads of that time are not kept."""


class Passage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine came or left."""

    at: Moment
    came: bool
    reason: str | None = None
    """Why it left: `drained` or `expired`."""


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine."""

    name: str
    present: bool
    since: Moment | None = None
    """Since when it is, or is not, there; absent: that is not recorded yet."""
    cpus: int | None = None
    memory: int | None = None
    """MiB."""
    attributes: Ad | None = None
    """Of its startd's ad; absent: there is none now, or the past was asked for."""
    slots: list[AdOf] = []
    jobs: list[RunningJob] = []
    """What runs there, by slot."""
    passages: list[Passage] = []
    """The last fifty, the newest first."""


class EmptyMachine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Drain a machine: it takes no new jobs, and those that run are ended; or cancel that, and it takes jobs again. Its administrators may.
    """

    name: Name
    """The name of its startd, as lists of machines have it."""
    action: Literal["drain", "cancel_drain"]


class MachineOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the machine is emptied; of a drain that is cancelled only `request` says something."""

    speed: Literal["graceful", "quick", "fast"] = "graceful"
    """Jobs have their retirement time and their time to end, only the latter, or are killed."""
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    """Shown in the ads of its slots."""
    check: Filter = ""
    """An expression that has to be true of every slot, else nothing is drained."""
    start: Filter = ""
    """Which jobs it takes meanwhile, as an expression; empty: none."""
    resume: bool = False
    """Take jobs again when it is empty, as after a vacate."""
    request: Annotated[str, msgspec.Meta(max_length=256)] = ""
    """Cancel only if it is this request that drains the machine."""


class MachineOrdered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine does it."""

    name: str
    request: str = ""
    """Names the drain, for who cancels it."""


EMPTY_MACHINE = Route(
    "POST",
    "/machines/{name}:{action}",
    "empty_machine",
    parameters=EmptyMachine,
    body=MachineOrder,
    reply=MachineOrdered,
    level="WRITE",
    errors=(404, 409, 413, 415, 422),
    headers=("Idempotency-Key",),
)
GET_MACHINE = Route(
    "GET", "/machines/{name}", "get_machine", parameters=GetMachine, reply=Machine, errors=(404,)
)
