"""What pages ask: routes of the REST interface, in the name of who looks, with the rights that these take."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from kettle.auth.mapping.levels import Level
from kettle.bus.ports import BusError
from kettle.client import ClientError
from kettle_services.gateway.rest.application import Answer, Asked, refusal_of
from kettle_services.gateway.rest.application import Handler as Answers
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.route import Route

Reply = TypeVar("Reply", bound=msgspec.Struct)


class Questions:
    """Asks them."""

    def __init__(self, handlers: Mapping[Route, Answers], require: Callable[[Person, Level], None]) -> None:
        """`require` raises RequestRefused where a person has not a level."""
        self._handlers: Final = handlers
        self._require: Final = require

    async def ask(
        self, asked: Asked, route: Route, parameters: msgspec.Struct, reply: type[Reply], body: Any = None
    ) -> Reply:
        """The reply to one; raises RequestRefused as the interface does."""
        found, _ = await self.ask_tagged(asked, route, parameters, reply, body)
        return found

    async def ask_tagged(
        self,
        asked: Asked,
        route: Route,
        parameters: msgspec.Struct,
        reply: type[Reply],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Reply, str]:
        """
        The reply, and the entity tag of what it is about; `headers`: what is said besides, instead of the headers of the request.
        """
        self._require(asked.person, Level(route.level))
        answer = await self._handlers[route](Asked(asked.person, parameters, body, asked.request, headers))
        assert isinstance(answer, Answer)
        assert isinstance(answer.reply, reply)
        return answer.reply, answer.etag

    async def ask_or_say(
        self, asked: Asked, route: Route, parameters: msgspec.Struct, reply: type[Reply]
    ) -> tuple[Reply | None, str]:
        """The reply, or why there is none: for what a page can be without."""
        try:
            return await self.ask(asked, route, parameters, reply), ""
        except (RequestRefused, ClientError, BusError) as error:
            refusal = refusal_of(asked.request, error)
            return None, str(refusal or error)
