"""What a provisioner does when it is asked: each call of a provider in its turn and within its time."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from kettle.bus.ports import RefusedError, Served
from kettle.faults import fault_point
from kettle.retry.deadline import Deadline
from kettle.runtime import Telemetry
from kettle_services.provisioner.call_metrics import Call, CallMetrics
from kettle_services.provisioner.domain.bootstraps import bootstrap_of
from kettle_services.provisioner.domain.words import without_join_tokens
from kettle_services.provisioner.hosted import Hosted
from kettle_services.provisioner.join_tokens import JoinTokens
from kettle_services.provisioner.pace import NoTurnError
from kettle_services.provisioner.port import InDoubtError, ProviderError, SwitchesMachines, UnavailableError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import provisioner as commands
from kettle_wire.commands.provisioner import (
    AskAboutOffers,
    AskProviderRoom,
    ConsoleRead,
    Created,
    CreateMachines,
    FetchConsole,
    FindMachines,
    ListProviders,
    LookAtMachines,
    MachineLooked,
    MachineRemoved,
    MachinesCreated,
    MachinesFound,
    MachinesLooked,
    MachinesRemoved,
    MachineSwitched,
    OffersLookedAt,
    Providers,
    ProviderShown,
    RemoveMachines,
    RoomLeft,
    SwitchMachine,
    Trouble,
)
from kettle_wire.identity import Identity
from kettle_wire.leases import ErrorClass, Order
from kettle_wire.worker_pools import Offer

T = TypeVar("T")
_LONGEST: Final = 4096
_REMEMBERED: Final = 10_000
"""So many orders are remembered, so that one that arrives twice is carried out once."""

_log: Final = logging.getLogger(__name__)


class Provisioner:
    """Answers the scaler."""

    def __init__(
        self,
        hosted: dict[str, Hosted],
        tokens: JoinTokens,
        *,
        call_deadline: float,
        secret: Callable[[], str],
        telemetry: Telemetry,
    ) -> None:
        self._hosted: Final = hosted
        self._tokens = tokens
        self._deadline = call_deadline
        self._secret = secret
        self._taken: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._metrics = CallMetrics(telemetry, hosted)

    def served(self) -> Sequence[Served[Any, Any]]:
        """All that is answered."""
        return [
            Served(commands.LIST_PROVIDERS, self.list_providers),
            Served(commands.CREATE_MACHINES, self.create),
            Served(commands.FIND_MACHINES, self.find),
            Served(commands.LOOK_AT_MACHINES, self.look),
            Served(commands.REMOVE_MACHINES, self.remove),
            Served(commands.SWITCH_MACHINE, self.switch),
            Served(commands.CHECK_OFFERS, self.check),
            Served(commands.ASK_ROOM, self.room),
            Served(commands.READ_CONSOLE, self.console),
        ]

    async def list_providers(self, request: ListProviders, caller: Identity) -> Providers:
        """All that are set up."""
        del request, caller
        return Providers(
            providers=[
                ProviderShown(
                    name=each.name,
                    kind=each.kind,
                    visibility=each.provider.visibility if each.provider is not None else 0.0,
                    trouble=each.trouble,
                )
                for each in self._hosted.values()
            ]
        )

    async def create(self, request: CreateMachines, caller: Identity) -> MachinesCreated:
        """Make machines, all at the same time as far as the provider's pace lets them."""
        del caller
        hosted = self._of(request.provider)
        return MachinesCreated(
            created=await asyncio.gather(*(self._created(hosted, order) for order in request.orders))
        )

    async def _created(self, hosted: Hosted, order: Order) -> Created:
        if not self._takes((order.lease, order.attempt)):
            return _unsure(order, "this order was taken before")
        deadline = Deadline(self._deadline)
        try:
            provider = hosted.use()
            joining = await self._tokens.joining(order, secret=self._secret())
            bootstrap = bootstrap_of(order, joining)
            async with hosted.pace.turn(deadline):
                fault_point("machine.ordered")
                with self._metrics.measured(hosted.name, "create"):
                    async with asyncio.timeout(deadline.left()):
                        handle = await provider.create(order, bootstrap)
                fault_point("machine.made")
        except ProviderError as error:
            return Created(lease=order.lease, attempt=order.attempt, trouble=self._trouble(hosted, error))
        except ValueError as error:
            trouble = Trouble(error=ErrorClass.REQUEST, words=_cut(f"offer {order.offer.name}: {error}"))
            return Created(lease=order.lease, attempt=order.attempt, trouble=trouble)
        except (InDoubtError, UnavailableError) as error:
            return _unsure(order, str(error))
        except TimeoutError:
            return _unsure(order, f"the provider did not answer within {self._deadline:.0f} s")
        return Created(lease=order.lease, attempt=order.attempt, handle=handle)

    def _takes(self, key: tuple[str, int]) -> bool:
        """Whether an order has come for the first time."""
        if key in self._taken:
            return False
        self._taken[key] = None
        if len(self._taken) > _REMEMBERED:
            self._taken.popitem(last=False)
        return True

    async def find(self, request: FindMachines, caller: Identity) -> MachinesFound:
        """All of ours."""
        del caller
        hosted = self._hosted.get(request.provider)
        if hosted is None:
            return MachinesFound(trouble=self._unknown(request.provider))
        found = await self._asked(hosted, "find", lambda: hosted.use().find())
        if isinstance(found, Trouble):
            return MachinesFound(trouble=found)
        return MachinesFound(
            machines=found.machines, complete=found.complete, visibility=hosted.use().visibility
        )

    async def look(self, request: LookAtMachines, caller: Identity) -> MachinesLooked:
        """How some are."""
        del caller
        hosted = self._of(request.provider)

        async def one(handle: str) -> MachineLooked:
            machine = await self._asked(hosted, "get", lambda: hosted.use().get(handle))
            if isinstance(machine, Trouble):
                return MachineLooked(handle=handle, trouble=machine)
            return MachineLooked(handle=handle, machine=machine)

        return MachinesLooked(machines=await asyncio.gather(*map(one, request.handles)))

    async def remove(self, request: RemoveMachines, caller: Identity) -> MachinesRemoved:
        """Remove some, and look how they are then."""
        del caller
        hosted = self._of(request.provider)

        async def one(handle: str) -> MachineRemoved:
            console = (
                await self._asked(hosted, "console", lambda: hosted.use().console(handle))
                if request.console
                else ""
            )
            said = "" if isinstance(console, Trouble) else without_join_tokens(console)[-_LONGEST:]
            done = await self._asked(hosted, "delete", lambda: hosted.use().delete(handle))
            fault_point("machine.removed")
            if isinstance(done, Trouble):
                return MachineRemoved(handle=handle, trouble=done, console=said)
            machine = await self._asked(hosted, "get", lambda: hosted.use().get(handle))
            if isinstance(machine, Trouble):
                return MachineRemoved(handle=handle, trouble=machine, console=said)
            return MachineRemoved(handle=handle, machine=machine, console=said)

        return MachinesRemoved(machines=await asyncio.gather(*map(one, request.handles)))

    async def switch(self, request: SwitchMachine, caller: Identity) -> MachineSwitched:
        """Put a machine to sleep, or wake it, once."""
        del caller
        hosted = self._of(request.provider)
        if not self._takes((request.id, 0)):
            return MachineSwitched(words="this order was taken before")

        async def switched() -> None:
            provider = hosted.use()
            if not isinstance(provider, SwitchesMachines):
                raise ProviderError(
                    ErrorClass.CONFIG,
                    f"{hosted.name} is a provider of kind {hosted.kind}, which puts no machines to sleep: use one of kind power",
                )
            fault_point("machine.switched")
            await provider.switch(request.machine, request.to, request.level)

        said = await self._asked(hosted, "switch", switched)
        fault_point("machine.was_switched")
        if not isinstance(said, Trouble):
            return MachineSwitched()
        return MachineSwitched(words=said.words) if said.error is None else MachineSwitched(trouble=said)

    async def check(self, request: AskAboutOffers, caller: Identity) -> OffersLookedAt:
        """What is wrong with some offers."""
        del caller
        hosted = self._hosted.get(request.provider)
        if hosted is None:
            return OffersLookedAt(trouble=self._unknown(request.provider))
        faults: dict[str, list[str]] = {}
        for offer in request.offers:
            said = await self._asked(hosted, "check", partial(_check, hosted, offer))
            if isinstance(said, Trouble):
                return OffersLookedAt(faults=faults, trouble=said)
            if said:
                faults[offer.name] = [_cut(each) for each in said]
        return OffersLookedAt(faults=faults)

    async def room(self, request: AskProviderRoom, caller: Identity) -> RoomLeft:
        """How much more there may be."""
        del caller
        hosted = self._of(request.provider)
        room = await self._asked(hosted, "room", lambda: hosted.use().room())
        if isinstance(room, Trouble):
            return RoomLeft(trouble=room)
        return RoomLeft(machines=room.machines, cpus=room.cpus, memory=room.memory)

    async def console(self, request: FetchConsole, caller: Identity) -> ConsoleRead:
        """What one wrote."""
        del caller
        hosted = self._of(request.provider)
        text = await self._asked(hosted, "console", lambda: hosted.use().console(request.handle))
        if isinstance(text, Trouble):
            return ConsoleRead(trouble=text)
        return ConsoleRead(text=without_join_tokens(text)[-_LONGEST:])

    def _of(self, name: str) -> Hosted:
        hosted = self._hosted.get(name)
        if hosted is None:
            raise RefusedError(RefusalCode.NOT_FOUND, self._unknown(name).words)
        return hosted

    def _unknown(self, name: str) -> Trouble:
        """Its offers are closed until it is set up."""
        there = ", ".join(self._hosted)
        words = f"no provider {name} is set up here: add a table [provisioner.providers.{name}], or name one of {there}"
        return Trouble(error=ErrorClass.CONFIG, words=words)

    async def _asked(self, hosted: Hosted, name: Call, call: Callable[[], Awaitable[T]]) -> T | Trouble:
        """One question to a provider, or one order."""
        deadline = Deadline(self._deadline)
        try:
            async with hosted.pace.turn(deadline):
                with self._metrics.measured(hosted.name, name):
                    async with asyncio.timeout(deadline.left()):
                        return await call()
        except ProviderError as error:
            return self._trouble(hosted, error)
        except (UnavailableError, InDoubtError) as error:
            return Trouble(error=None, words=_cut(str(error)))
        except TimeoutError:
            return Trouble(error=None, words=f"{hosted.name} did not answer within {self._deadline:.0f} s")

    def _trouble(self, hosted: Hosted, error: ProviderError) -> Trouble:
        if error.error is ErrorClass.RATE and not isinstance(error, NoTurnError):
            hosted.pace.slower()
        _log.warning(
            "a provider is not asked" if isinstance(error, NoTurnError) else "a provider refuses",
            extra={"provider": hosted.name, "class": error.error.value, "cause": _cut(str(error))},
        )
        return Trouble(error=error.error, words=_cut(str(error)), retry_after=error.retry_after)


async def _check(hosted: Hosted, offer: Offer) -> Sequence[str]:
    return await hosted.use().check(offer)


def _unsure(order: Order, words: str) -> Created:
    return Created(lease=order.lease, attempt=order.attempt, words=_cut(words))


def _cut(words: str) -> str:
    return words[:_LONGEST]
