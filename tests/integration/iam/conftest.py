"""An iam on real servers, with a client on the bus and one over HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest_asyncio

from kettle.auth.trust.keys import Kind
from kettle.auth.trust.server import Seeds
from kettle.bus.nats import NatsBus
from kettle.bus.ports import Served
from kettle.client.connections.pool_connection import ConnectedTransport
from kettle.client.connections.pool_file import PoolFile, login_name
from kettle.client.connections.transport import Requests
from kettle.client.iam import IdentityClient
from kettle.pki.contexts import client_context
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, hosted
from kettle_services.iam.settings import IamSettings
from kettle_services.iam.wiring import serve
from kettle_wire.commands.collector import QUERY_ADS, Ads, QueryAds
from kettle_wire.commands.iam import AuditEntry, QueryAudit
from kettle_wire.identity import Identity, daemon, user

JOIN = "urn:kettle:params:oauth:grant-type:join-token"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class Office:
    """A running iam, and those who ask it."""

    def __init__(
        self, backend: Backend, settings: IamSettings, bus: NatsBus, http: aiohttp.ClientSession
    ) -> None:
        self.backend = backend
        self.settings = settings
        self.bus = bus
        self.http = http
        self.url = ""

    def asked_by(self, bus: NatsBus) -> IdentityClient:
        pool = PoolFile(pool=self.settings.pool, nats_url=self.settings.nats_url)
        return IdentityClient(Requests(ConnectedTransport(bus, bus, patience=PATIENCE_S), pool))

    @property
    def administrator(self) -> IdentityClient:
        return self.asked_by(self.bus)

    async def post(
        self, path: str, form: dict[str, str], headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        async with self.http.post(f"{self.url}{path}", data=form, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def get(self, path: str, token: str = "") -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.http.get(f"{self.url}{path}", headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def join(self, token: str, name: str, key: str, **more: str) -> tuple[int, dict[str, Any]]:
        form = {"grant_type": JOIN, "join_token": token, "name": name, "key": key}
        return await self.post("/v1/token", form | more)

    async def audit(self, what: str = "") -> list[AuditEntry]:
        return (await self.administrator.audit(QueryAudit(what=what))).acts


@asynccontextmanager
async def office_on(backend: Backend, directory: Path, **own: object) -> AsyncGenerator[Office]:
    """An iam that can admit machines."""
    account = Seeds(directory).key("workers", Kind.ACCOUNT)
    settings = backend.settings(
        IamSettings,
        home=str(directory / "home"),
        **{
            "workers_account": account.public,
            "workers_signing_key": str(directory / "workers.nk"),
            "housekeeping": 0.1,
            **own,
        },
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(hosted("iam", settings, serve))
        bus = await stack.enter_async_context(backend.bus(user(login_name())))

        async def query_ads(_request: QueryAds, _caller: Identity) -> Ads:
            return Ads(ads=[])

        collector = await stack.enter_async_context(backend.bus(daemon("collector")))
        await collector.serve("collector", "collector", [Served(QUERY_ADS, query_ads)], version="1.0.0")
        trusted = client_context(settings.ca_certificate) if settings.ca_certificate else True
        connector = aiohttp.TCPConnector(ssl=trusted)
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        office = Office(backend, settings, bus, http)
        office.url = settings.url or f"http://127.0.0.1:{(settings.directory / 'port').read_text()}"
        yield office


@pytest_asyncio.fixture
async def office(backend: Backend, tmp_path: Path) -> AsyncIterator[Office]:
    async with office_on(backend, tmp_path) as made:
        yield made
