"""What people, programs and machines want of iam while the pool is being broken, and are promised."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError
from kettle.client import Client, ClientError, PoolFile
from kettle.client.connections.pool_file import login_name
from kettle.client.iam import MadeSession
from kettle_wire.commands.iam import WHO_AM_I, WhoAmI
from kettle_wire.identity import bearer
from kettle_wire.subjects import Subjects

IAM: Final = "iam"
JOIN: Final = "urn:kettle:params:oauth:grant-type:join-token"
BAN: Final = "chaos"
_PAUSE: Final = (0.2, 1.0)
_DEADLINE_S: Final = 5.0
_TRIES: Final = 4
_MORE: Final = 2
"""So many machines more than a token admits try it."""


class Joined(msgspec.Struct, kw_only=True):
    """A join token, and the machines that were told that they are in, each with its key."""

    token: str
    max_uses: int
    machines: dict[str, str] = {}


class IdentityPromises(msgspec.Struct):
    """What iam and the administrators' commands were asked for, and what was answered."""

    join_tokens: list[Joined] = []
    access_tokens: list[str] = []
    """The ids of those that were given, over the bus or for a refresh token."""
    renewals: dict[str, int] = {}
    """Of each session, how often a next refresh token was given."""
    bans: list[str] = []
    """Whom, of each that was answered."""
    logins: int = 0
    """How often somebody came to the bus with a token, and was told who he is."""
    mistaken: list[str] = []
    """Of those who came with a token: who was taken for another, or was let in when he had been told that it is good no more."""
    deeds: dict[str, bool] = {}
    """Each that was asked for, by a name of its own, and whether it was answered."""
    unanswered: int = 0
    """Questions that nobody answered, or that were refused."""


class IdentityWorkload:
    """Joins, renewals, bans and deeds of administrators, without end."""

    def __init__(self, home: Path, *, seed: int) -> None:
        self.promises = IdentityPromises()
        self._home = home
        self._seed = seed
        self._stopping = asyncio.Event()

    @asynccontextmanager
    async def running(self, client: Client) -> AsyncGenerator[None]:
        """Go on until the end of the context; then all that was begun has its answer."""
        timeout = aiohttp.ClientTimeout(total=_DEADLINE_S)
        async with aiohttp.ClientSession(timeout=timeout) as http, asyncio.TaskGroup() as group:
            for number, work in enumerate((self._join, self._renew, self._ban, self._administer, self._come)):
                chance = random.Random(self._seed * 1000 + number)  # noqa: S311 - to be repeated, not to be secret
                group.create_task(self._again(work, client, http, chance))
            try:
                yield
            finally:
                self._stopping.set()

    async def _again(
        self, work: Any, client: Client, http: aiohttp.ClientSession, chance: random.Random
    ) -> None:
        turn = 0
        while not self._stopping.is_set():
            turn += 1
            try:
                await work(client, http, chance, turn)
            except ClientError:
                self.promises.unanswered += 1
            try:
                async with asyncio.timeout(chance.uniform(*_PAUSE)):
                    await self._stopping.wait()
            except TimeoutError:
                continue

    async def _join(
        self, client: Client, http: aiohttp.ClientSession, chance: random.Random, turn: int
    ) -> None:
        """More machines at once than the token admits; each asks again if nobody answers."""
        most = chance.randint(1, 3)
        made = await client.iam.create_join_token(max_uses=most)
        joined = Joined(token=made.made.token, max_uses=most)
        self.promises.join_tokens.append(joined)

        async def machine(name: str) -> None:
            key = KeyPair.new(Kind.USER).public
            form = {"grant_type": JOIN, "join_token": made.token, "name": name, "key": key}
            if await self._told(http, form) is not None:
                joined.machines[name] = key

        await asyncio.gather(*(machine(f"t{turn}m{number}.example.org") for number in range(most + _MORE)))

    async def _renew(
        self, client: Client, http: aiohttp.ClientSession, chance: random.Random, turn: int
    ) -> None:
        """A session, and some renewals of it, each with the refresh token of the one before."""
        session: MadeSession = await client.iam.open_session(note=f"turn {turn}")
        self.promises.renewals[session.made.session] = 0
        refresh = session.token
        for _ in range(chance.randint(3, 10)):
            told = await self._told(http, {"grant_type": "refresh_token", "refresh_token": refresh})
            if told is None:
                return
            refresh = str(told["refresh_token"])
            self.promises.renewals[session.made.session] += 1
        self.promises.access_tokens.append((await client.iam.issue_token()).id)

    async def _ban(
        self, client: Client, http: aiohttp.ClientSession, chance: random.Random, turn: int
    ) -> None:
        del http, chance
        whom = f"user:{BAN}{turn}"
        await client.iam.ban(whom)
        self.promises.bans.append(whom)

    async def _administer(
        self, client: Client, http: aiohttp.ClientSession, chance: random.Random, turn: int
    ) -> None:
        del http
        name = f"{BAN}{turn}"
        self.promises.deeds[name] = False
        await client.accountant.set(name, "factor", float(chance.randint(1, 1000)))
        self.promises.deeds[name] = True

    async def _come(
        self, client: Client, http: aiohttp.ClientSession, chance: random.Random, turn: int
    ) -> None:
        """Somebody comes to the bus with a token, some times, and not any more when he has withdrawn it."""
        del http
        made = await client.iam.issue_token()
        for _ in range(chance.randint(1, 3)):
            if (said := await self._said_to(made.token)) is None:
                self.promises.unanswered += 1
            elif said != login_name():
                self.promises.mistaken.append(f"{login_name()} came with a token and was taken for {said!r}")
            else:
                self.promises.logins += 1
        await client.iam.revoke_token(made.id)
        if await self._said_to(made.token) is not None:
            self.promises.mistaken.append(f"turn {turn}: somebody came with a token that was withdrawn")

    async def _said_to(self, token: str) -> str | None:
        """Who one is who comes with this token; None: he was not let in, or not answered."""
        pool = PoolFile.load(self._home)
        try:
            async with NatsBus.connect(
                pool.nats_url,
                subjects=Subjects(pool.pool),
                identity=bearer(login_name()),
                credentials=str(self._home / "credentials" / "sentinel.creds"),
                token=lambda: token,
                patience=_DEADLINE_S,
                deadline=_DEADLINE_S,
            ) as bus:
                return (await bus.call(WHO_AM_I, IAM, WhoAmI())).subject
        except BusError:
            return None

    async def _told(self, http: aiohttp.ClientSession, form: dict[str, str]) -> dict[str, Any] | None:
        """What iam answers at once or when it is back; None: it refuses, or is away for too long."""
        for _ in range(_TRIES):
            try:
                port = (self._home / "iam" / "port").read_text()
                async with http.post(f"http://127.0.0.1:{port}/v1/token", data=form) as answer:
                    if answer.status == 200:
                        found: dict[str, Any] = await answer.json()
                        return found
                    if answer.status < 500:
                        break
            except (aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(_PAUSE[1])
        self.promises.unanswered += 1
        return None
