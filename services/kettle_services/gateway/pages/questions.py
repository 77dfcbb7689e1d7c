"""What pages ask: routes of the REST interface, in the name of who looks, with the rights that these take."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from kettle.auth.mapping.levels import Level
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.application import Handler as Answers
from kettle_services.gateway.rest.persons import Person
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
        self._require(asked.person, Level(route.level))
        answer = await self._handlers[route](Asked(asked.person, parameters, body, asked.request))
        assert isinstance(answer, Answer)
        assert isinstance(answer.reply, reply)
        return answer.reply
