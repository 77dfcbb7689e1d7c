"""What a machine that is not there would be good for, over HTTP."""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Scalar
from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import Attribute
from kettle_wire.rest.route import Route


class AskMachineWhatIf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Ask which of the jobs that wait could run on a machine like one that is there, if it had other attributes. Nothing is changed.
    """

    name: Name
    """The name of its startd, as lists of machines have it."""
    owner: list[Name] = []
    """Only jobs of these persons."""


class MachineChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the machine would have."""

    attributes: Annotated[dict[Attribute, Scalar], msgspec.Meta(max_length=1000)] = {}
    """
    Of its largest slot when nothing runs there, instead of its own; `Cpus`, `Memory` (MiB) and `Disk` (KiB) are what it has in all.
    """


class WaitingCluster(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Jobs of a cluster that wait."""

    id: str
    """`CLUSTER@SCHEDD`."""
    owner: str
    jobs: int
    able: bool
    """Whether the first of them could run there; the others are taken to be like it."""
    refused: str = ""
    """What of the job or of the machine is against it."""


class MachineWhatIf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What waits, and what of that could run there."""

    name: str
    sentence: str
    waiting: int
    """Jobs of all these clusters."""
    able: int
    """How many of them could run there, one after the other."""
    clusters: list[WaitingCluster]
    """The ones with most jobs that wait come first."""
    more: int = 0
    """Clusters with jobs that wait, that were not looked at."""


ASK_MACHINE_WHAT_IF = Route(
    "POST",
    "/machines/{name}/what-if",
    "ask_machine_what_if",
    parameters=AskMachineWhatIf,
    body=MachineChange,
    reply=MachineWhatIf,
    errors=(404, 413, 415, 422),
)
