"""
Connections to the bus in the names of persons.

The subject of a command says who sends it, and the gateway may not speak as anybody: so a command of a person's goes over a
connection with that person's own credential.  `PersonConnections` is the port; where the credentials of accounts lie on this machine
and this process may read them, `AccountConnections` uses these.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec

from kettle.client import Client, ClientError
from kettle.client.connections.pool_file import PoolFile
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

MOST: Final = 64
"""Connections that are kept open; the one that was used longest ago is closed for another."""
PATIENCE_S: Final = 10.0


class PersonConnections(Protocol):
    """Where the connection of a person is had."""

    async def of(self, person: Person) -> Client:
        """
        A client that speaks in the person's name.

        Raises RequestRefused: there is none, and why.
        """
        ...


class AccountConnections:
    """With the credentials that the pool has made for accounts of this machine."""

    def __init__(self, home: Path, *, pool_domain: str) -> None:
        self._home = home
        self._domain = pool_domain.lower()
        self._open: OrderedDict[str, tuple[Client, AsyncExitStack]] = OrderedDict()
        self._busy = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def ready(cls, home: Path, *, pool_domain: str) -> AsyncGenerator[Self]:
        """Connections are opened when they are wanted, and closed at the end."""
        connections = cls(home, pool_domain=pool_domain)
        try:
            yield connections
        finally:
            for name in list(connections._open):
                await connections._close(name)

    async def of(self, person: Person) -> Client:
        """See `PersonConnections.of`."""
        if person.mapped.domain.lower() != self._domain:
            raise _none(person, "its domain is not that of this pool's accounts")
        async with self._busy:
            known = self._open.get(person.name)
            if known is not None:
                self._open.move_to_end(person.name)
                return known[0]
            pool = await asyncio.to_thread(self._pool_of, person)
            stack = AsyncExitStack()
            try:
                client = await stack.enter_async_context(Client.connect(pool=pool, patience=PATIENCE_S))
            except ClientError as error:
                raise _none(person, str(error)) from error
            self._open[person.name] = client, stack
            while len(self._open) > MOST:
                await self._close(next(iter(self._open)))
            return client

    def _pool_of(self, person: Person) -> PoolFile:
        """How the person reaches the pool; raises RequestRefused."""
        try:
            pool = PoolFile.load(self._home)
        except ClientError as error:
            raise _none(person, str(error)) from error
        if pool.user == person.name:
            return pool
        key = self._home / "credentials" / f"account-{person.name}.creds"
        if "/" in person.name or not key.is_file():
            raise _none(person, "the pool has made no key for an account of this name on this machine")
        return msgspec.structs.replace(pool, user=person.name, credentials=str(key), database_url="")

    async def _close(self, name: str) -> None:
        _, stack = self._open.pop(name)
        await stack.aclose()


def _none(person: Person, why: str) -> RequestRefused:
    return RequestRefused(
        503,
        ProblemCode.NO_CONNECTION,
        f"there is no connection to the bus in the name of {person.name}: {why}; use the command kettle, which shows a credential itself",
    )
