"""Environments of the history that only the queue opens which has sealed them."""

from typing import Any

import msgspec

from kettle.client import PoolUnreachableError
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.transport import Requests
from kettle.client.jobs.sealed_values import opened
from kettle.jobs.sealed_attributes import KEY_BYTES, AttributeSeal
from kettle_wire.ads import Ad
from kettle_wire.commands.schedd import OpenSealed, Unsealed
from kettle_wire.endpoint import Endpoint

KEYS = {"ap1": b"1" * KEY_BYTES, "ap2": b"2" * KEY_BYTES}


class Queues:
    """The schedds of two access points, of which the second is away; a transport."""

    patience = 5.0
    waiting = None

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def call(
        self, endpoint: Endpoint[Any, Any], name: str, request: OpenSealed, **_: object
    ) -> msgspec.Struct:
        self.asked.append((name, len(request.values)))
        if name != "ap1":
            raise PoolUnreachableError("away")
        seal = AttributeSeal([KEYS[name]])
        return Unsealed(values=[seal.value(text, "ada") for text in request.values])

    async def connection(self) -> None:
        return None


def job(queue: str, number: int, secret: str, owner: str = "ada") -> Ad:
    ad: Ad = {"Owner": owner, "ProcId": number, "GlobalJobId": f"{queue}#1.{number}#5", "Environment": secret}
    return AttributeSeal([KEYS[queue]]).sealed(ad, owner)


async def test_each_queue_is_asked_once_and_opens_what_is_its_own() -> None:
    """What is bound to somebody else of that name, or sealed by a queue that is away, is left out."""
    queues = Queues()
    ads = [
        job("ap1", 0, "A=1"),
        job("ap1", 1, "B=2"),
        job("ap2", 2, "C=3"),
        job("ap1", 3, "D=4", "eve"),
        job("ap1", 4, ""),
    ]
    found = await opened(Requests(queues, PoolFile(pool="p", nats_url="nats://h:1")), ads)  # type: ignore[arg-type]
    assert [("ap1", 3), ("ap2", 1)] == queues.asked
    assert ["A=1", "B=2", None, None, ""] == [ad.get("Environment") for ad in found]
    assert [0, 1, 2, 3, 4] == [ad["ProcId"] for ad in found]


async def test_nobody_is_asked_where_nothing_is_sealed() -> None:
    """As in pools without such access points."""
    queues = Queues()
    ads: list[Ad] = [{"Owner": "ada", "Environment": "A=1"}, {"Owner": "bob"}]
    assert ads == await opened(Requests(queues, PoolFile(pool="p", nats_url="nats://h:1")), ads)  # type: ignore[arg-type]
    assert [] == queues.asked
