"""
What identity costs a pool and its people when something happens: JSON on standard output.

    python -m tests.performance.identity_pool

`start_s` is the time in which a personal pool comes up, in turn without an iam and with one.  `withdrawn_ms` is the time from the
order to the end of the connection that it concerns, beside a hundred others of people.  While iam is restarted, by SIGTERM and by
SIGKILL, people come at a steady pace and try again when the server refuses them, as our clients do: `waited_ms` is how long each
of them has waited.  `join_s` is the time of `kettle worker join`, and `seen_s` that from the start of the machine's services until
its slots are seen.  `others_that_stayed`: how many of the others were still connected after the three withdrawals of a round.
"""

import argparse
import asyncio
import json
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.integration.iam.issuer import TokenIssuer, token_issuer

from kettle import pool as pools
from kettle.auth.private_files import write_private
from kettle.bus.credentials import Credential
from kettle.pool.joining import WORKER, join
from kettle.pool.personal_settings import Tables
from kettle.testing.chaos import bus_server
from kettle.testing.measurements import say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, merged, throwaway_pool

from .logins import AUDIENCE, SERVICES, Door, settings

WITHOUT: Final = [each for each in SERVICES if each != "iam"]
OTHERS: Final = 100
"""People who are connected meanwhile."""
PACE_S: Final = 0.1
"""Between two who come while iam is restarted."""
AGAIN_S: Final = 0.1
"""After this somebody who was refused comes again."""
OF_A_MACHINE: Final = "\n[startd]\nnum_cpus = 2\nupdate_interval = 1.0\ncontainer_runtimes = []\n"
EACH_BY_ITSELF: Final[Tables] = {"master": {"backoff_factor": 1.0}}
"""Restarts follow each other so soon that the master would take them for a row of failures, and wait longer each time."""
_PATIENCE_S: Final = 120.0


class Held:
    """A connection of somebody, until the server ends it."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._writer: asyncio.StreamWriter | None = None
        self._ended: asyncio.Task[float] | None = None

    async def open(self) -> "Held":
        """Come in; also again."""
        reader, self._writer = await self._door.stay()
        self._ended = asyncio.create_task(self._until_ended(reader, self._writer))
        return self

    @staticmethod
    async def _until_ended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        return time.monotonic()

    async def ended(self) -> float:
        """When the server ended it."""
        assert self._ended is not None
        return await asyncio.wait_for(self._ended, _PATIENCE_S)

    @property
    def is_open(self) -> bool:
        """Whether the server has not ended it."""
        return self._ended is not None and not self._ended.done()

    def close(self) -> None:
        """Leave."""
        if self._writer is not None:
            self._writer.close()
        if self._ended is not None:
            self._ended.cancel()


class People:
    """People of an issuer, at the server of a pool."""

    def __init__(self, pool: ThrowawayPool, issuer: TokenIssuer) -> None:
        self._url = pool.client.pool.nats_url
        self._sentinel = Credential.read(pool.home / "credentials" / "sentinel.creds")
        self._issuer = issuer

    def door(self, person: str, **more: str) -> Door:
        """For somebody with a token."""
        return Door(self._url, self._sentinel, self._issuer.token(person, AUDIENCE, **more))

    def of_machine(self, credential: Path) -> Door:
        """For a machine."""
        return Door(self._url, Credential.read(credential), "")


async def starts(directory: Path, rounds: int) -> dict[str, Any]:
    """Seconds in which a pool is up, in turn without an iam and with one."""
    taken: dict[str, list[float]] = {"without_iam": [], "with_iam": []}
    for number in range(rounds):
        for name, services in (("without_iam", WITHOUT), ("with_iam", SERVICES)):
            (place := directory / f"{name}-{number}").mkdir()
            tables: Tables = {"master": {"daemon_list": services}}
            async with AsyncExitStack() as stack:
                began = time.monotonic()
                await stack.enter_async_context(throwaway_pool(place, settings=tables))
                taken[name].append(time.monotonic() - began)
    return {name: summary(values, 2) for name, values in taken.items()}


async def until_gone(held: Held, withdraw: Callable[[], Awaitable[None]]) -> float:
    """Milliseconds from an order to the end of a connection."""
    began = time.monotonic()
    await withdraw()
    taken = (await held.ended() - began) * 1e3
    held.close()
    return taken


async def let_in(pool: ThrowawayPool, directory: Path, name: str) -> Path:
    """A machine joins, without its services; the file that it shows to the server."""
    made = await pool.client.iam.create_join_token()
    home = directory / name
    home.mkdir(mode=0o700)
    joined = await asyncio.to_thread(join, iam_url(pool), made.token, home=home, name=name)
    return write_private(home / f"{WORKER}.creds", joined.credentials[WORKER])


def iam_url(pool: ThrowawayPool) -> str:
    """Where its iam listens."""
    return f"http://127.0.0.1:{(pool.home / 'iam' / 'port').read_text()}"


async def withdrawn(pool: ThrowawayPool, people: People, directory: Path, rounds: int) -> dict[str, Any]:
    """Bans, tokens that are withdrawn, and machines that are removed."""
    iam = pool.client.iam
    others = [await Held(people.door(f"eve{chr(97 + number % 26)}")).open() for number in range(OTHERS)]
    taken: dict[str, list[float]] = {"ban": [], "token": [], "machine": []}
    kept_of_others: list[float] = []
    for number in range(rounds):
        held = await Held(people.door("ada")).open()
        taken["ban"].append(await until_gone(held, partial(iam.ban, "user:ada")))
        await iam.unban("user:ada")
        held = await Held(people.door("bob", jti=f"lost{number}")).open()
        taken["token"].append(await until_gone(held, partial(iam.revoke_token, f"lost{number}")))
        credential = await let_in(pool, directory, name := f"m{number}")
        held = await Held(people.of_machine(credential)).open()
        taken["machine"].append(await until_gone(held, partial(iam.remove_worker, name)))
        kept_of_others.append(sum(other.is_open for other in others))
    for other in others:
        other.close()
    return {
        "ms": {name: summary(values, 0) for name, values in taken.items()},
        "others": OTHERS,
        "others_that_stayed": summary(kept_of_others, 0),
    }


async def until_let_in(door: Door) -> float:
    """Milliseconds until somebody is in, who comes again whenever the server says no."""
    began = time.monotonic()
    while not (await door.come())[0]:
        await asyncio.sleep(AGAIN_S)
    return (time.monotonic() - began) * 1e3


async def open_of_daemons(pool: ThrowawayPool) -> set[int]:
    """The numbers of the connections of daemons other than iam."""
    held = (await bus_server.holdings(pool.home, pool.state.nats_url)).open
    daemons = {*WITHOUT, "master"}
    return {number for number, name in held.items() if name.partition(" ")[0] in daemons}


async def restarted(pool: ThrowawayPool, people: People, number: signal.Signals) -> dict[str, Any]:
    """Iam ends and is started again: how long people wait, and how many daemons have lost a connection."""
    door, coming = people.door("ada"), list[asyncio.Task[float]]()
    before = await open_of_daemons(pool)
    began, pid = time.monotonic(), pool.kill("iam", number)
    back = asyncio.create_task(pool.restarted("iam", after=pid))
    while not back.done():
        coming.append(asyncio.create_task(until_let_in(door)))
        await asyncio.sleep(PACE_S)
    await back
    away = (time.monotonic() - began) * 1e3
    waited = await asyncio.gather(*coming)
    lost = before - await open_of_daemons(pool)
    return {"away": away, "longest": max(waited), "lost": len(lost), "beyond": max(waited) - away}


async def restarts(pool: ThrowawayPool, people: People, rounds: int) -> dict[str, Any]:
    """By SIGTERM and by SIGKILL, in turn."""
    found: dict[str, Any] = {}
    seen: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for number in (signal.SIGTERM, signal.SIGKILL):
            seen.setdefault(number.name, []).append(await restarted(pool, people, number))
    for name, each in seen.items():
        found[name] = {
            "away_ms": summary((one["away"] for one in each), 0),
            "waited_ms_longest": summary((one["longest"] for one in each), 0),
            "waited_ms_beyond_its_return": summary((one["beyond"] for one in each), 0),
            "connections_lost_of_daemons": sum(one["lost"] for one in each),
        }
    return found


async def joins(pool: ThrowawayPool, directory: Path, rounds: int) -> dict[str, Any]:
    """Machines that join by the command, whose slots are then seen."""
    joined, seen = list[float](), list[float]()
    for number in range(rounds):
        name, home = f"n{number}.example.org", directory / f"machine-{number}" / "home"
        home.parent.mkdir(mode=0o700)
        token = (await pool.client.iam.create_join_token()).token
        (file := home.parent / "token").write_text(token)
        file.chmod(0o600)
        words = ("--token-file", str(file), "--home", str(home), "--name", name)
        began = time.monotonic()
        status, _, said = await pool.kettle("worker", "join", iam_url(pool), *words)
        assert not status, said
        joined.append(time.monotonic() - began)
        settings = home / "kettle.toml"
        settings.write_text(settings.read_text().replace("\n[startd]\n", OF_A_MACHINE, 1))
        began = time.monotonic()
        try:
            coming = asyncio.create_task(asyncio.to_thread(pools.up, home, environ=pool.environ))
            while name not in {ad.get("Machine") for ad in await pool.client.ads("Machine")}:
                await asyncio.sleep(0.02)
            seen.append(time.monotonic() - began)
            await coming
        finally:
            await asyncio.to_thread(pools.down, home)
    return {"join_s": summary(joined, 2), "seen_s": summary(seen, 2)}


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """All of it, most of it on one pool."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        say("pools without an iam and with one come up")
        report: dict[str, Any] = {"start_s": await starts(directory, arguments.starts)}
        (home := directory / "pool").mkdir()
        async with (
            token_issuer() as issuer,
            throwaway_pool(home, settings=merged(settings(issuer, directory), EACH_BY_ITSELF)) as pool,
        ):
            people = People(pool, issuer)
            say("people, tokens and machines are withdrawn")
            report["withdrawn"] = await withdrawn(pool, people, directory, arguments.rounds)
            say("iam is restarted")
            report["iam_restarted"] = await restarts(pool, people, arguments.restarts)
            say("machines join")
            report["joined"] = await joins(pool, directory, arguments.joins)
    return report


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=15, help="withdrawals of each kind")
    parser.add_argument("--restarts", type=int, default=4)
    parser.add_argument("--joins", type=int, default=4)
    print(json.dumps(asyncio.run(run(parser.parse_args())), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
