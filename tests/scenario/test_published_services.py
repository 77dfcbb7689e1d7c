"""Services that jobs of a running pool publish, as people reach them through its gateway."""

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from kettle.client import prepare, select
from kettle.testing.commands.running import KETTLE, Said, execute, run
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.jobs import JobId

from .asking import patiently, until_served

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]


def web(port: int) -> str:
    """
    The description of a job with a web server, at a port of this machine that no other job of the tests has.
    """
    return f"""executable = {sys.executable}
arguments = "-m http.server {port} --bind 127.0.0.1"
services = web:{port}/http
queue
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True, "services_domain": "tcp.localhost"}}}


def address(pool: ThrowawayPool) -> str:
    return f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"


def own_token(pool: ThrowawayPool) -> str:
    return (pool.home / "gateway" / "token").read_text().strip()


@asynccontextmanager
async def asking(
    pool: ThrowawayPool,
    *each: aiohttp.ClientMiddlewareType,
    again: aiohttp.ClientMiddlewareType = until_served,
) -> AsyncGenerator[aiohttp.ClientSession]:
    """
    `again`: what is asked again; at first, until there is an answer of the job. `each`: what each of these requests goes through.
    """
    headers = {"Authorization": f"Bearer {own_token(pool)}"}
    async with aiohttp.ClientSession(address(pool), headers=headers, middlewares=(again, *each)) as session:
        yield session


async def submitted(pool: ThrowawayPool, text: str) -> JobId:
    made = await pool.client.submit(prepare(text))
    return JobId(made.cluster, 0)


async def answered(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as response:
        return response.status, await response.text()


async def test_a_web_server_of_a_job_is_read_with_curl(pool: ThrowawayPool) -> None:
    """The page of a server that a job runs, which listens on its machine only; and the job's end ends it."""
    job = await submitted(pool, web(held_port()))
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


async def connect(pool: ThrowawayPool, job: str, service: str, typed: str = "") -> Said:
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home)}
    return await run([*KETTLE, "connect", job, service, "-"], pool.home.parent, environ, typed)


async def test_commands_show_and_reach_services(pool: ThrowawayPool) -> None:
    """
    `kettle services` lists what is published; `kettle connect` passes bytes by standard input and output.
    """
    job = await submitted(pool, web(held_port()))
    async with asking(pool) as session, session.get(f"/jobs/{job}/web/") as response:
        assert 200 == response.status, await response.text()
    status, out, err = await pool.kettle("services", str(job), "--json")
    assert 0 == status, err
    [told] = json.loads(out)
    assert ("up", "owner") == (told["state"], told["because"])
    assert ["web"] == [each["name"] for each in told["services"]]
    status, out, err = await pool.kettle("services")
    assert 0 == status, err
    assert f"/jobs/{job}/web/" in out
    status, out, err = await connect(pool, str(job), "web", typed="GET / HTTP/1.0\r\n\r\n")
    assert 0 == status, err
    assert "Directory listing" in out
    status, out, err = await connect(pool, str(job), "other")
    assert 1 == status
    assert "it publishes: web" in err


class ThisMachine(AbstractResolver):
    """Every name is this machine's, as browsers have it for those below localhost."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def browser() -> AsyncGenerator[aiohttp.ClientSession]:
    """
    Shows its cookies as browsers do, and says nothing of where a request comes from but that it opens a page.
    """
    headers = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none", "Accept": "text/html"}
    connector = aiohttp.TCPConnector(resolver=ThisMachine())
    async with aiohttp.ClientSession(
        headers=headers,
        cookie_jar=aiohttp.CookieJar(unsafe=True),
        connector=connector,
        middlewares=(until_served,),
    ) as session:
        yield session


async def test_a_browser_sees_a_page_in_an_origin_of_the_job(pool: ThrowawayPool) -> None:
    """
    Who is signed in at the gateway is led to the job's own origin, and signed in there for this job alone; the way in works for no other
    browser, another job's origin has nothing of it, and the end of the session is the end there too.
    """
    job, other = (
        await submitted(pool, web(held_port())),
        await submitted(pool, "executable = /bin/sleep\narguments = 600\nservices = web:1/http\nqueue\n"),
    )
    status, out, err = await pool.kettle("web", "--json")
    assert 0 == status, err
    async with browser() as mine, browser() as stranger:
        async with mine.get(json.loads(out)["url"]) as response:
            assert 200 == response.status
        async with mine.get(f"{address(pool)}/jobs/{job}/web/") as response:
            assert 200 == response.status, await response.text()
            assert "Directory listing" in await response.text()
            page = response.url
            enter = next(each.url for each in response.history if each.url.path == "/services-enter")
        async with asyncio.timeout(PATIENCE_S):
            while f'/jobs/{job}@schedd/web/">web</a>' not in (
                said := (await answered(mine, f"{address(pool)}/jobs/{job}"))[1]
            ):
                assert "Traceback" not in said
                await asyncio.sleep(0.1)
        assert str(page.host).startswith(f"job{job.cluster}-{job.proc}-")
        own = [each for each in mine.cookie_jar if each.key == "kettle-services"]
        assert [f"/jobs/{job}/"] == [each["path"] for each in own]
        async with mine.get(
            page, headers={"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-site"}
        ) as response:
            assert 403 == response.status
        async with mine.get(
            page, headers={"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}
        ) as response:
            assert 200 == response.status
        async with mine.get(f"{address(pool)}/jobs/{other}/web/", middlewares=(patiently,)) as response:
            assert (502, "2") == (response.status, response.headers["Retry-After"])
            shown = await response.text()
            assert '<meta http-equiv="refresh" content="2">' in shown
            assert "nothing of the job listens on port 1 yet" in shown
        async with mine.get(page.with_path(f"/jobs/{other}/web/"), allow_redirects=False) as response:
            assert 421 == response.status
        async with stranger.get(enter, allow_redirects=False) as response:
            assert 403 == response.status
        async with stranger.get(page, allow_redirects=False) as response:
            assert 303 == response.status
            assert response.headers["Location"].startswith(f"{address(pool)}/services-login?")
        mine.cookie_jar.clear(lambda each: each.key.startswith("kettle-session"))
        async with mine.get(page) as response:
            assert 200 == response.status, "the session goes on at the gateway"
        async with asking(pool) as session:
            async with session.get("/v2/browser-sessions") as response:
                ids = [each["id"] for each in (await response.json())["sessions"]]
            async with session.post("/v2/browser-sessions:end", json={"ids": ids}) as response:
                assert 200 == response.status, await response.text()
        async with mine.get(page, allow_redirects=False) as response:
            assert 303 == response.status


async def test_what_happens_is_recorded_with_the_job(pool: ThrowawayPool) -> None:
    """That the job has connected, and who has used what, is in its events, each once."""
    port = held_port()
    job = await submitted(pool, web(port))
    reached: list[int] = []

    async def noted(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        if response.status != 503:  # that is said before anybody has tried to reach the job
            reached.append(response.status)
        return response

    async with asking(pool, noted) as session:
        for _ in range(3):
            async with session.get(f"/jobs/{job}/web/") as response:
                assert 200 == response.status, await response.text()
    assert 3 == reached.count(200)
    await pool.client.hosts.control("restart", daemons=["gateway"])
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, out, err = await pool.kettle("events", str(job))
            assert 0 == status, err
            # One report has all of them, unless the time for it comes while they are made.
            used = sum(map(int, re.findall(r"used web: (\d+) connection", out)))
            if used >= len(reached):
                break
            await asyncio.sleep(0.2)
    assert f"publishes web:{port}/http" in out
    assert used == len(reached)


LOUDLY = """
import socketserver, sys

class Loudly(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline().upper())

socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("127.0.0.1", int(sys.argv[1])), Loudly).serve_forever()
"""


async def test_a_program_that_speaks_tls_comes_by_the_name(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    With files that `kettle connect` has made, which are good after a restart of the gateway too; and the job's events have it.
    """
    port = held_port()
    (tmp_path / "loudly.py").write_text(LOUDLY)
    text = (
        f"executable = {sys.executable}\narguments = loudly.py {port}\n"
        f"transfer_input_files = {tmp_path / 'loudly.py'}\n"
    )
    job = await submitted(pool, f"{text}services = loudly:{port}/tcp\nqueue\n")
    files = tmp_path / "files"
    status, out, err = await pool.kettle("connect", str(job), "loudly", "--certificate", str(files), "--json")
    assert 0 == status, err
    made = json.loads(out)
    assert {"key.pem": 0o600, "certificate.pem": 0o600, "ca.pem": 0o600} == {
        each.name: each.stat().st_mode & 0o777 for each in files.iterdir()
    }
    program = [
        "openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{made['port']}", "-servername", made["host"],
        "-verify_hostname", made["host"], "-verify_return_error", "-CAfile", made["authority"],
        "-cert", made["certificate"], "-key", made["key"],
    ]  # fmt: skip

    async def comes() -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (said := await execute(program, tmp_path, os.environ, "hello\n")).out != "HELLO\n":
                assert "alert" not in said.err, said  # it is let in, and the job is not there yet
                await asyncio.sleep(0.1)

    await comes()
    await pool.client.hosts.control("restart", daemons=["gateway"])
    await comes()
    async with asyncio.timeout(PATIENCE_S):
        while "used loudly: 1 connection" not in (said := (await pool.kettle("events", str(job)))[1]):
            await asyncio.sleep(0.2)
    assert made["key"] not in said
    status, out, err = await pool.kettle("connect", str(job), "other", "--certificate", str(files))
    assert (1, True) == (status, "it publishes: loudly" in err), err
