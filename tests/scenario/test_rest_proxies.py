"""The configurations of docs/how-to/put-a-proxy-in-front.md, in real proxies in front of a real gateway."""

import asyncio
import io
import re
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from kettle.client import prepare
from kettle.embedded.ports import listens
from kettle.pki.authority_files import AuthorityFiles
from kettle.pki.contexts import client_context
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "put-a-proxy-in-front.md"
PROGRAMS: Final = {
    "nginx": ("-e", "stderr", "-g", "daemon off; pid {place}/pid;", "-c", "{file}"),
    "haproxy": ("-db", "-f", "{file}"),
    "caddy": ("run", "--adapter", "caddyfile", "--config", "{file}"),
}


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    gateway = {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6, "proxies": ["127.0.0.1"]}
    return {"settings": {"gateway": gateway}}


def program(name: str) -> str:
    """Where a proxy is; one from a Python package lies beside the interpreter."""
    path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/usr/local/bin"
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def configured(name: str, place: Path, port: int, gateway: int) -> Path:
    """The configuration as the page has it, with the ports and files of the test."""
    found = re.search(rf"^```{name}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    files = AuthorityFiles(place / "pki")
    files.make("Trial", now=datetime.now(UTC))
    files.issue(["127.0.0.1"], "server", now=datetime.now(UTC))
    shown = files.kept("127.0.0.1")
    both = place / "both.pem"
    both.write_bytes(shown.certificate.read_bytes() + shown.key.read_bytes())
    text = found[1]
    for written, ours in (
        ("/etc/kettle/proxy-with-key.pem", both),
        ("/etc/kettle/proxy.pem", shown.certificate),
        ("/etc/kettle/proxy.key", shown.key),
        ("127.0.0.1:8443", f"127.0.0.1:{port}"),
        ("127.0.0.1:9080", f"127.0.0.1:{gateway}"),
    ):
        text = text.replace(written, str(ours))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    own = "".join(f"{kind}_temp_path {place / kind};\n" for kind in kinds)
    text = text.replace("http {\n", f"http {{\n{own}") if name == "nginx" else text
    written_file = place / "proxy.conf"
    written_file.write_text(text)
    return written_file


@asynccontextmanager
async def running(name: str, place: Path, gateway: int) -> AsyncGenerator[int]:
    """A proxy in front of a gateway; yields its port."""
    path = program(name)
    port = held_port()
    file = configured(name, place, port, gateway)
    words = [word.format(file=file, place=place) for word in PROGRAMS[name]]
    said = place / "said"
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place)}
    with said.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            path, *words, stdout=output, stderr=output, env=environ
        )
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not listens(port):
                assert process.returncode is None, said.read_text()
                await asyncio.sleep(0.05)
        yield port
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


@pytest.mark.parametrize("name", PROGRAMS)
async def test_the_interface_behind_a_proxy_is_the_interface(
    name: str, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Behind each proxy, over TLS and under a path of its own: questions, refusals, a body as large as any may be, and events one by one.
    """
    gateway = int((pool.home / "gateway" / "port").read_text())
    token = (pool.home / "gateway" / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with running(name, tmp_path, gateway) as port:
        context = client_context(str(AuthorityFiles(tmp_path / "pki").kept("ca").certificate))
        connector = aiohttp.TCPConnector(ssl=context)
        base = f"https://127.0.0.1:{port}/kettle/v2/"
        async with aiohttp.ClientSession(base, headers=headers, connector=connector) as session:
            await require_refusals(session)
            await require_large_body(session, tmp_path)
            await require_events_one_by_one(session)


@pytest.mark.parametrize("name", PROGRAMS)
async def test_people_change_something_behind_a_proxy(name: str, pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Behind each proxy somebody signs in with a browser and sends a form; a form of another site is refused, and says
    what to set.
    """
    gateway = int((pool.home / "gateway" / "port").read_text())
    token = (pool.home / "gateway" / "token").read_text().strip()
    async with running(name, tmp_path, gateway) as port:
        context = client_context(str(AuthorityFiles(tmp_path / "pki").kept("ca").certificate))
        origin = f"https://127.0.0.1:{port}"
        ours = {"Origin": origin, "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
        async with aiohttp.ClientSession(
            f"{origin}/kettle/",
            headers=ours,
            connector=aiohttp.TCPConnector(ssl=context),
            cookie_jar=aiohttp.CookieJar(unsafe=True),
        ) as browser:
            async with browser.post("login", data={"token": token, "next": "/submit"}) as response:
                text = await response.text()
                assert (200, "/kettle/submit") == (response.status, response.url.path), text
            found = re.search(r'name="csrf" value="([^"]+)"', text)
            assert found is not None
            fields = {"csrf": found[1], "text": "executable = /bin/true\nqueue 3\n"}
            async with browser.post("submit/check", data=fields) as response:
                assert 200 == response.status, await response.text()
            async with browser.post(
                "submit/check", data=fields, headers={"Origin": "https://pool.example.org"}
            ) as response:
                assert (403, True) == (response.status, "public_url" in await response.text())


async def require_refusals(session: aiohttp.ClientSession) -> None:
    async with session.get("jobs/999999.0") as response:
        assert 404 == response.status
        assert "application/problem+json" == response.content_type
        assert "/v2/jobs/999999.0" == (await response.json(content_type=None))["instance"]
    async with session.get("../openapi.json") as response:
        assert [{"url": "/kettle"}] == (await response.json())["servers"]
    async with session.get("jobs", headers={"Authorization": ""}) as response:
        assert 401 == response.status
        assert 'Bearer realm="kettle"' == response.headers["WWW-Authenticate"]


async def require_large_body(session: aiohttp.ClientSession, cwd: Path) -> None:
    jobs = prepare("executable = /bin/true\narguments = $(Item)\nqueue Item in x, y", cwd=cwd)
    row = ["x" * 1000 if value == "x" else value for value in jobs.rows[0]]
    body = msgspec.json.encode({"ad": jobs.ad, "columns": jobs.columns, "rows": [row] * 7500})
    assert 7 << 20 < len(body) < 8 << 20
    said = {"Content-Type": "application/json"}
    async with session.post("jobs?dry_run=1", data=io.BytesIO(body), headers=said) as response:
        assert 200 == response.status, await response.text()
        assert 7500 == (await response.json())["count"]


async def require_events_one_by_one(session: aiohttp.ClientSession) -> None:
    """An event comes while the stream is open and nothing follows it, and so does the next one."""
    plain = {"Content-Type": "text/plain"}
    async with session.post(
        "jobs", data="executable = /bin/true\nhold = true\nqueue\n", headers=plain
    ) as response:
        cluster = (await response.json())["cluster"]
    query = {"after": "0", "cluster": str(cluster)}
    async with asyncio.timeout(PATIENCE_S), session.get("events", params=query) as stream:
        assert "text/event-stream" == stream.content_type
        await until_event(stream, "job.held")
        change = {"ids": [f"{cluster}.0"], "expect": 1}
        async with session.post("./jobs:remove", json=change) as response:
            assert 200 == response.status, await response.text()
        await until_event(stream, "job.removed")


async def until_event(stream: aiohttp.ClientResponse, kind: str) -> None:
    async for line in stream.content:
        if line.startswith(b"data: ") and f'"org.kettle.{kind}.v1"'.encode() in line:
            return
    raise AssertionError(f"the stream ended without {kind}")
