"""
Every page of a pool with a long queue and a long history, in a real browser: nothing that people look at grows with what there is.
"""

import asyncio
import faulthandler
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import asyncpg
import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import Browser
from tests.scenario.asking import patiently

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.commands.schedd import Submitted

from .browser import NO_WIDER, PHONE, Looks

LONG: Final = "KETTLE_TEST_LONG"
pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(
        LONG not in os.environ,
        reason=f"it takes minutes: a pool with 100,000 jobs in the queue ({LONG}=1 fills it)",
    ),
]

QUEUED: Final = 100_000
CLUSTER: Final = 5_000
HISTORY: Final = int(os.environ.get("KETTLE_TEST_HISTORY", "1000000"))
"""Rows of the history; 10,000,000 take ten minutes and 10 GB of disk."""
PIECE: Final = 50_000
"""Rows of one statement."""
LARGEST_PAGE: Final = 100_000
"""Bytes of HTML."""
WAITS: Final = "executable = /bin/sleep\narguments = $(Process)\nrequirements = false\nbatch_name = survey {number}\nqueue {jobs}\n"
COPY: Final = """
INSERT INTO jobs.history
SELECT shard, cluster + 1000000 + n / 1000, n % 1000, 'user' || n % 50, status, submitted_at - n * interval '1 s',
       left_at - n * interval '1 s', frame, CASE WHEN n % 100 = 0 THEN 3 ELSE 0 END, n % 86400, n % 4096, n, n, n, search, ad
  FROM jobs.history h, generate_series($3::integer, $4::integer) AS n
 WHERE h.cluster = $1::integer AND h.proc = $2::integer
"""


@pytest_asyncio.fixture(loop_scope="session")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    """A pool of its own: what it has would be in the way of all other tests."""
    faulthandler.cancel_dump_traceback_later()  # what ends a test that hangs knows nothing of this one
    gateway = {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6}
    place = tmp_path_factory.mktemp("large")
    async with throwaway_pool(
        place, cpus=2, template=template, settings={"gateway": gateway}, home=place / "home"
    ) as running:
        yield running


@pytest.fixture
def look(seeing: Browser, pool: ThrowawayPool) -> Looks:
    gateway = pool.home / "gateway"
    token, port = ((gateway / name).read_text().strip() for name in ("token", "port"))
    return Looks(seeing, f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {token}"})


async def filled(pool: ThrowawayPool, directory: Path) -> tuple[int, int]:
    """The first and the last cluster of the queue, when its jobs and a long history are in the tables."""
    ended = (await pool.client.submit("executable = /bin/false\nqueue 1\n", cwd=directory)).cluster
    await pool.client.wait(select(ended))
    made: list[Submitted] = [
        await pool.client.submit(WAITS.format(number=number, jobs=CLUSTER), cwd=directory)
        for number in range(QUEUED // CLUSTER)
    ]
    await pool.client.hold(select(made[0].cluster), reason="the first ones wait for somebody")
    connection = await asyncpg.connect(pool.client.pool.database_url)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await connection.fetchval("SELECT count(*) FROM jobs.history"):
                await asyncio.sleep(0.05)  # the tables follow what is recorded
        for first in range(1, HISTORY + 1, PIECE):
            await connection.execute(COPY, ended, 0, first, min(first + PIECE - 1, HISTORY))
        await connection.execute("ANALYZE jobs.live")
        await connection.execute("ANALYZE jobs.history")
    finally:
        await connection.close()
    return made[0].cluster, made[-1].cluster


class Address(msgspec.Struct, frozen=True):
    """A page, and what is on it when it is there."""

    path: str
    until: str = "main"


async def test_every_page_of_a_large_pool_is_small_and_can_be_read(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Wish 3: with 100,000 jobs in the queue and a long history each page is less than 100 kB of HTML, axe finds nothing on it, light and
    wide or dark and narrow, no script fails, nothing is asked of other hosts, and it is not wider than the window.
    """
    first, last = await filled(pool, tmp_path)
    async with (
        aiohttp.ClientSession(look.address, headers=look.headers, middlewares=(patiently,)) as session,
    ):

        async def asked(path: str) -> Any:
            async with session.get(path) as response:
                assert 200 == response.status, await response.text()
                return await response.json()

        counts = await asked("/v2/jobs?group_by=state")
        assert QUEUED == sum(group["count"] for group in counts["groups"])
        machine = (await asked("/v2/machines:use"))["machines"][0]["name"]
        cycle = (await asked("/v2/negotiations"))["negotiations"][0]["cycle"]
        addresses = [
            *map(Address, (
                "/", "/jobs", "/jobs?state=held", "/jobs?group_by=owner", "/jobs?group_by=cluster",
                "/jobs?sort=-entered", "/jobs?filter=RequestMemory>4096", "/history", "/history?sort=-wall_time",
                "/history?filter=ExitCode==3", "/history?owner=user7", f"/jobs/{first}.7", f"/jobs/{first}.7/files",
                f"/jobs/{last}.0/terminal", f"/clusters/{first}", f"/clusters/{last}", "/submit", "/workflows",
                "/sessions", "/task-queues", "/submitters", "/negotiations", f"/negotiations/{cycle}", "/own-machines", "/pools", "/routes",
                "/log", "/usage", "/failures", "/alerts", "/services", f"/machines/{quote(machine)}",
            )),
            Address("/machines", "[data-drawn]"),
            Address("/fairshare", "[data-drawn]"),
        ]  # fmt: skip
        html = {"Accept": "text/html"}
        sizes: dict[str, int] = {}
        for each in addresses:
            async with session.get(each.path, headers=html) as response:
                assert 200 == response.status, each.path
                sizes[each.path] = len(await response.read())
        assert {} == {path: size for path, size in sizes.items() if size >= LARGEST_PAGE}
    async with look.at("/submit") as seen:
        for each in addresses:
            await seen.require_readable(each.path, until=each.until)
        assert ([], []) == (seen.said, seen.elsewhere)
    async with look.at("/jobs", scheme="dark", size=PHONE) as seen:
        assert await seen.page.evaluate(NO_WIDER)
        await seen.page.click("a[rel=next]")
        await seen.page.wait_for_selector(f"tbody a:text-is('{last}.{CLUSTER - 51}')")
        assert ([], []) == (seen.said, seen.elsewhere)
