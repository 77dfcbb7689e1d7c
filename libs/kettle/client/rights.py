"""What we may do at each service of a pool, as the services themselves say it."""

from collections.abc import Sequence
from typing import Final

from kettle.client.connections.transport import SIDE_QUESTION_S, Requests
from kettle.client.errors import ClientError
from kettle.terminal.nearest_names import did_you_mean
from kettle_wire.commands.rights import RIGHTS_AT, QueryRights, RightAt, Rights

BY_NAME: Final = frozenset({"startd"})
"""Services of which a pool has many: they are asked by their names."""


class RightsClient:
    """Asks the services."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def at(
        self, role: str, *, name: str = "", levels: Sequence[str] = (), commands: Sequence[str] = ()
    ) -> Rights:
        """
        What one service says; without levels and commands of the levels that commands of people take.

        Raises:
            ClientError: there is no such service, or it does not answer.
            CommandRefusedError: it knows no such level or command.
        """
        endpoint = RIGHTS_AT.get(role)
        if endpoint is None:
            raise ClientError(f"no {role} takes commands of people{did_you_mean(role, RIGHTS_AT)}")
        if role in BY_NAME and not name:
            raise ClientError(f"a pool has many of {role}: name one")
        patience = min(self._requests.transport.patience, SIDE_QUESTION_S)
        request = QueryRights(levels=list(levels), commands=list(commands))
        return await self._requests.ask(endpoint, request, name=name, patience=patience)

    async def may(self, command: str, *, name: str = "") -> RightAt:
        """Whether we may send a command such as `schedd.submit`; raises like `at`."""
        role, _, verb = command.partition(".")
        return (await self.at(role, name=name, commands=[verb or command])).rights[0]
