"""What others have written, in the browser of who looks at it, and what every answer says to it."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import msgspec
import pytest
from tests.scenario.asking import patiently
from yarl import URL

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.gateway.pages.pool.administration import ADMINISTRATION
from kettle_services.gateway.pages.pool.usage import USAGE_TABLE
from kettle_services.gateway.pages.pool.worker_pools import POOL
from kettle_services.gateway.pages.task_queues.queue_page import TASK_QUEUE
from kettle_services.gateway.pages.terminal_page import TERMINAL
from kettle_services.gateway.pages.wiring import PAGES
from kettle_services.gateway.pages.work_sessions.session_page import SESSION
from kettle_services.gateway.pages.workflows.workflow_page import WORKFLOW
from kettle_services.gateway.rest.use_of_slots import machine_map, machine_uses
from kettle_wire.ads.types import Ad
from kettle_wire.rest.catalogue import ROUTES

from .browser import Looks, Watched

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

EVIL: Final = "<x-evil onclick=alert(1)></title></script><script>window.evil=1</script><img src=x onerror=window.evil=1>{{7*7}}"
"""Text that is an element, a script and a template wherever it is not escaped."""
LINK: Final = "javascript:window.evil=1"
DESCRIPTION: Final = f"""
executable = evil.sh
arguments = {EVIL}
environment = "EVIL='{EVIL}'"
output = x-evil.html
error = <x-evil>.err
batch_name = {EVIL}
description = {EVIL}
My.Evil = "\\"'>{EVIL}"
My.Link = "{LINK}"
My.Project = "{EVIL}"
"""
PROGRAM: Final = f"""#!/bin/sh
echo '{EVIL}'
echo '{EVIL}' >'<x-evil>.html'
exit 1
"""
FOUND: Final = """() => ({
    ran: window.evil === undefined ? 0 : 1,
    elements: document.querySelectorAll('x-evil, [onclick], [onerror], script:not([src]), iframe, base').length,
    elsewhere: [...document.querySelectorAll('[href], [action], [src]')]
        .map(each => new URL(each.getAttribute('href') ?? each.getAttribute('action') ?? each.getAttribute('src'), location.href))
        .filter(each => each.origin !== location.origin).map(String),
})"""
GOOD: Final[dict[str, Any]] = {"ran": 0, "elements": 0, "elsewhere": []}
SAID: Final = {
    "Content-Security-Policy": "default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The headers of every answer, and what stands in them."""
BESIDES: Final = (
    "/asyncapi.json",
    "/favicon.ico",
    "/healthz",
    "/login",
    "/metrics",
    "/nowhere",
    "/openapi.json",
    "/readyz",
    "/schemas",
    "/schemas/nothing.json",
    "/v2/nowhere",
)


async def ask(look: Looks, path: str, **query: str) -> Any:
    """What the REST interface answers to who looks."""
    async with (
        aiohttp.ClientSession(look.address, headers=look.headers, middlewares=(patiently,)) as session,
        session.get(path, params=query) as response,
    ):
        text = await response.text()
        assert 200 == response.status, text
        return json.loads(text)


async def named(look: Looks, cluster: int) -> dict[str, str]:
    """
    What stands for the parameters of paths: of a job, a machine and a cycle that there are, when the tables have the job.
    """
    async with (
        asyncio.timeout(PATIENCE_S),
        aiohttp.ClientSession(look.address, headers=look.headers) as session,
    ):
        for path in (f"/v2/jobs/{cluster}.0", f"/jobs/{cluster}.0", f"/clusters/{cluster}"):
            while (await answers(session, "GET", path, {}))[0] != 200:
                await asyncio.sleep(0.05)
        while not (machines := (await ask(look, "/v2/machines:use"))["machines"]):
            await asyncio.sleep(0.05)
        while not (cycles := (await ask(look, "/v2/negotiations"))["negotiations"]):
            await asyncio.sleep(0.05)
    machine, cycle = quote(machines[0]["name"]), str(cycles[0]["cycle"])
    return {"{id}": f"{cluster}.0", "{name}": machine, "{cycle}": cycle, "{path}": "x-evil.html"}


def placed(path: str, words: dict[str, str]) -> str:
    """The address of something that is declared."""
    has_cluster = "clusters" in path or "workflows" in path
    for name, word in words.items():
        path = path.replace(name, word.partition(".")[0] if name == "{id}" and has_cluster else word)
    return path


async def check(seen: Watched, path: str, status: int = 200) -> str:
    """Look at a page, whose text nothing of has been obeyed; what it says."""
    assert status == await seen.go(path), path
    await seen.page.wait_for_load_state()
    assert GOOD == await seen.page.evaluate(FOUND), path
    return str(await seen.page.inner_text("body"))


async def test_nothing_that_others_have_written_is_obeyed(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    On every page that there is, all that people, jobs and addresses say is text: no element, no script, no address of it is one of
    the page, and the browser has had to refuse nothing.  The page of administrators is there where the pool has an iam, that of
    workers where it has a scaler (tests/unit/gateway/test_worker_pool_pages.py), and those of a workflow, of a session and of a task
    queue have tests of their own.
    """
    program = tmp_path / "evil.sh"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    held = (await pool.client.submit(DESCRIPTION + "queue\n", cwd=tmp_path)).cluster
    await pool.client.hold(select(held), reason=EVIL)
    ended = (await pool.client.submit(DESCRIPTION + "queue\n", cwd=tmp_path)).cluster
    await pool.client.wait(select(ended))
    others = {ADMINISTRATION, POOL, SESSION, TASK_QUEUE, USAGE_TABLE, WORKFLOW}
    pages = [page for page in PAGES if page not in others]
    async with look.at("/jobs") as seen:
        missing: list[str] = []
        seen.page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
        for cluster in (held, ended):
            words = await named(look, cluster)
            for page in pages if cluster == held else [each for each in pages if "{id}" in each.path]:
                path = placed(page.path, words)
                text = await check(seen, path)
                if "{id}" in page.path and page is not TERMINAL:  # which shows no word of the job
                    assert "<x-evil onclick" in text, path
        drawn = msgspec.json.encode(machine_map(machine_uses([EVIL_SLOT]), datetime.now(UTC)))
        await seen.page.route(
            "**/v2/machines:map*", lambda route: route.fulfill(body=drawn, content_type="application/json")
        )
        await check(seen, "/machines?colour=owner")
        await seen.page.wait_for_selector("[data-drawn='1']")
        await seen.page.focus("canvas")
        assert "<x-evil" in await seen.text("[data-said]")
        assert "<x-evil" in await seen.text("[data-legend]")
        assert GOOD == await seen.page.evaluate(FOUND)
        assert ([], [], []) == (missing, seen.said, seen.elsewhere)
        for path, status in ECHOES.items():
            await check(seen, path, status)
            assert "x-evil" in await seen.page.content(), path
        refused = [said for said in seen.said if not said.startswith("Failed to load resource")]
        assert ([], []) == (refused, seen.elsewhere)


EVIL_SLOT: Final[Ad] = {
    "Machine": EVIL,
    "State": "Claimed",
    "Cpus": 8,
    "TotalCpus": 8,
    "RemoteOwner": EVIL,
    "EnteredCurrentState": 1_700_000_000,
    "Arch": EVIL,
}
ECHOES: Final = {
    f"/admin?{quote(EVIL)}=1": 400,
    f"/jobs?owner={quote(EVIL)}": 200,
    f"/jobs?filter={quote(EVIL)}": 400,
    f"/jobs?{quote(EVIL)}=1": 400,
    f"/jobs/{quote(EVIL, safe='')}": 404,
    f"/log?kind={quote(EVIL)}": 400,
}
"""Addresses whose words stand on the page again, and its status."""


async def answers(
    session: aiohttp.ClientSession, method: str, path: str, said: dict[str, str]
) -> tuple[int, aiohttp.ClientResponse]:
    """The beginning of an answer, which need not have an end."""
    async with session.request(method, path, headers=said, allow_redirects=False) as response:
        return response.status, response


async def test_every_answer_says_what_a_browser_may_do_with_it(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Pages, their live parts and files, the REST interface, documents, refusals: none can be framed, or taken for something else than
    it is, and only a page allows a script.  And to ask for all that by GET has changed nothing.
    """
    await pool.client.submit("executable = /bin/true\nqueue\n", cwd=tmp_path)
    text = "executable = /bin/true\nhold = true\nqueue\n"
    cluster = (await pool.client.submit(text, cwd=tmp_path)).cluster
    async with look.at("/jobs") as seen:
        assets: list[str] = await seen.page.evaluate(
            "performance.getEntriesByType('resource').map(each => new URL(each.name).pathname).filter(each => each.startsWith('/assets/'))"
        )
    words = await named(look, cluster)
    shown = [placed(page.path, words) for page in PAGES]
    live = [f"/live{placed(page.path, words)}" for page in PAGES if page.live]
    asked = [placed(route.path, words) for route in ROUTES if route.method == "GET"]
    done = [
        *(placed(route.path, words) for route in ROUTES if route.method == "POST"),
        "/login",
        "/logout",
        "/submit",
    ]
    before = await of_queue(look, cluster)
    async with aiohttp.ClientSession(look.address) as session:
        for path in (*shown, *live, *asked, *assets, *BESIDES):
            for credential in (look.headers, {}):
                status, response = await answers(session, "GET", path, credential)
                assert status < 500 or status == 503 or path in asked, (path, status)
                _require_said(path, response)
        for path in done:
            _, response = await answers(session, "POST", path, {"Accept": "text/html"})
            _require_said(path, response)
    acted = await pool.client.remove(select(cluster))
    assert acted is not None
    after = await of_queue(look, cluster, until="job.removed")
    assert before == after[1:], "a GET has changed something"


@pytest.mark.parametrize("path", ["/machines/gpu%231", "/jobs/1.0%0d%0aX"])
async def test_a_page_leads_to_the_address_that_was_asked_for(look: Looks, path: str) -> None:
    """Without the fields that are empty, and nowhere else, whatever is in a name."""
    url = URL(f"{look.address}{path}?since=", encoded=True)
    async with (
        aiohttp.ClientSession(headers=look.headers) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        assert (302, path) == (response.status, response.headers["Location"])


def _require_said(path: str, response: aiohttp.ClientResponse) -> None:
    for name, value in SAID.items():
        assert response.headers.get(name, "").find(value) >= 0, (path, response.status, name)
    policy = response.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    if "script-src" in policy:
        assert "text/html" == response.content_type or response.status in {302, 303, 304}, path


async def of_queue(look: Looks, cluster: int, *, until: str = "") -> list[str]:
    """What is recorded of a job, the newest first; `until`: when this is the newest."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            records = (await ask(look, "/v2/log", job=f"{cluster}.0"))["records"]
            kinds = [str(each["type"]).partition("/")[0] for each in records]
            if kinds and (not until or kinds[0] == until):
                return [str(each["id"]) for each in records]
            await asyncio.sleep(0.05)
