"""
What the scaler has provisioners do: they make machines, look for them and remove them, and decide nothing.

A provisioner keeps nothing: everything here may be asked after a restart of either side, except that an attempt of a lease is
never made twice.
"""

from typing import Annotated, Literal

import msgspec

from kettle_wire.endpoint import Caller, CommandId, Endpoint, Repeat
from kettle_wire.leases import ErrorClass, Handle, LeaseId, MachineFound, Order, Words
from kettle_wire.worker_pools import Hibernation, Name, Offer, StaticMachine

ORDERS = 50
"""So many machines are made by one command at most."""
ANSWER_S = 70.0
"""So long a provisioner may take for one command: after that nobody knows what became of it."""

_Handles = Annotated[list[Handle], msgspec.Meta(min_length=1, max_length=200)]


class Trouble(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a provider did not do it."""

    error: ErrorClass | None
    """None: it does not answer, which says nothing about any machine."""
    words: Words
    retry_after: float = 0.0
    """Seconds, if it said so."""


class ListProviders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which providers are set up here?"""


class ProviderShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One that is set up."""

    name: Name
    kind: str
    visibility: float = 0.0
    """Seconds after its creation in which a machine may not be shown yet."""
    trouble: str = ""
    """Why it cannot be used: an extra is missing, or a setting is wrong."""


class Providers(msgspec.Struct, frozen=True, kw_only=True):
    """All that are set up here."""

    providers: list[ProviderShown]


class CreateMachines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Make machines, each order once. It is sent once: who does not hear the answer looks, and asks for nothing again.
    """

    id: CommandId
    provider: Name
    orders: Annotated[list[Order], msgspec.Meta(min_length=1, max_length=ORDERS)]


class Created(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What became of one order: a handle; or trouble, and there is no machine; or neither, and nobody knows.
    """

    lease: LeaseId
    attempt: int
    handle: Handle = ""
    trouble: Trouble | None = None
    words: Words = ""
    """Why nobody knows."""


class MachinesCreated(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to each order, in their order."""

    created: list[Created]


class FindMachines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which machines of ours does a provider have?"""

    provider: Name


class MachinesFound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machines of this deployment."""

    machines: list[MachineFound] = []
    complete: bool = False
    """Whether these are all."""
    visibility: float = 0.0
    """Seconds after its creation in which a machine may not be shown yet."""
    trouble: Trouble | None = None
    """Then the list says nothing."""


class LookAtMachines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How are these machines?"""

    provider: Name
    handles: _Handles


class MachineLooked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of them."""

    handle: Handle
    machine: MachineFound | None = None
    trouble: Trouble | None = None


class MachinesLooked(msgspec.Struct, frozen=True, kw_only=True):
    """All that were asked for, in their order."""

    machines: list[MachineLooked]


class RemoveMachines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have machines removed, and look whether they are gone."""

    provider: Name
    handles: _Handles
    console: bool = False
    """Tell the end of what each wrote, before it is removed."""


class MachineRemoved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one: how it is after it was asked for, or trouble."""

    handle: Handle
    machine: MachineFound | None = None
    trouble: Trouble | None = None
    console: Words = ""


class MachinesRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """All that were asked for, in their order."""

    machines: list[MachineRemoved]


class SwitchMachine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Put a machine of a static pool to sleep, or wake it.  It is sent once: who does not hear the answer looks at the machine.
    """

    id: CommandId
    provider: Name
    machine: StaticMachine
    to: Literal["sleep", "wake"]
    level: Hibernation
    """What it is put into, or is in."""


class MachineSwitched(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    Its provider did it, which says nothing about whether the machine follows; or trouble, and nothing was done.
    """

    trouble: Trouble | None = None
    words: Words = ""
    """Why nobody knows whether it was done."""


class AskAboutOffers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wrong with these offers, as their provider sees it? Nothing is made."""

    provider: Name
    offers: Annotated[list[Offer], msgspec.Meta(min_length=1, max_length=256)]


class OffersLookedAt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sentences, by the name of the offer; an offer without one can be used."""

    faults: dict[str, list[str]] = {}
    trouble: Trouble | None = None


class AskProviderRoom(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many more machines may we have there?"""

    provider: Name


class RoomLeft(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much more; None: it is not said."""

    machines: int | None = None
    cpus: int | None = None
    memory: int | None = None
    """MB."""
    trouble: Trouble | None = None


class FetchConsole(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What did a machine write while it started?"""

    provider: Name
    handle: Handle


class ConsoleRead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of it."""

    text: Words = ""
    trouble: Trouble | None = None


_CALLERS = (Caller.SCALER,)

LIST_PROVIDERS = Endpoint(
    "provisioner", "list_providers", ListProviders, Providers, callers=_CALLERS, repeat=Repeat.QUERY
)
CREATE_MACHINES = Endpoint(
    "provisioner", "create", CreateMachines, MachinesCreated, callers=_CALLERS, repeat=Repeat.FIRST_ANSWER
)
FIND_MACHINES = Endpoint(
    "provisioner", "find", FindMachines, MachinesFound, callers=_CALLERS, repeat=Repeat.QUERY
)
LOOK_AT_MACHINES = Endpoint(
    "provisioner", "look", LookAtMachines, MachinesLooked, callers=_CALLERS, repeat=Repeat.QUERY
)
REMOVE_MACHINES = Endpoint(
    "provisioner", "remove", RemoveMachines, MachinesRemoved, callers=_CALLERS, repeat=Repeat.HARMLESS
)
SWITCH_MACHINE = Endpoint(
    "provisioner", "switch", SwitchMachine, MachineSwitched, callers=_CALLERS, repeat=Repeat.FIRST_ANSWER
)
CHECK_OFFERS = Endpoint(
    "provisioner", "check", AskAboutOffers, OffersLookedAt, callers=_CALLERS, repeat=Repeat.QUERY
)
ASK_ROOM = Endpoint("provisioner", "room", AskProviderRoom, RoomLeft, callers=_CALLERS, repeat=Repeat.QUERY)
READ_CONSOLE = Endpoint(
    "provisioner", "console", FetchConsole, ConsoleRead, callers=_CALLERS, repeat=Repeat.QUERY
)
