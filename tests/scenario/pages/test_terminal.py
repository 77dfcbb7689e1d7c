"""A terminal beside a running job, in a real browser."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType
from tests.scenario.asking import patiently
from tests.scenario.evidence import Evidence

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .browser import Looks, Watched

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

PROGRAM = """#!/bin/sh
echo from the job >left-by-the-job
while [ ! -e {going} ]; do sleep 0.1; done
"""
SIZE = '{"rows": 20, "columns": 70}'


async def running(pool: ThrowawayPool, directory: Path, going: Path) -> int:
    """The cluster of a job that runs until a file is there."""
    program = directory / "program"
    program.write_text(PROGRAM.format(going=going))
    program.chmod(0o755)
    cluster = (await pool.client.submit("executable = program\nqueue\n", cwd=directory)).cluster
    async with asyncio.timeout(PATIENCE_S):
        while not [ad for ad in await pool.client.jobs(select(cluster)) if ad.get("JobStatus") == 2]:
            await asyncio.sleep(0.05)
    return cluster


async def signed_in(seen: Watched, look: Looks) -> None:
    """Have the browser show a cookie, as people's do."""
    await seen.page.fill("#token", look.headers["Authorization"].removeprefix("Bearer "))
    await seen.page.click("text=Sign in by the token")
    await seen.page.wait_for_selector("main h1")


async def test_a_shell_beside_a_job_is_begun_from_the_list(
    look: Looks, pool: ThrowawayPool, tmp_path: Path, evidence: Evidence
) -> None:
    """
    Wish 12: who looks at a list of jobs is connected to a running one from there: with a shell in the directory of the job, which
    knows how large the terminal is, can be left by keys, and ends with the job, which is said.
    """
    going = evidence.directory / "go"
    cluster = await running(pool, tmp_path, going)
    try:
        async with look.at(f"/jobs?cluster={cluster}", headers={}, status=401) as seen:
            await signed_in(seen, look)
            seen.said.clear()  # of the answer that nobody is signed in
            await seen.page.click("td.where >> text=terminal")
            await seen.page.wait_for_selector(f"h1:text-is('Terminal of job {cluster}.0')")
            assert [] == await seen.violations()
            await seen.page.click("text=Begin")
            await seen.page.wait_for_selector("[data-terminal-state]:has-text('Connected with')")
            await seen.page.keyboard.type("stty size; until cat left-by-the-job; do sleep 0.1; done\n")
            await seen.page.wait_for_selector(".xterm-rows:has-text('from the job')")
            rows = await seen.page.locator(".xterm-rows > div").count()
            assert re.search(rf"^{rows} \d+\s*$", await seen.page.inner_text(".xterm-rows"), re.MULTILINE)
            assert [] == await seen.violations()
            await seen.page.keyboard.press("Control+Shift+Escape")
            await seen.page.keyboard.type("touch not-typed-into-the-shell\n")
            going.touch()
            await seen.page.wait_for_selector("[data-terminal-state]:has-text('It is over')")
            assert ([], []) == (seen.said, seen.elsewhere)
    finally:
        going.touch()


async def last_word(session: aiohttp.ClientSession, path: str, *messages: str, **headers: str) -> Any:
    """What a connection ends with; the status of a handshake that was refused."""
    try:
        async with session.ws_connect(path, headers=headers) as socket:
            for text in messages:
                await socket.send_str(text)
            async for message in socket:
                if message.type == WSMsgType.TEXT and "ended" in (said := json.loads(message.data)):
                    return said["ended"]
    except aiohttp.WSServerHandshakeError as refusal:
        return refusal.status
    return "nothing"


async def test_a_terminal_is_for_who_may_have_it(look: Looks, pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Without a credential, or with a cookie from a page of another site, there is no connection; what is no size of a terminal, a job that
    does not run and one that there is not are refused with a sentence.
    """
    submitted = await pool.client.submit("executable = /bin/true\nhold = true\nqueue\n", cwd=tmp_path)
    path = f"/live/terminals/{submitted.cluster}.0"
    known = f"/v2/jobs?limit=1&at_least={submitted.position.shard}:{submitted.position.frame}"
    async with (
        asyncio.timeout(PATIENCE_S),
        aiohttp.ClientSession(look.address, headers=look.headers, middlewares=(patiently,)) as session,
    ):
        async with session.get(path) as response:
            assert 426 == response.status
        async with session.get(known) as response:
            assert 200 == response.status
        assert "is held" in await last_word(session, path, SIZE)
        assert "no job 999999.0" in await last_word(session, "/live/terminals/999999.0", SIZE)
        assert "size of the terminal" in await last_word(session, path, '{"rows": 0, "columns": 1}')
    async with aiohttp.ClientSession(look.address, cookie_jar=aiohttp.CookieJar(unsafe=True)) as stranger:
        assert 401 == await last_word(stranger, path, SIZE)
        token = look.headers["Authorization"].removeprefix("Bearer ")
        own = {"Origin": look.address, "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
        async with stranger.post("/login", data={"token": token, "next": "/"}, headers=own) as response:
            assert 200 == response.status
        assert 403 == await last_word(stranger, path, SIZE, Origin="https://evil.example.org")
        assert 403 == await last_word(stranger, path, SIZE)
        assert "is held" in await last_word(stranger, path, SIZE, Origin=look.address)
