"""
What the NATS server itself says it holds for whom: connections, subscriptions, consumers.

Asked over its system account, for which the pool's own keys vouch.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

from kettle.auth.trust.files import write
from kettle.auth.trust.pool import OBSERVERS_INBOX, PoolTrust
from kettle.testing.chaos.invariants import InvariantResult, verdict
from kettle_wire.subjects import Subjects

T = TypeVar("T")

_ANSWER_S: Final = 2.0
_PATIENCE_S: Final = 10.0
_LOOK_S: Final = 0.05
_MORE: Final = 8
"""Subscriptions that a service may have more than it had: one for each request that is under way."""


class BusHoldings(msgspec.Struct, frozen=True):
    """What clients hold on a server."""

    subscriptions: dict[str, int]
    """By name of the client, of all its connections."""
    connections: dict[str, int]
    readers: dict[str, int]
    """By stream, the consumers that somebody reads."""
    kept: set[str]
    """`stream/consumer` of those that the server keeps although nobody reads them."""
    open: Mapping[int, str] = {}
    """The client of each connection, by the number that the server gave it."""


class _Connection(msgspec.Struct, frozen=True):
    cid: int = 0
    name: str = ""
    subscriptions: int = 0


class _Connections(msgspec.Struct, frozen=True):
    connections: list[_Connection] = []


class _Config(msgspec.Struct, frozen=True):
    inactive_threshold: int = 0
    """Nanoseconds without a reader after which the server forgets the consumer; 0: never."""


class _Consumer(msgspec.Struct, frozen=True):
    name: str
    config: _Config = _Config()
    num_waiting: int = 0
    """Requests for messages that wait for some: somebody reads."""


class _Stream(msgspec.Struct, frozen=True):
    name: str
    consumer_detail: list[_Consumer] = []


class _Account(msgspec.Struct, frozen=True):
    stream_detail: list[_Stream] = []


class _Streams(msgspec.Struct, frozen=True):
    account_details: list[_Account] = []


async def holdings(home: Path, url: str) -> BusHoldings:
    """
    Ask the server of a pool.

    Raises:
        TimeoutError: it does not answer.
    """
    trust = PoolTrust(home / "credentials" / "trust", Subjects("any"))
    with tempfile.TemporaryDirectory() as directory:
        credentials = write(Path(directory) / "observer.creds", trust.observer)
        async with asyncio.timeout(_PATIENCE_S):
            client = await _let_in(url, str(credentials))
            try:
                what = {"accounts": True, "streams": True, "consumer": True, "config": True}
                streams = await _ask(client, "JSZ", what, _Streams)
                about = {"subscriptions": True, "limit": 4096}
                connections = await _ask(client, "CONNZ", about, _Connections)
            finally:
                await client.close()
    return _counted(streams, connections)


async def _let_in(url: str, credentials: str) -> Client:
    while True:
        client = Client()
        try:
            await client.connect(
                url,
                user_credentials=credentials,
                inbox_prefix=OBSERVERS_INBOX.encode(),
                allow_reconnect=False,
                error_cb=_quiet,
                name="observer",
            )
        except (NatsError, OSError):
            await client.close()
            await asyncio.sleep(_LOOK_S)  # the server is on its way back
        else:
            return client


async def _ask(client: Client, what: str, question: Mapping[str, object], kind: type[T]) -> T:
    subject = f"$SYS.REQ.SERVER.PING.{what}"
    answer = await client.request(subject, msgspec.json.encode(question), timeout=_ANSWER_S)
    return msgspec.convert(msgspec.json.decode(answer.data)["data"], kind)


async def _quiet(_error: Exception) -> None:
    """Being refused at first is what is expected."""


def _counted(streams: _Streams, connections: _Connections) -> BusHoldings:
    subscriptions: Counter[str] = Counter()
    clients: Counter[str] = Counter()
    for connection in connections.connections:
        if connection.name != "observer":
            clients[connection.name] += 1
            subscriptions[connection.name] += connection.subscriptions
    readers: Counter[str] = Counter()
    kept: set[str] = set()
    for stream in (stream for account in streams.account_details for stream in account.stream_detail):
        for consumer in stream.consumer_detail:
            if consumer.num_waiting:
                readers[stream.name] += 1
            elif not consumer.config.inactive_threshold:
                kept.add(f"{stream.name}/{consumer.name}")
    numbered = {each.cid: each.name for each in connections.connections}
    return BusHoldings(dict(subscriptions), dict(clients), dict(readers), kept, numbered)


def nothing_leaked(before: BusHoldings, after: BusHoldings) -> InvariantResult:
    """
    Nobody has more connections, subscriptions or consumers than before, and none is kept that nobody reads.
    """
    problems = [
        f"{name} had {before.connections.get(name, 0)} connections and has {number}"
        for name, number in after.connections.items()
        if number > before.connections.get(name, 0)
    ]
    problems += [
        f"{name} had {before.subscriptions.get(name, 0)} subscriptions and has {number}"
        for name, number in after.subscriptions.items()
        if number > before.subscriptions.get(name, 0) + _MORE
    ]
    problems += [
        f"{stream} had {before.readers.get(stream, 0)} consumers and has {number}"
        for stream, number in after.readers.items()
        if number > before.readers.get(stream, 0)
    ]
    problems += [f"nobody reads {name}, and it stays" for name in sorted(after.kept - before.kept)]
    examined = (
        sum(after.connections.values()) + sum(after.subscriptions.values()) + sum(after.readers.values())
    )
    return verdict("no connection, subscription or consumer is left over", examined, problems)
