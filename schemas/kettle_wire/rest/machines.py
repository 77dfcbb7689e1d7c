"""One machine: its slots, what runs there, when it came and left."""

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.jobs import Name
from kettle_wire.rest.claims import RunningJob
from kettle_wire.rest.jobs import Attribute
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


GET_MACHINE = Route(
    "GET", "/machines/{name}", "get_machine", parameters=GetMachine, reply=Machine, errors=(404,)
)
