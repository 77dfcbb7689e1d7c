"""Tools for language models in a running pool, over HTTP and by the command `kettle mcp`."""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from kettle.testing.commands.running import KETTLE, execute
from kettle.testing.throwaway_pool import ThrowawayPool

from .asking import patiently
from .client_environments import SCRIPTS, python_of

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

HELD = "executable = /bin/true\nhold = true\nqueue 2\n"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6}}}


class Model:
    """Calls tools as a language model's program does."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.number = 0

    async def ask(self, method: str, **params: Any) -> Any:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        async with self.session.post("/mcp", json=message) as response:
            assert 200 == response.status, await response.text()
            said = await response.json()
        assert self.number == said["id"]
        return said

    async def call(self, tool: str, *, failed: bool = False, **arguments: Any) -> Any:
        result = (await self.ask("tools/call", name=tool, arguments=arguments))["result"]
        text = result["content"][0]["text"]
        assert failed == result["isError"], text
        return msgspec.json.decode(text.split("\n")[-1])


@pytest_asyncio.fixture
async def model(pool: ThrowawayPool) -> AsyncIterator[Model]:
    token = (pool.home / "gateway" / "token").read_text().strip()
    port = (pool.home / "gateway" / "port").read_text()
    headers = {"Authorization": f"Bearer {token}"}
    address = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,)) as session:
        yield Model(session)


async def submitted(model: Model, described: str = HELD) -> int:
    async with model.session.post(
        "/v2/jobs", data=described, headers={"Content-Type": "text/plain"}
    ) as response:
        made = await response.json()
    async with model.session.get("/v2/jobs", params={"at_least": made["position"], "limit": 1}) as response:
        assert 200 == response.status
    return int(made["cluster"])


async def test_a_change_happens_when_it_is_confirmed_and_once(model: Model) -> None:
    """
    A tool that changes something says first what that would be; with the token of that answer it does it, and with it again nothing more.
    """
    cluster = await submitted(model)
    wanted: dict[str, Any] = {"filter": f"ClusterId == {cluster}", "reason": "over"}
    would = await model.call("remove_jobs", **wanted)
    assert 2 == would["jobs"]
    counted = await model.call("list_jobs", cluster=[cluster], group_by=["state"])
    assert [{"key": {"state": "held"}, "count": 2}] == counted["groups"]
    other = {**wanted, "filter": f"ClusterId >= {cluster}"}
    refused = await model.call("remove_jobs", failed=True, **other, confirm=would["confirm"])
    assert "not of this change" in refused["detail"]
    done = await model.call("remove_jobs", **wanted, confirm=would["confirm"])
    assert ["done", "done"] == [each["outcome"] for each in done["outcomes"]]
    assert done == await model.call("remove_jobs", **wanted, confirm=would["confirm"])


async def test_a_long_answer_is_shorter_and_goes_on(model: Model) -> None:
    """A list that is larger than it may be has fewer entries, and a token for those behind."""
    await submitted(model)
    first = await model.call("list_log", limit=100, max_bytes=1500)
    assert 1 <= len(first["records"]) < 20
    second = await model.call("list_log", limit=1, page=first["next"])
    assert second["records"][0]["id"] not in [record["id"] for record in first["records"]]
    unknown = await model.call("list_jobs", failed=True, stat=["held"])
    assert "parameter.invalid" == unknown["code"]


async def test_a_model_is_told_no_environments(model: Model) -> None:
    """
    What the owner reads over HTTP no tool tells, alone, in lists, in the log, or by a filter that finds it.
    """
    described = 'executable = /bin/true\nenvironment = "A=canary"\nhold = true\nqueue\n'
    cluster = await submitted(model, described)
    job, fields = f"{cluster}.0", ["Environment", "Env", "Cmd"]
    async with model.session.get(f"/v2/jobs/{job}") as response:
        assert "canary" in await response.text()
    shown = [
        await model.call("get_job", id=job),
        await model.call("list_jobs", cluster=[cluster], fields=fields),
        await model.call("list_log", job=job),
    ]
    assert "/bin/true" == shown[1]["jobs"][0]["attributes"]["Cmd"]
    assert shown[2]["records"]
    assert "canary" not in str(shown)
    for filter_, count in (("isUndefined(Environment)", 1), ("!isUndefined(Environment)", 0)):
        found = await model.call("list_jobs", cluster=[cluster], filter=filter_)
        assert count == len(found.get("jobs") or [])


async def test_who_may_not_ask_over_http_may_not_ask_here(model: Model, pool: ThrowawayPool) -> None:
    """Without a credential, from another origin, with another method or tool nothing is answered."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for headers, status in (({"Authorization": ""}, 401), ({"Origin": "https://evil.example"}, 403)):
        async with model.session.post("/mcp", json=message, headers=headers) as response:
            assert status == response.status
    async with model.session.get("/mcp") as response:
        assert 405 == response.status
    assert -32601 == (await model.ask("resources/list"))["error"]["code"]
    assert -32602 == (await model.ask("tools/call", name="rm_rf"))["error"]["code"]


async def test_the_command_passes_messages_on(pool: ThrowawayPool) -> None:
    """`kettle mcp` answers line by line on standard output, and nothing to what wants no answer."""
    lines = [
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"list_users","arguments":{}}}',
        b"nonsense",
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *KETTLE,
        "mcp",
        "--home",
        str(pool.home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=pool.environ,
    )
    output, _ = await process.communicate(b"\n".join(lines) + b"\n")
    answers = [msgspec.json.decode(line) for line in output.splitlines()]
    assert 0 == process.returncode
    assert [1, "two", None] == [answer["id"] for answer in answers]
    assert "2025-06-18" == answers[0]["result"]["protocolVersion"]
    assert -32700 == answers[2]["error"]["code"]


async def test_the_protocols_own_client_uses_the_tools(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The package `mcp` reads, submits, holds and removes jobs, over HTTP and by the command."""
    python = await python_of("mcp_client.py", "mcp", tmp_path)
    kettle = tmp_path / "kettle"
    kettle.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *KETTLE])} "$@"\n')
    kettle.chmod(0o755)
    address = f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"
    token = str(pool.home / "gateway" / "token")
    words = [python, str(SCRIPTS / "mcp_client.py"), address, token, str(kettle), str(pool.home)]
    said = await execute(words, tmp_path, dict(os.environ), within_s=120)
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert 0 == said.status
