"""
Connections to the bus in the names of persons.

The subject of a command says who sends it, and the gateway may not speak as anybody: so a command of a person's goes over a
connection with that person's own credential.  `PersonConnections` is the port.  `OwnConnections` shows the token of who has come by one,
if the pool takes those of its issuer; else the credential of an account lies on this machine, and this process may read it, and with it
speaks as who has come by a token all the same.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol, Self
from weakref import WeakValueDictionary

import msgspec

from kettle.client import Client, ClientError
from kettle.client.connections.credentials import CredentialRefusedError
from kettle.client.connections.pool_file import PoolFile
from kettle_services.gateway.rest.local_accounts import LocalAccounts
from kettle_services.gateway.rest.own_iam import refusal_of_iam
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

MOST: Final = 128
"""Connections that are kept open; of those that nobody uses the one that was used longest ago is closed for another."""
_FOR_LONG: Final = 2
"""One part in so many of them at the most is of what has no end of its own: the rest is for who orders something."""
PATIENCE_S: Final = 10.0


class PersonConnections(Protocol):
    """Where the connection of a person is had."""

    def of(self, person: Person) -> AbstractAsyncContextManager[Client]:
        """
        A client that speaks in the person's name, and is not closed as long as it is held.

        Raises RequestRefused: there is none, and why.
        """
        ...


class LastingConnections(PersonConnections, Protocol):
    """Where it is had for something that has no end of its own, too."""

    def for_long(self, person: Person) -> AbstractAsyncContextManager[Client]:
        """As `of`; raises RequestRefused also if too many others have theirs for long."""
        ...


Shown = Callable[[], str]
"""The token as it is now."""
Connect = Callable[[PoolFile, Shown | None], AbstractAsyncContextManager[Client]]


class _Open:
    """A connection."""

    def __init__(self, client: Client, stack: AsyncExitStack) -> None:
        self.client: Final = client
        self.stack: Final = stack
        self.users = 0
        self.for_long = 0
        """How many of them have no end of their own."""


class OwnConnections:
    """With tokens, and with the credentials that the pool has made for accounts of this machine."""

    def __init__(self, home: Path, *, pool_domain: str, connect: Connect, most: int = MOST) -> None:
        self._home = home
        self._accounts = LocalAccounts(home)
        self._domain = pool_domain.lower()
        self._connect = connect
        self._most = most
        self._open: OrderedDict[bytes, _Open] = OrderedDict()
        self._coming = 0
        self._locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    @classmethod
    @asynccontextmanager
    async def ready(
        cls, home: Path, *, pool_domain: str, connect: Connect | None = None, most: int = MOST
    ) -> AsyncGenerator[Self]:
        """Connections are opened when they are wanted, and closed at the end."""
        connections = cls(home, pool_domain=pool_domain, connect=connect or _connected, most=most)
        try:
            yield connections
        finally:
            for each in list(connections._open.values()):
                await each.stack.aclose()

    @asynccontextmanager
    async def of(self, person: Person) -> AsyncGenerator[Client]:
        """See `PersonConnections.of`."""
        held = await self._held(person)
        try:
            yield held.client
        finally:
            held.users -= 1

    @asynccontextmanager
    async def for_long(self, person: Person) -> AsyncGenerator[Client]:
        """See `LastingConnections.for_long`."""
        held = await self._held(person)
        try:
            self._require_rest(held)
            held.for_long += 1
            try:
                yield held.client
            finally:
                held.for_long -= 1
        finally:
            held.users -= 1

    def _require_rest(self, wanted: _Open) -> None:
        """Raises RequestRefused: too few would be left for those who need a connection for a moment."""
        most = self._most // _FOR_LONG
        if sum(each.for_long > 0 for each in self._open.values() if each is not wanted) >= most:
            raise RequestRefused(
                503,
                ProblemCode.TOO_MANY,
                f"{most} persons have a terminal, which is the most of this gateway; try again later",
                retry_after=30,
            )

    async def _held(self, person: Person) -> _Open:
        """
        The person's connection, with one user more; others who want the same one meanwhile wait for it.  Raises RequestRefused.
        """
        if person.mapped.domain.lower() != self._domain:
            raise _none(person, "its domain is not that of this pool's accounts")
        way = await asyncio.to_thread(self._way_of, person)
        lock = self._locks.setdefault(way.key, asyncio.Lock())
        async with lock:
            held = self._open.get(way.key)
            if held is None:
                held = await self._opened(person, way)
                self._open[way.key] = held
            held.users += 1
            self._open.move_to_end(way.key)
            return held

    async def _opened(self, person: Person, way: "_Way") -> _Open:
        idle = self._require_place()
        self._coming += 1
        try:
            if idle is not None:
                await idle.stack.aclose()
            stack = AsyncExitStack()
            try:
                return _Open(await stack.enter_async_context(self._connect(way.pool, way.shown)), stack)
            except CredentialRefusedError as error:
                raise refusal_of_iam(error) from error
            except ClientError as error:
                raise _none(person, str(error)) from error
        finally:
            self._coming -= 1

    def _require_place(self) -> _Open | None:
        """What has to be closed first; raises RequestRefused: all are in use."""
        if len(self._open) + self._coming < self._most:
            return None
        name = next((name for name, each in self._open.items() if not each.users), None)
        if name is None:
            raise RequestRefused(
                503,
                ProblemCode.TOO_MANY,
                f"{self._most} persons use a connection to the bus, which is the most; try again later",
                retry_after=5,
            )
        return self._open.pop(name)

    def _way_of(self, person: Person) -> "_Way":
        """How the person reaches the pool; raises RequestRefused."""
        try:
            pool = PoolFile.load(self._home)
        except ClientError as error:
            raise _none(person, str(error)) from error
        held = person.credential
        pool = msgspec.structs.replace(pool, by_token=bool(person.principal.issuer))
        if held is not None and pool.by_token and pool.sentinel and person.principal.issuer in pool.issuers:
            own = msgspec.structs.replace(pool, user=person.name, credentials=pool.sentinel, database_url="")
            return _Way(held.key, own, lambda: held.token)
        way = f"{pool.by_token} {person.name}".encode()
        if pool.user == person.name:
            return _Way(way, pool)
        key = self._accounts.key_of(person.name)
        if key is None:
            raise _none(person, "the pool has made no key for an account of this name on this machine")
        account = msgspec.structs.replace(pool, user=person.name, credentials=str(key), database_url="")
        return _Way(way, account)


class _Way:
    """How somebody reaches the pool; it has no text, because it leads to a token."""

    def __init__(self, key: bytes, pool: PoolFile, shown: Shown | None = None) -> None:
        """`key`: by which the connection is found again."""
        self.key: Final = key
        self.pool: Final = pool
        self.shown: Final = shown


def _connected(pool: PoolFile, shown: Shown | None) -> AbstractAsyncContextManager[Client]:
    return Client.connect(pool=pool, patience=PATIENCE_S, token=shown)


def _none(person: Person, why: str) -> RequestRefused:
    return RequestRefused(
        503,
        ProblemCode.NO_CONNECTION,
        f"there is no connection to the bus in the name of {person.name}: {why}; use the command kettle, which shows a credential itself",
    )
