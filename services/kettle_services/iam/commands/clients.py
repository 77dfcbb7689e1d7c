"""Programs with a secret of their own."""

import time
from typing import Any, Final

from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle_services.iam.commands.deciding import recorded, refusing
from kettle_services.iam.domain import sessions
from kettle_services.iam.domain.state import ClientRules
from kettle_services.iam.record import Record
from kettle_wire.commands import iam
from kettle_wire.events.iam import ClientRegistered
from kettle_wire.identity import Identity


class ClientCommands:
    """Registers programs that may ask for tokens."""

    def __init__(self, record: Record) -> None:
        self._record: Final = record

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.command(iam.REGISTER_CLIENT, self.register_client),
            pipeline.command(iam.REMOVE_CLIENT, self.remove_client),
            pipeline.query(iam.LIST_CLIENTS, self.list_clients),
        ]

    async def register_client(self, request: iam.RegisterClient, caller: Identity) -> Decision[iam.Recorded]:
        """Let a program ask for tokens; `refused`, `unacceptable`."""
        event = ClientRegistered(
            client=request.client,
            hash=request.hash,
            owner=request.owner,
            scopes=request.scopes,
            audiences=request.audiences,
            lifetime=request.lifetime,
            exchanges=request.exchanges,
            by=caller.name,
            at=time.time(),
        )
        with refusing():
            return recorded(sessions.registered(self._record.register, event, replace=request.replace))

    async def remove_client(self, request: iam.RemoveClient, caller: Identity) -> Decision[iam.Recorded]:
        """Let a program have no more tokens; `not_found`."""
        with refusing():
            return recorded(
                sessions.removed(self._record.register, request.client, by=caller.name, now=time.time())
            )

    async def list_clients(self, request: iam.ListClients, caller: Identity) -> iam.Clients:
        """The programs that may ask for tokens; nobody is shown a secret."""
        clients = sorted(self._record.register.all(ClientRules), key=lambda each: each.client)
        return iam.Clients(
            clients=[
                iam.ClientShown(
                    client=each.client,
                    owner=each.owner,
                    scopes=list(each.scopes),
                    audiences=list(each.audiences),
                    lifetime=each.lifetime,
                    exchanges=each.exchanges,
                    by=each.by,
                    at=each.at,
                )
                for each in clients
            ]
        )
