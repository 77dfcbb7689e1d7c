"""
People who come to the bus with a token: JSON on standard output.

    python -m tests.performance.logins

A login is the whole way of a connection: to the server, which asks iam, to the first answer on it.  `bare_ms` is, in turn with
it, that of a connection with a credential about which nobody is asked.  During the flood strangers at another address show wrong tokens as
fast as they can, and people come ten times a second.
"""

import argparse
import asyncio
import base64
import json
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec
from tests.integration.iam.issuer import TokenIssuer, token_issuer

from kettle.auth.trust.keys import KeyPair
from kettle.bus.credentials import Credential
from kettle.pool.personal_settings import Tables
from kettle.testing.measurements import say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

AUDIENCE: Final = "https://pool.example"
SERVICES: Final = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam"]
HERE: Final = "127.0.0.1"
ELSEWHERE: Final = "127.0.0.2"
PEOPLE_PER_S: Final = 10.0
STRANGERS: Final = 64


class Door:
    """Comes in, again and again."""

    def __init__(self, url: str, credential: Credential, token: str, address: str = HERE) -> None:
        place = urlsplit(url)
        self._host, self._port = place.hostname or HERE, place.port or 4222
        self._key, self._jwt = KeyPair(credential.seed), credential.jwt
        self._token = token
        self._address = address

    async def come(self) -> tuple[bool, float]:
        """Whether one is let in, and after how many seconds one knows."""
        began = time.perf_counter()
        try:
            reader, writer = await asyncio.open_connection(
                self._host, self._port, local_addr=(self._address, 0)
            )
        except OSError:
            return False, time.perf_counter() - began
        try:
            return await self._let_in(reader, writer), time.perf_counter() - began
        except OSError:
            return False, time.perf_counter() - began
        finally:
            writer.close()

    async def stay(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """
        Come in and stay; the server says nothing more before it ends the connection, but asks who is there.
        """
        reader, writer = await asyncio.open_connection(self._host, self._port, local_addr=(self._address, 0))
        assert await self._let_in(reader, writer), "somebody with a right credential was not let in"
        return reader, writer

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        info = msgspec.json.decode((await reader.readline()).partition(b" ")[2])
        hello = {
            "verbose": False,
            "lang": "python3",
            "version": "0",
            "protocol": 1,
            "jwt": self._jwt,
            "sig": base64.b64encode(self._key.sign(info["nonce"].encode())).decode(),
            **({"auth_token": self._token} if self._token else {}),
        }
        writer.write(b"CONNECT " + msgspec.json.encode(hello) + b"\r\nPING\r\n")
        while (line := await reader.readline()) and not line.startswith((b"PONG", b"-ERR")):
            pass
        return line.startswith(b"PONG")


async def crowd(door: Door, number: int, at_once: int) -> tuple[float, list[float]]:
    """So many come, some of them at once: how many a second, and how long each takes in milliseconds."""
    taken: list[float] = []
    left = number

    async def one_after_the_other() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            let_in, seconds = await door.come()
            assert let_in, "somebody with a right token was not let in"
            taken.append(seconds * 1e3)

    began = time.perf_counter()
    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
    return number / (time.perf_counter() - began), taken


class Stranger(asyncio.Protocol):
    """Shows a wrong token as soon as the server greets, and comes again when it is refused."""

    def __init__(self, flood: "Flood") -> None:
        self._flood = flood
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        assert b"PONG" not in data, "a wrong token has let somebody in"
        if data.startswith(b"INFO "):
            self._transport.write(self._flood.hello(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self._flood.over()


class Flood:
    """
    Strangers at one address, so many of them at once, each with the shortest greeting that the server asks
    iam about.
    """

    def __init__(self, url: str, credential: Credential, token: str, stop: Event, count: Any) -> None:
        place = urlsplit(url)
        self._place = place.hostname or HERE, place.port or 4222
        self._key = KeyPair(credential.seed)
        self._begin = f'CONNECT {{"jwt":"{credential.jwt}","auth_token":"{token}","sig":"'.encode()
        self._stop, self._count = stop, count
        self._over = asyncio.Semaphore(STRANGERS)

    def hello(self, info: bytes) -> bytes:
        """The answer to a greeting."""
        nonce = info.partition(b'"nonce":"')[2].partition(b'"')[0]
        return self._begin + base64.b64encode(self._key.sign(nonce)) + b'"}\r\nPING\r\n'

    def over(self) -> None:
        """One was refused."""
        self._over.release()
        with self._count.get_lock():
            self._count.value += 1

    async def run(self) -> None:
        """Come, until it is over."""
        loop = asyncio.get_running_loop()
        while not self._stop.is_set():
            await self._over.acquire()
            await loop.create_connection(lambda: Stranger(self), *self._place, local_addr=(ELSEWHERE, 0))


def flood(url: str, credential: Credential, token: str, stop: Event, count: Any) -> None:
    """Show a wrong token as fast as it goes, from another address."""

    async def run() -> None:
        await Flood(url, credential, token, stop, count).run()

    asyncio.run(run())


async def trickle(door: Door, seconds: float) -> list[float]:
    """People come at a steady pace, whatever happens: milliseconds of each, infinite if one is kept out."""
    loop, coming = asyncio.get_running_loop(), list[asyncio.Task[tuple[bool, float]]]()
    end = loop.time() + seconds
    while loop.time() < end:
        coming.append(loop.create_task(door.come()))
        await asyncio.sleep(1 / PEOPLE_PER_S)
    found = await asyncio.gather(*coming)
    return [taken * 1e3 if let_in else math.inf for let_in, taken in found]


def cpu_s(pid: int) -> float:
    """Seconds of processors that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def p99(taken: list[float]) -> float:
    """The 99th of 100."""
    return statistics.quantiles(taken, n=100)[98]


async def measured(pool: ThrowawayPool, issuer: TokenIssuer, arguments: argparse.Namespace) -> dict[str, Any]:
    """All of it."""
    url = pool.client.pool.nats_url
    sentinel = Credential.read(pool.home / "credentials" / "sentinel.creds")
    own = Credential.read(pool.client.pool.credentials)
    right = issuer.token("ada", AUDIENCE)
    wrong = issuer.token("ada", "https://elsewhere.example")
    by_token, bare = Door(url, sentinel, right), Door(url, own, "")
    await crowd(by_token, 50, 5)
    rates: list[float] = []
    middle: list[float] = []
    high: list[float] = []
    alone: list[float] = []
    cost: list[float] = []
    for _ in range(arguments.rounds):
        say(f"{arguments.logins} logins, {arguments.at_once} at once")
        used = cpu_s(pool.pid("iam"))
        rate, taken = await crowd(by_token, arguments.logins, arguments.at_once)
        cost.append((cpu_s(pool.pid("iam")) - used) / arguments.logins * 1e3)
        rates.append(rate)
        middle.append(statistics.median(taken))
        high.append(p99(taken))
        alone.append(statistics.median((await crowd(bare, arguments.logins, arguments.at_once))[1]))
    say(f"wrong tokens for {arguments.seconds:g} s")
    quiet = await trickle(by_token, arguments.seconds)
    context = multiprocessing.get_context("spawn")
    stop, count = context.Event(), context.Value("q", 0)
    strangers = [
        context.Process(target=flood, args=(url, sentinel, wrong, stop, count))
        for _ in range(arguments.processes)
    ]
    for stranger in strangers:
        stranger.start()
    try:
        while not count.value:
            await asyncio.sleep(0.01)
        pids = {"iam": pool.pid("iam"), "server": pool.pid("nats")}
        before, began = count.value, time.monotonic()
        at_first = {name: cpu_s(pid) for name, pid in pids.items()}
        loud = await trickle(by_token, arguments.seconds)
        number, seconds = count.value - before, time.monotonic() - began
        costs = {name: round((cpu_s(pid) - at_first[name]) / number * 1e3, 3) for name, pid in pids.items()}
    finally:
        stop.set()
        for stranger in strangers:
            stranger.join(10)
            stranger.close()
    let_in = [taken for taken in loud if taken < math.inf]
    return {
        "logins_per_s": summary(rates, 0),
        "login_ms_p50": summary(middle, 1),
        "login_ms_p99": summary(high, 1),
        "bare_ms_p50": summary(alone, 1),
        "iam_cpu_ms_each": summary(cost, 2),
        "flood": {
            "wrong_per_s": round(number / seconds),
            "cpu_ms_of_a_wrong_one": costs,
            "quiet_ms_p99": round(p99(quiet), 1),
            "kept_out": len(loud) - len(let_in),
            "people_ms_p50": round(statistics.median(let_in), 1),
            "people_ms_p99": round(p99(let_in), 1),
        },
    }


def settings(issuer: TokenIssuer, directory: Path) -> Tables:
    """People of the issuer are called as it calls them."""
    rules = directory / "rules.toml"
    rules.write_text(
        f"[[rules]]\nwhen.issuer = '{issuer.url}'\nwhen.subject = '/^([a-z]+)$/'\nowner = '\\1'\n"
    )
    return {
        "master": {"daemon_list": SERVICES},
        "authorization": {"domain": "pool.example", "rules": str(rules)},
        "iam": {"issuers": {issuer.url: [AUDIENCE]}},
    }


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """On a pool of its own."""
    say("bringing a pool up")
    with tempfile.TemporaryDirectory() as place:
        async with (
            token_issuer() as issuer,
            throwaway_pool(Path(place) / "pool", settings=settings(issuer, Path(place))) as pool,
        ):
            return await measured(pool, issuer, arguments)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--logins", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=2, help="of strangers, 64 of them at once in each")
    print(json.dumps(asyncio.run(run(parser.parse_args())), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
