"""What machines are used for, over HTTP: a line each, as lists and maps of a whole pool want it."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import Filter, Limit, Page
from kettle_wire.rest.route import Moment, Route

MachineState = Literal["busy", "partly", "free", "owner", "drained", "backfill"]
"""
`busy`: all cores are claimed; `partly`: some are; `free`: none, and jobs may come; `owner`: none, because of the machine's
owner; `drained`: the machine is being emptied, or is; `backfill`: it does work of its own.
"""
MachineKey = Literal["name", "-name", "used", "-used", "cores", "-cores", "since", "-since"]


class AboutMachines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all questions about the use of machines have in common."""

    filter: Filter = ""
    """A ClassAd expression that has to be true of a slot's ad; of a machine only such slots are counted."""
    state: list[MachineState] = []
    """Only machines in one of these states."""
    owner: list[Name] = []
    """Only machines that one of these persons uses."""
    arch: list[Name] = []
    """Only machines of one of these architectures."""


class ListMachineUse(AboutMachines, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List what machines are used for, a line each, by name or by use."""

    sort: MachineKey = "name"
    """A minus sign has the greatest first."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""


class GetMachineMap(AboutMachines, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get what all machines are used for as columns, small enough to be drawn."""


class UsedBy(msgspec.Struct, frozen=True, kw_only=True):
    """How many cores of a machine somebody uses."""

    owner: str
    cores: float


class MachineUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one machine is used for."""

    name: str
    state: MachineState
    since: Moment
    """When a slot of it came into its state, the latest."""
    cores: float
    used: float
    """Cores that are claimed."""
    claims: int
    owners: list[UsedBy]
    """Who uses it, who has most first."""
    arch: str
    os: str


class MachinesInUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of machines."""

    machines: list[MachineUse]
    at: Moment
    """When the collector was asked."""
    states: dict[MachineState, Annotated[int, msgspec.Meta(ge=1)]] = {}
    """How many of all that are asked for are in which state."""
    cores: float
    """Of all that are asked for."""
    used: float
    """How many of these cores are claimed."""
    next: str | None = None
    """The page token of what comes behind; absent: that was all."""


class MachineMap(msgspec.Struct, frozen=True, kw_only=True):
    """Machines as columns, in the order of their names."""

    at: Moment
    """When the collector was asked."""
    names: list[str]
    state: list[int]
    """Which of `states` each is in."""
    states: list[MachineState]
    since: list[int]
    """Seconds since the epoch: when a slot of it came into its state, the latest."""
    cores: list[float]
    used: list[float]
    owner: list[int]
    """Who of `owners` uses most of it."""
    owners: list[str]
    """An empty name: nobody."""
    arch: list[int]
    """Which of `arches` each is of."""
    arches: list[str]
    """An empty name: it is not known."""


LIST_MACHINE_USE = Route(
    "GET", "/machines:use", "list_machine_use", parameters=ListMachineUse, reply=MachinesInUse
)
GET_MACHINE_MAP = Route("GET", "/machines:map", "get_machine_map", parameters=GetMachineMap, reply=MachineMap)
