"""
A site with a NATS server of its own, a leaf of a hub's: clients of either are on one bus, and the line between both can be cut.

    async with LeafSite(directory) as site:
        await site.cut()
"""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kettle.auth.trust.keys import Kind
from kettle.auth.trust.server import Permissions, Seeds, SingleAccount, account
from kettle.embedded.binaries import nats_server, setpriv
from kettle.testing.chaos.proxy import CLEAR, CUT, Proxy
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port

_ROLE: Final = "everybody"
_LOOK_S: Final = 0.02


class LeafSite:
    """JetStream is the hub's alone; the leaf's clients reach it through the line."""

    def __init__(self, directory: Path) -> None:
        everything = {_ROLE: Permissions(publish=(">",), subscribe=(">",))}
        self._directory = directory
        self._trust = SingleAccount(directory / "credentials", everything)
        self._hub, self._leaf, self._line_port = held_port(), held_port(), held_port()
        self._line = Proxy(("127.0.0.1", self._line_port))
        self._stack = AsyncExitStack()

    @property
    def hub_url(self) -> str:
        """Where clients of the hub connect."""
        return f"nats://127.0.0.1:{self._hub}"

    @property
    def leaf_url(self) -> str:
        """Where clients of the site connect."""
        return f"nats://127.0.0.1:{self._leaf}"

    @property
    def credentials(self) -> Path:
        """What each client shows, to either."""
        return self._trust.credentials(_ROLE)

    async def cut(self) -> None:
        """The site and the hub do not reach each other any more."""
        await self._line.set(CUT)

    async def mend(self) -> None:
        """They can again."""
        await self._line.set(CLEAR)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._directory.mkdir(parents=True, exist_ok=True)
            store = json.dumps(str(self._directory / "jetstream"))
            # Told where the hub listens, a leaf would go there past the line.
            own = f"leafnodes {{ listen: '127.0.0.1:{self._line_port}', no_advertise: true }}\njetstream {{ store_dir: {store}, max_file_store: 8GB }}\n"
            await self._start(stack, "hub", self._hub, own)
            stack.push_async_callback(self._line.close)
            line = await self._line.listen()
            remote = {
                "url": f"nats-leaf://127.0.0.1:{line}",
                "account": self._trust.statements().streams,
                "credentials": str(self.credentials),
            }
            await self._start(
                stack,
                "leaf",
                self._leaf,
                f"leafnodes {{ reconnect: '1s', remotes: [{json.dumps(remote)}] }}\n",
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start(self, stack: AsyncExitStack, name: str, port: int, own: str) -> None:
        config = self._directory / f"{name}.conf"
        config.write_text(
            f"server_name: {name}\nlisten: '127.0.0.1:{port}'\n{self._believed(leaf=name == 'leaf')}{own}"
        )
        with (self._directory / f"{name}.log").open("wb") as log:
            # It ends with this process, however that ends.
            words = [setpriv(), "--pdeathsig=KILL", "--", str(nats_server()), "--config", str(config)]
            process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
        stack.push_async_callback(_ended, process)
        async with asyncio.timeout(PATIENCE_S):
            while not await _listens(port):
                assert process.returncode is None, (self._directory / f"{name}.log").read_text()
                await asyncio.sleep(_LOOK_S)

    def _believed(self, *, leaf: bool) -> str:
        told = self._trust.statements()
        accounts = dict(told.accounts)
        if leaf:  # an account with JetStream would be answered here, where there is none, and not by the hub
            seeds = Seeds(self._directory / "credentials" / "trust")
            signer, own = seeds.key("operator", Kind.OPERATOR), seeds.key("everybody", Kind.ACCOUNT)
            accounts[told.streams] = account(signer, own, "everybody")
        preloaded = "\n".join(f"  {key}: {json.dumps(jwt)}" for key, jwt in accounts.items())
        return (
            f"max_payload: 8MB\nmax_control_line: 64KB\noperator: {json.dumps(told.operator)}\n"
            f"default_js_domain: {{ {told.streams}: '' }}\n"  # what a leaf asks of JetStream passes the line
            f"system_account: {told.system}\nresolver: MEMORY\nresolver_preload: {{\n{preloaded}\n}}\n"
        )


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def _ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
