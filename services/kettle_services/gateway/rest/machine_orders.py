"""
What machines are told to do, over a connection of the person who asks: each machine decides itself whether that one may.
"""

from typing import Final

from kettle.bus.ports import Bus
from kettle.classad import ClassAdError, parse
from kettle.classad.printing import quoted_string
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.commands.startd import CANCEL_DRAIN, DRAIN, CancelDrain, Drain
from kettle_wire.rest.machines import EmptyMachine, MachineOrder, MachineOrdered
from kettle_wire.rest.problem import ProblemCode


class MachineOrders:
    """Sends them."""

    def __init__(self, bus: Bus, collector: str, people: PersonConnections) -> None:
        self._bus: Final = bus
        self._collector: Final = collector
        self._people: Final = people
        self._repeats: Final = Repeats()

    async def empty(self, asked: Asked) -> Answer:
        """Drain a machine, or have it take jobs again."""
        parameters: EmptyMachine = asked.parameters
        order: MachineOrder = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        for name, text in (("check", order.check), ("start", order.start)):
            _require_expression(name, text)
        await self._require_machine(parameters.name)
        async with self._people.of(asked.person) as client:
            if parameters.action == "cancel_drain":
                cancel = CancelDrain(request=order.request)
                await client.requests.ask(CANCEL_DRAIN, cancel, name=parameters.name)
                answer = MachineOrdered(name=parameters.name)
            else:
                drain = Drain(
                    id=command_id(asked),
                    speed=order.speed,
                    reason=order.reason,
                    check=order.check,
                    start=order.start,
                    resume=order.resume,
                )
                await client.requests.ask(DRAIN, drain, name=parameters.name)
                answer = MachineOrdered(name=parameters.name, request=drain.id)
        return self._repeats.answered(asked, Answer(answer))

    async def _require_machine(self, name: str) -> None:
        """Raises RequestRefused: nobody of that name would answer."""
        constraint = f"Name =?= {quoted_string(name)}"
        if not await all_ads(self._bus, self._collector, "StartDaemon", constraint, ["Name"]):
            raise RequestRefused(
                404,
                ProblemCode.NOT_FOUND,
                f"there is no machine {name}: the list of machines has those that are there",
            )


def _require_expression(name: str, text: str) -> None:
    """Raises RequestRefused: it is none."""
    try:
        parse(text or "true")
    except ClassAdError as error:
        raise refused_field(
            f"/body/{name}",
            f"{name} is no ClassAd expression: {error}",
            code=ProblemCode.BODY_INVALID,
            status=422,
        ) from error
