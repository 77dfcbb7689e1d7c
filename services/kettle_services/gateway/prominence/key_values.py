"""Small values that people keep in the pool, for their programs."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.client import CommandRefusedError
from kettle.client.key_values import KeyValueClient
from kettle_services.gateway.prominence.application import Asked, Route, plain, refused, reply
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.key_values import LARGEST_VALUE, LONGEST_KEY

_INTERNAL: Final = "_internal_"
"""Keys with this are of PROMINENCE's own parts, and are not listed."""


class KeyValues:
    """Asks iam, in the name of who asks."""

    def __init__(self, people: PersonConnections) -> None:
        self._people = people

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        return (
            Route("GET", "/kv", Level.READ, self.get),
            Route("GET", "/kv/{key:.*}", Level.READ, self.get),
            Route("POST", "/kv/{key:.*}", Level.WRITE, self.set),
            Route("DELETE", "/kv/{key:.*}", Level.WRITE, self.remove),
        )

    async def get(self, asked: Asked) -> web.StreamResponse:
        """One value, or the keys that begin so."""
        if asked.has("list"):
            return await self._list(asked)
        key = _key(asked)
        async with self._of(asked) as values:
            try:
                return plain(await values.get(key))
            except CommandRefusedError as error:
                if error.code != RefusalCode.NOT_FOUND:
                    raise
                return reply({"error": "No such key"}, 404)

    async def _list(self, asked: Asked) -> web.StreamResponse:
        prefix = _short(asked)
        async with self._of(asked) as values:
            found = await values.list(prefix)
        shown = {f"/{key}": value for key, value in found.items() if _INTERNAL not in key}
        if not asked.has("values"):
            return reply(list(shown))
        return reply({key: value.decode(errors="replace") for key, value in shown.items()})

    async def set(self, asked: Asked) -> web.StreamResponse:
        """Keep a value, with `prev` only in the place of that one."""
        key, value = _key(asked), await asked.body()
        if not value:
            raise refused("No value provided")
        if len(value) > LARGEST_VALUE:
            raise refused(f"a value has {LARGEST_VALUE:,} bytes at most, and this one has {len(value):,}")
        expected = asked.request.query["prev"].encode() if asked.has("prev") else None
        async with self._of(asked) as values:
            try:
                await values.set(key, value, expected=expected)
            except CommandRefusedError as error:
                if error.code != RefusalCode.REFUSED:
                    raise
                raise refused("Atomic replacement not successful") from error
        return reply({}, 201)

    async def remove(self, asked: Asked) -> web.StreamResponse:
        """Keep a value no longer; a key without one is as was wanted."""
        key = _key(asked)
        async with self._of(asked) as values:
            try:
                await values.remove(key, prefix=asked.has("prefix"))
            except CommandRefusedError as error:
                if error.code != RefusalCode.NOT_FOUND:
                    raise
        return reply({})

    @asynccontextmanager
    async def _of(self, asked: Asked) -> AsyncGenerator[KeyValueClient]:
        async with self._people.of(asked.person) as client:
            if not client.pool.iam_url:
                raise refused("this pool keeps no values, because it has no iam: see daemon_list of [master]")
            yield KeyValueClient(client.requests)


def _key(asked: Asked) -> str:
    """The client begins some of them with a slash."""
    key = _short(asked)
    if not key:
        raise refused("No key specified")
    return key


def _short(asked: Asked) -> str:
    """A key, or how keys begin; raises RequestRefused: none does."""
    key = asked.request.match_info.get("key", "").lstrip("/")
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise refused(f"a key has {LONGEST_KEY} printable characters at most")
    return key
