"""
A bus that people come to with tokens: a NATS server of its own, an iam beside it, and an issuer that is none of ours.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from tests.integration.iam.issuer import TokenIssuer, token_issuer

from kettle.auth.tokens.checking.parsing import parse
from kettle.bus.nats import NatsBus
from kettle.client.connections.pool_connection import ConnectedTransport
from kettle.client.connections.pool_file import PoolFile, login_name
from kettle.client.connections.transport import Requests
from kettle.client.iam import IdentityClient
from kettle.embedded import EmbeddedNats, Limits
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle.testing.services import Backend, hosted
from kettle_services.iam.settings import IamSettings
from kettle_services.iam.wiring import serve
from kettle_wire.identity import Identity, bearer, daemon, user
from kettle_wire.subjects import Subjects

DOMAIN = "pool.example"
AUDIENCE = "https://pool.example"
WHO: dict[str, tuple[str, Identity]] = {
    "iam": ("iam", daemon("iam")),
    "schedd": ("schedd", daemon("schedd")),
    "ap1": ("joined-schedd", daemon("schedd", "ap1")),
    "collector": ("collector", daemon("collector")),
    "gateway": ("gateway", daemon("gateway")),
    "boss": ("administrator", user(login_name())),
    "bob": ("user", user("bob")),
}


class Gate:
    """All of it."""

    def __init__(
        self,
        server: EmbeddedNats,
        members: Members,
        directory: Path,
        settings: IamSettings,
        issuer: TokenIssuer,
    ) -> None:
        self.server = server
        self.members = members
        self.directory = directory
        self.settings = settings
        self.issuer = issuer
        self.subjects = Subjects(settings.pool)
        self._iam = AsyncExitStack()
        self.url = ""

    async def start(self) -> None:
        await self._iam.enter_async_context(hosted("iam", self.settings, serve))
        self.url = f"http://127.0.0.1:{(self.settings.directory / 'port').read_text()}"

    async def stop(self) -> None:
        await self._iam.aclose()

    def token(self, subject: str = "ada", **more: Any) -> str:
        return self.issuer.token(subject, AUDIENCE, **more)

    @staticmethod
    def id_of(token: str) -> str:
        return str(parse(token).claims["jti"])

    @property
    def sentinel(self) -> str:
        return str(self.directory / "sentinel.creds")

    @asynccontextmanager
    async def bus(
        self, token: str, owner: str = "ada", *, patience: float = PATIENCE_S
    ) -> AsyncGenerator[NatsBus]:
        """As somebody who has a token."""
        async with NatsBus.connect(
            self.server.url,
            subjects=self.subjects,
            identity=bearer(owner),
            credentials=self.sentinel,
            token=lambda: token,
            patience=patience,
            deadline=PATIENCE_S,
        ) as bus:
            yield bus

    @asynccontextmanager
    async def member(self, name: str) -> AsyncGenerator[NatsBus]:
        """As somebody who has a credential of his own."""
        async with NatsBus.connect(
            self.server.url,
            subjects=self.subjects,
            identity=WHO[name][1],
            credentials=str(self.server.credentials(name)),
            patience=PATIENCE_S,
            deadline=PATIENCE_S,
        ) as bus:
            yield bus

    @asynccontextmanager
    async def administrator(self) -> AsyncGenerator[IdentityClient]:
        """Who administers iam."""
        async with self.member("boss") as bus:
            pool = PoolFile(pool=self.settings.pool, nats_url=self.server.url)
            yield IdentityClient(Requests(ConnectedTransport(bus, bus, patience=PATIENCE_S), pool))

    async def post(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{self.url}{path}", data=form) as answer,
        ):
            return answer.status, await answer.json(content_type=None)

    async def get(self, path: str, token: str = "") -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{self.url}{path}", headers=headers) as answer,
        ):
            return answer.status, await answer.json(content_type=None)


@asynccontextmanager
async def gate_on(
    backend: Backend, directory: Path, rules: str, *, sign_in_s: float = PATIENCE_S, **own: object
) -> AsyncGenerator[Gate]:
    """
    `rules`: the file of rules, with `{issuer}` for the issuer; `sign_in_s`: how long iam may take to answer the server.
    """
    async with AsyncExitStack() as stack:
        place = stack.enter_context(server_directory())
        issuer = await stack.enter_async_context(token_issuer())
        pool = backend.place.pool
        members = Members(place / "keys", Subjects(pool), WHO, callout=True)
        server = await stack.enter_async_context(
            EmbeddedNats(place / "nats", trust=members, limits=Limits(sign_in_s=sign_in_s))
        )
        keys = members.callout_keys()
        (directory / "people-keys.json").write_text(keys.text())
        (directory / "sentinel.creds").write_text(keys.sentinel)
        book = directory / "rules.toml"
        book.write_text(rules.replace("{issuer}", issuer.url))
        settings = backend.settings(
            IamSettings,
            home=str(directory / "home"),
            nats_url=server.url,
            nats_credentials=str(server.credentials("iam")),
            nats_replicas=1,
            people_keys=str(directory / "people-keys.json"),
            issuers={issuer.url: (AUDIENCE,)},
            authorization={"domain": DOMAIN, "rules": str(book)},
            **{"housekeeping": 0.1, **own},
        )
        gate = Gate(server, members, directory, settings, issuer)
        await gate.start()
        stack.push_async_callback(gate.stop)
        yield gate
