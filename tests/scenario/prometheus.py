"""A Prometheus of Debian for tests: it scrapes what a pool tells it, and is asked over HTTP."""

import asyncio
import shutil
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port

_LOOK_S: Final = 0.05


class Prometheus:
    """A running server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def query(self, query: str) -> list[dict[str, Any]]:
        """The series of a query, now."""
        async with self._session.get("/api/v1/query", params={"query": query}) as answer:
            said = await answer.json()
            assert 200 == answer.status, f"{query}: {said}"
            return list(said["data"]["result"])

    async def api(self, path: str) -> Any:
        """What it says of itself."""
        async with self._session.get(f"/api/v1/{path}") as answer:
            assert 200 == answer.status
            return (await answer.json())["data"]

    async def until(self, query: str) -> list[dict[str, Any]]:
        """Wait until a query has a result."""
        async with asyncio.timeout(PATIENCE_S):
            while not (found := await self.query(query)):
                await asyncio.sleep(_LOOK_S)
        return found


@asynccontextmanager
async def prometheus(configuration: Path, data: Path) -> AsyncGenerator[Prometheus]:
    """One with this configuration; gone at the end."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed (Debian: prometheus)")
    port = held_port()
    log = data.with_suffix(".log")
    with log.open("wb") as output:
        server = await asyncio.create_subprocess_exec(
            program,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--storage.tsdb.retention.time=1h",
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            await _ready(session, server, log)
            yield Prometheus(session)
    finally:
        await _ended(server)


async def _ended(server: Process) -> None:
    if server.returncode is not None:
        return
    server.terminate()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await server.wait()
    except TimeoutError:
        server.kill()
        await server.wait()


async def _ready(session: aiohttp.ClientSession, server: Process, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert server.returncode is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            async with session.get("/-/ready") as answer:
                if answer.status == 200:
                    return
        except aiohttp.ClientError:
            pass  # it does not listen yet
        await asyncio.sleep(_LOOK_S)
