"""The pages of machines: all of them on a map and in a table, and each one by itself."""

from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import quote

import msgspec

from kettle_services.gateway.pages.notices import Notice
from kettle_services.gateway.pages.page import Form, Led, Link, Page, Shown
from kettle_services.gateway.pages.pool.parameters import narrowed
from kettle_services.gateway.pages.pool.past_use import machines_then
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.jobs import Name
from kettle_wire.rest.attempts import LIST_ATTEMPTS, Attempt, Attempts, ListAttempts
from kettle_wire.rest.machine_use import LIST_MACHINE_USE, ListMachineUse, MachinesInUse, MachineState
from kettle_wire.rest.machines import (
    EMPTY_MACHINE,
    GET_MACHINE,
    EmptyMachine,
    GetMachine,
    Machine,
    MachineOrder,
    MachineOrdered,
)
from kettle_wire.rest.route import Moment

STATES: Final[dict[MachineState, str]] = {
    "busy": "all cores claimed",
    "partly": "some cores claimed",
    "free": "unclaimed",
    "owner": "owner is there",
    "drained": "draining or drained",
    "backfill": "backfill",
}
_LATELY: Final = 20


class AskedMachines(ListMachineUse, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which machines, and how the map shows them."""

    colour: Literal["state", "owner", "used", "age", "arch"] = "state"
    arrange: Literal["name", "colour"] = "name"
    as_of: Moment | None = None


class MachinesView(msgspec.Struct, frozen=True, kw_only=True):
    """Machines on a map and in a table."""

    asked: AskedMachines
    found: MachinesInUse
    states: ClassVar[dict[MachineState, str]] = STATES

    @property
    def narrowing(self) -> dict[str, str]:
        """The parameters of the map's data."""
        asked = self.asked
        said = {"filter": asked.filter, "state": asked.state, "owner": asked.owner, "arch": asked.arch}
        return {
            name: value if isinstance(value, str) else ",".join(value)
            for name, value in said.items()
            if value
        }


class AskedMachine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which machine, and what of its ads."""

    name: Name
    search: Annotated[str, msgspec.Meta(max_length=256)] = ""
    """Only attributes that have this in their name or value."""
    as_of: Moment | None = None


class Attribute(msgspec.Struct, frozen=True):
    """One of an ad, as text."""

    name: str
    value: str


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot and its ad."""

    name: str
    state: str
    activity: str
    cpus: str
    memory: str
    owner: str
    ad: list[Attribute]


class MachineView(msgspec.Struct, frozen=True, kw_only=True):
    """One machine."""

    asked: AskedMachine
    machine: Machine
    slots: list[Slot]
    ad: list[Attribute]
    """Of its startd."""
    lately: list[Attempt]
    trouble: str
    """Why it is not known what ran there lately; empty: it is known."""
    draining: str
    """Why it is being emptied, or was; empty: it takes jobs."""


MACHINES: Final = Page(
    "/machines",
    "Machines",
    template="pool/machines.html",
    parameters=AskedMachines,
    link=Link("Pool", 10),
)
MACHINE: Final = Page("/machines/{name}", "Machine", template="pool/machine.html", parameters=AskedMachine)


class OrderFields(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine is told to do."""

    order: Literal["drain", "vacate", "cancel_drain"]
    speed: Literal["graceful", "quick", "fast"] = "graceful"
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class NamedMachine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which machine."""

    name: Name


ORDER: Final = Form(
    "/machines/{name}/orders",
    "Machine",
    fields=OrderFields,
    template="pool/machine.html",
    parameters=NamedMachine,
)
_DONE: Final = {
    "drain": "{} takes no new jobs; those that run are told to end. It stays like that until it is told to take jobs again.",
    "vacate": "{} ends what runs there, and then takes jobs again.",
    "cancel_drain": "{} takes jobs again.",
}


class MachinePages:
    """Shows them."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def machines(self, asked: Asked) -> Shown:
        """All machines, or those that were claimed at a moment."""
        parameters: AskedMachines = asked.parameters
        if (moment := parameters.as_of) is not None:
            owner, limit, page = parameters.owner, parameters.limit, parameters.page
            return await machines_then(self._questions, asked, moment, owner, limit, page)
        found = await self._questions.ask(
            asked, LIST_MACHINE_USE, narrowed(parameters, ListMachineUse), MachinesInUse
        )
        return Shown(MachinesView(asked=parameters, found=found))

    async def machine(self, asked: Asked) -> Shown:
        """One machine; raises RequestRefused if there is none of that name."""
        parameters: AskedMachine = asked.parameters
        machine = await self._questions.ask(asked, GET_MACHINE, narrowed(parameters, GetMachine), Machine)
        lately, trouble = list[Attempt](), ""
        try:
            attempts = await self._questions.ask(
                asked,
                LIST_ATTEMPTS,
                ListAttempts(machine=[parameters.name], until=parameters.as_of, limit=_LATELY),
                Attempts,
            )
            lately = attempts.attempts
        except RequestRefused as refusal:
            if refusal.status != 503:
                raise
            trouble = str(refusal)
        view = MachineView(
            asked=parameters,
            machine=machine,
            slots=[_slot(each.name, each.attributes, parameters.search) for each in machine.slots],
            ad=_attributes(machine.attributes or {}, parameters.search),
            lately=lately,
            trouble=trouble,
            draining=_draining(machine),
        )
        return Shown(view, title=machine.name)

    async def order(self, asked: Asked) -> Led:
        """
        Have a machine emptied, or take jobs again; raises RequestRefused: it does not listen to this person.
        """
        fields: OrderFields = asked.body
        name: str = asked.parameters.name
        cancels = fields.order == "cancel_drain"
        parameters = EmptyMachine(name=name, action="cancel_drain" if cancels else "drain")
        order = MachineOrder(speed=fields.speed, reason=fields.reason, resume=fields.order == "vacate")
        await self._questions.ask(asked, EMPTY_MACHINE, parameters, MachineOrdered, order)
        return Led(f"/machines/{quote(name)}", notice=Notice(said=[_DONE[fields.order].format(name)]))


def _draining(machine: Machine) -> str:
    for slot in machine.slots:
        if slot.attributes.get("Draining") is True:
            return str(slot.attributes.get("DrainReason") or "no reason was given")
    return ""


def _slot(name: str, ad: Ad, search: str) -> Slot:
    return Slot(
        name=name,
        state=_said(ad.get("State", "")),
        activity=_said(ad.get("Activity", "")),
        cpus=_said(ad.get("Cpus", "")),
        memory=_said(ad.get("Memory", "")),
        owner=_said(ad.get("RemoteOwner", "")),
        ad=_attributes(ad, search),
    )


def _attributes(ad: Ad, search: str) -> list[Attribute]:
    wanted = search.casefold()
    found = [
        Attribute(name, _said(value)) for name, value in sorted(ad.items(), key=lambda each: each[0].lower())
    ]
    return [each for each in found if wanted in each.name.casefold() or wanted in each.value.casefold()]


def _said(value: Scalar) -> str:
    match value:
        case Expr(expr=text):
            return text
        case bool():
            return str(value).lower()
        case _:
            return str(value)
