"""Services that jobs of a running pool publish, as people reach them through its gateway."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest

from kettle.client import prepare, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.jobs import JobId

from .asking import patiently

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


PORT: Final = free_port()
WEB: Final = f"""executable = {sys.executable}
arguments = "-m http.server {PORT} --bind 127.0.0.1"
services = web:{PORT}/http
queue
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True}}}


def address(pool: ThrowawayPool) -> str:
    return f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"


def own_token(pool: ThrowawayPool) -> str:
    return (pool.home / "gateway" / "token").read_text().strip()


@asynccontextmanager
async def asking(pool: ThrowawayPool) -> AsyncGenerator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {own_token(pool)}"}
    async with aiohttp.ClientSession(address(pool), headers=headers, middlewares=(patiently,)) as session:
        yield session


async def submitted(pool: ThrowawayPool, text: str) -> JobId:
    made = await pool.client.submit(prepare(text))
    return JobId(made.cluster, 0)


async def answered(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as response:
        return response.status, await response.text()


async def test_a_web_server_of_a_job_is_read_with_curl(pool: ThrowawayPool) -> None:
    """The page of a server that a job runs, which listens on its machine only; and the job's end ends it."""
    job = await submitted(pool, WEB)
    async with asking(pool) as session:
        async with session.get(f"/jobs/{job}/web/") as response:
            assert 200 == response.status, await response.text()
        header = f"Authorization: Bearer {own_token(pool)}"
        curl = await asyncio.create_subprocess_exec(
            "curl", "-sS", "-H", header, f"{address(pool)}/jobs/{job}/web/", stdout=asyncio.subprocess.PIPE
        )
        page, _ = await curl.communicate()
        assert b"Directory listing" in page
        await pool.client.remove(select(job))
        async with asyncio.timeout(PATIENCE_S):
            while (said := await answered(session, f"/jobs/{job}/web/"))[0] != 410:
                assert said[0] in {200, 502, 503}, said
                await asyncio.sleep(0.1)
        assert "has ended" in json.loads(said[1])["detail"]
