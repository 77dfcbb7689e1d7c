"""
Services that jobs publish out of their containers: a web server of busybox, and what it answers through the gateway.
"""

import asyncio
from pathlib import Path
from typing import Final

import aiohttp

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.jobs import JobId

from .asking import patiently

_SERVER: Final = """executable = /bin/sh
transfer_executable = false
arguments = "-c 'mkdir pages; echo from inside > pages/index.html; exec busybox httpd -f -p 127.0.0.1:{port} -h pages'"
services = web:{port}/http
docker_network_type = {network}
queue
"""


async def page_of(pool: ThrowawayPool, image: str, network: str, cwd: Path) -> str:
    """
    What a web server in a container of `image` (a line of a description) shows through the gateway, as soon as it is reached; afterwards its
    job is removed.
    """
    text = f"{image}\n{_SERVER.format(port=held_port(), network=network)}"
    job = JobId((await pool.client.submit(text, cwd=cwd)).cluster, 0)
    gateway = pool.home / "gateway"
    token, port = ((gateway / name).read_text().strip() for name in ("token", "port"))
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with (
            asyncio.timeout(PATIENCE_S),
            aiohttp.ClientSession(
                f"http://127.0.0.1:{port}", headers=headers, middlewares=(patiently,)
            ) as session,
        ):
            while True:
                async with session.get(f"/jobs/{job}/web/index.html") as answer:
                    said = await answer.text()
                    if answer.status == 200:
                        return said
                    assert answer.status in {404, 502, 503}, said
                await asyncio.sleep(0.1)
    finally:
        await pool.client.remove(select(job))
