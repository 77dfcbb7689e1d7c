"""Pages of the past, as programs read them."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import pytest_asyncio
from tests.scenario.asking import patiently
from yarl import URL

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

_LINK: Final = re.compile(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', re.DOTALL)
_TO_THE_PRESENT: Final = frozenset({"Back to now", "now"})
_NO_PAGES: Final = ("/openapi.json", "/metrics", "/usage.csv")


@pytest_asyncio.fixture(loop_scope="session")
async def session(pool: ThrowawayPool) -> AsyncIterator[aiohttp.ClientSession]:
    """Reads pages as the account that the pool runs as."""
    gateway = pool.home / "gateway"
    headers = {"Authorization": f"Bearer {(gateway / 'token').read_text().strip()}", "Accept": "text/html"}
    address = f"http://127.0.0.1:{(gateway / 'port').read_text().strip()}"
    async with aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,)) as opened:
        yield opened


async def page(session: aiohttp.ClientSession, address: str) -> tuple[int, str]:
    """The status and the text of one."""
    async with session.get(URL(address, encoded=True)) as response:
        return response.status, await response.text()


def links(text: str) -> set[str]:
    """Where a page leads to that is a page, its ways to the present left out."""
    found = {
        unescape(address) for address, said in _LINK.findall(text) if said.strip() not in _TO_THE_PRESENT
    }
    return {each for each in found if not each.startswith(("#", *_NO_PAGES))}


async def test_whoever_walks_in_the_past_stays_there(
    session: aiohttp.ClientSession, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """From every page of the past each link leads to a page, and to one that has a moment of the past."""
    ended = await pool.client.submit("executable = /bin/false\nqueue 2\n", cwd=tmp_path)
    await pool.client.wait(select(ended.cluster))
    held = await pool.client.submit("executable = /bin/true\nhold = true\nqueue\n", cwd=tmp_path)
    least = f"/v2/jobs?limit=1&at_least={held.position.shard}:{held.position.frame}"
    assert 200 == (await page(session, least))[0]  # the tables have all of them
    moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    ways: dict[str, str] = {}
    for path in (
        "/", "/jobs", "/history", "/submit", "/log", "/failures", "/fairshare", "/usage", "/machines", "/submitters",
        "/negotiations", "/services", "/admin", f"/jobs/{held.cluster}.0", f"/jobs/{ended.cluster}.0", f"/clusters/{held.cluster}",
    ):  # fmt: skip
        status, text = await page(session, f"{path}?as_of={moment}")
        assert 200 == status, path
        ways |= dict.fromkeys(links(text), path)
    assert len(ways) > 40
    for address, origin in ways.items():
        assert "as_of" in URL(address, encoded=True).query, f"{address} on {origin} leads to the present"
        status, text = await page(session, address)
        assert 200 == status, f"{address} on {origin}"
        assert 'class="moment past"' in text, f"{address} on {origin}"


async def test_who_is_lost_is_led_to_a_page(session: aiohttp.ClientSession, pool: ThrowawayPool) -> None:
    """
    What is not there is said with the page that lists what is; an unknown kind of event with the nearest one; a record that a pool
    does not keep with what keeps it.
    """
    status, text = await page(session, "/machines/nowhere")
    assert 404 == status
    assert '<a href="/machines">Machines</a> or <a href="/">Home</a>' in text
    assert "/v2/" not in text.partition("<dl")[0]
    status, text = await page(session, "/log?kind=job.hld")
    assert (200, True) == (status, '<a href="/log?kind=job.held">' in text)
    status, text = await page(session, "/admin")
    assert (200, True) == (status, "has no iam" in text)


async def test_queues_of_the_past_have_jobs_and_counts(
    session: aiohttp.ClientSession, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The page of the queues shows the jobs of a moment as they were, also what has left since, with the same filters, and so do the first
    page and that of their cluster; counts have each grouping, and say which filters they leave out.
    """
    held = await pool.client.submit("executable = /bin/true\nhold = true\nqueue 2\n", cwd=tmp_path)
    least = f"/v2/jobs?limit=1&at_least={held.position.shard}:{held.position.frame}"
    assert 200 == (await page(session, least))[0]
    moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    removed = await pool.client.remove(select(held.cluster))
    assert removed.position is not None
    least = f"/v2/jobs?limit=1&at_least={removed.position.shard}:{removed.position.frame}"
    assert 200 == (await page(session, least))[0]
    status, text = await page(
        session, f"/jobs?as_of={moment}&cluster={held.cluster}&filter=ProcId==1&state=held"
    )
    assert (200, True, False) == (status, f">{held.cluster}.1</a>" in text, f">{held.cluster}.0</a>" in text)
    assert "without cluster, filter" in text
    status, text = await page(session, f"/clusters/{held.cluster}?as_of={moment}")
    assert (200, True) == (status, "<b>0</b> of 2 have ended" in text)
    assert "2 jobs that are held" in text
    status, text = await page(session, f"/?as_of={moment}")
    then = text.partition("In the queues then")[2]
    assert (200, True) == (status, f'">{held.cluster}.1</a></th><td><span class="state held">' in then)
    before = (datetime.now(UTC) - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    assert 404 == (await page(session, f"/clusters/{held.cluster}?as_of={before}"))[0]
    moment = (datetime.now(UTC) - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    for query in ("", "&group_by=state", "&group_by=cluster", "&cluster=3&filter=true&state=held"):
        status, text = await page(session, f"/jobs?as_of={moment}{query}")
        assert 200 == status, query
        assert "Counts are those at the end" in text


async def test_refusals_stay_in_the_past_and_the_future_is_refused(session: aiohttp.ClientSession) -> None:
    """What is wrong on a page of the past keeps the way back to now; nothing is known of what is not over."""
    moment = (datetime.now(UTC) - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    status, text = await page(session, f"/log?knd=x&as_of={moment}")
    assert (400, True) == (status, "Back to now" in text)
    status, text = await page(session, "/log?as_of=2090-01-01T00:00:00Z")
    assert (400, True, False) == (status, "is not over yet" in text, "Back to now" in text)
