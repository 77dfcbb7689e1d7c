"""
Three NATS servers with one JetStream, on the loopback interface: what a site runs, small enough for a test.

    async with NatsCluster(directory) as cluster:
        await cluster.kill((await cluster.leaders())["KETTLE_personal_WORK"])
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from kettle.embedded import EmbeddedNats, Limits, Member, Permissions
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port

NODES: Final = 3
_LOOK_S: Final = 0.02
_LIMITS: Final = Limits(
    max_file="64GB"
)  # only what is written is taken; the sum of what streams may grow to counts


class NatsCluster:
    """
    The nodes by number, each an `EmbeddedNats` that can be killed and started again.

    They know the same keys, so a client goes from one to another.
    """

    def __init__(
        self, directory: Path, *, permissions: Mapping[str, Permissions], name: str = "test"
    ) -> None:
        credentials, secret = directory / "credentials", secrets.token_hex(16)
        ports = [held_port() for _ in range(3 * NODES)]
        routes, self._status, clients = ports[:NODES], ports[NODES : 2 * NODES], ports[2 * NODES :]
        self.nodes = [
            EmbeddedNats(
                directory / str(node),
                credentials=credentials,
                permissions=permissions,
                name=self._name(node),
                port=clients[node],
                limits=_LIMITS,
                member=Member(
                    cluster=name,
                    port=routes[node],
                    others=[port for port in routes if port != routes[node]],
                    secret=secret,
                    status_port=self._status[node],
                ),
            )
            for node in range(NODES)
        ]
        self._http: aiohttp.ClientSession
        self._stack = AsyncExitStack()

    @property
    def url(self) -> str:
        """All servers, as `KETTLE_NATS_URL` takes them."""
        return ",".join(node.url for node in self.nodes)

    def credentials(self, role: str) -> Path:
        """The file with the seed that a role shows to any of the servers."""
        return self.nodes[0].credentials(role)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._http = await stack.enter_async_context(
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_S))
            )
            for node in self.nodes:
                stack.push_async_callback(node.stop)
            await asyncio.gather(*(node.start() for node in self.nodes))
            await self.settled()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def kill(self, node: int) -> None:
        """SIGKILL for one server; returns when it is gone."""
        os.kill(self.nodes[node].pid, signal.SIGKILL)
        await self.nodes[node].wait()

    async def restart(self, node: int) -> None:
        """Start a server again; returns when the whole cluster has what it had before."""
        await self.nodes[node].start()
        await self.settled()

    async def settled(self) -> None:
        """
        Wait until every server has a leader and is up to date in all streams and consumers that it holds.
        """
        async with asyncio.timeout(PATIENCE_S):
            for node in range(NODES):
                while not await self._healthy(node):
                    await asyncio.sleep(_LOOK_S)

    async def leaders(self) -> dict[str, int]:
        """
        Which node leads each stream, as the servers that run see it; streams without a leader are left out.
        """
        running = next(node for node in range(NODES) if self.nodes[node].running)
        status = await self._get(running, "jsz?accounts=true&streams=true")
        streams = [
            stream
            for account in status.get("account_details", [])
            for stream in account.get("stream_detail", [])
        ]
        numbers = {self._name(node): node for node in range(NODES)}
        return {
            stream["name"]: numbers[leader]
            for stream in streams
            if (leader := stream.get("cluster", {}).get("leader"))
        }

    async def _healthy(self, node: int) -> bool:
        try:
            async with self._http.get(f"http://127.0.0.1:{self._status[node]}/healthz") as response:
                if response.status != HTTPStatus.OK:
                    return False
            meta = (await self._get(node, "jsz")).get("meta_cluster", {})
        except aiohttp.ClientConnectionError:
            return False
        # The one that leads takes another for away until it has heard of it over the system account.
        return not any(other.get("offline") for other in meta.get("replicas") or ())

    async def _get(self, node: int, page: str) -> dict[str, Any]:
        async with self._http.get(f"http://127.0.0.1:{self._status[node]}/{page}") as response:
            found: dict[str, Any] = await response.json()
            return found

    @staticmethod
    def _name(node: int) -> str:
        return f"node-{node}"
