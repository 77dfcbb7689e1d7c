"""
What becomes of the services of a running job when something of the pool ends, and what a job cannot publish.
"""

import asyncio
import os
import shutil
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from kettle.client import prepare, select
from kettle.execution.system.linux import children_of, parent_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobStarted
from kettle_wire.jobs import JobId

from .asking import patiently
from .test_published_services import asking
from .waiting import happened

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

PYTHON: Final = shutil.which("python3", path="/usr/bin:/bin")
SERVER: Final = """\
import http.server, itertools, os, subprocess, sys, threading, time

class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            for n in itertools.count():
                self.wfile.write(b"tick\\n")
                self.wfile.flush()
                time.sleep(0.05)
        text = f"{os.getpid()} {address}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
threading.Thread(target=server.serve_forever).start()
publish = [sys.executable, os.environ["_CONDOR_BIN"] + "/condor_chirp", "publish", f"web:{server.server_address[1]}/http"]
address = ""
address = subprocess.run(publish, capture_output=True, check=True, text=True).stdout.strip()
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True}}}


async def serving(pool: ThrowawayPool, directory: Path) -> JobId:
    """A job that publishes a port of its own choice."""
    (directory / "server.py").write_text(SERVER)
    text = f"""
        executable = {PYTHON}
        arguments = server.py
        transfer_executable = false
        transfer_input_files = {directory / "server.py"}
        queue
        """
    return JobId((await pool.client.submit(prepare(text))).cluster, 0)


async def server_of(session: aiohttp.ClientSession, job: JobId) -> int:
    """The process that answers for a job, as soon as one does and has heard where people find it."""
    path = f"/jobs/{job}/web/"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                async with session.get(path) as response:
                    words = (await response.text()).split()
                    if response.status == 200 and len(words) == 2:
                        assert words[1].endswith(path)
                        return int(words[0])
            except aiohttp.ClientError:
                pass  # the gateway is not there
            await asyncio.sleep(0.1)


def beside(job: int) -> tuple[int, int]:
    """The starter of a job, and the process that keeps the job's tunnel."""
    starter = parent_of(job)
    assert starter is not None
    return starter, next(pid for pid in children_of(starter) if pid != job)


async def test_a_service_outlives_its_gateway_and_not_its_job(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A gateway that is killed is reached again by the same process of the job; a stream that is open when the job is removed ends, and
    nothing is left.
    """
    job = await serving(pool, tmp_path)
    async with asking(pool) as session:
        first = await server_of(session, job)
    await pool.restarted("gateway", after=pool.kill("gateway"))
    async with asking(pool) as session:
        assert await server_of(session, job) == first
        _, helper = beside(first)
        async with session.get(f"/jobs/{job}/web/endless") as response:
            assert await response.content.readline() == b"tick\n"
            await pool.client.remove(select(job))
            await asyncio.wait_for(until_its_end(response), PATIENCE_S)
    await gone(helper)


@pytest.mark.breaks_servers
async def test_what_is_open_goes_on_without_the_bus(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A stream that is open goes on while the bus is killed and starts again; then the same process is reached by new requests.
    """
    job = await serving(pool, tmp_path)
    async with asking(pool) as session:
        first = await server_of(session, job)
        async with session.get(f"/jobs/{job}/web/endless") as response:
            assert await response.content.readline() == b"tick\n"
            await pool.restarted("nats", after=pool.kill("nats"))
            assert await server_of(session, job) == first
            for _ in range(100):  # for more than those seconds after which it is asked who may
                assert await response.content.readline() == b"tick\n"
    await pool.client.remove(select(job))


async def gone(pid: int) -> None:
    """Until a process has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while parent_of(pid) is not None:
            await asyncio.sleep(0.05)


async def until_its_end(response: aiohttp.ClientResponse) -> None:
    """An answer that has no end by itself."""
    with suppress(aiohttp.ClientError):
        while await response.content.readline():
            pass


async def test_a_service_is_there_again_with_the_next_run(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A starter that is killed takes its tunnel along; a helper that is killed is replaced."""
    job = await serving(pool, tmp_path)
    async with asking(pool) as session:
        first = await server_of(session, job)
        _, helper = beside(first)
        os.kill(helper, signal.SIGKILL)
        assert await server_of(session, job) == first
        starter, helper = beside(first)
        os.kill(starter, signal.SIGKILL)
        await happened(pool.client, job, JobStarted, times=2)
        assert await server_of(session, job) != first
        await gone(helper)
    await pool.client.remove(select(job))


async def test_only_ports_of_the_job_are_reached(pool: ThrowawayPool) -> None:
    """
    A port on which somebody else listens is refused, and one on which nobody does, each with a sentence.
    """
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        text = f"executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nservices = theirs:{port}/http, none:{held_port()}/http\nqueue\n"
        made = await pool.client.submit(prepare(text))
        job = JobId(made.cluster, 0)
        await happened(pool.client, job, JobStarted)
        async with asking(pool, again=patiently) as session:
            said = {name: await refusal(session, f"/jobs/{job}/{name}/") for name in ("theirs", "none")}
        assert "not of the job" in said["theirs"]
        assert "nothing of the job listens" in said["none"]
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()
    await pool.client.remove(select(job))


async def refusal(session: aiohttp.ClientSession, path: str) -> str:
    """Why a service is not connected, when its tunnel is there."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with session.get(path) as response:
                text = await response.text()
            if "listens" in text:
                return text
            await asyncio.sleep(0.1)
