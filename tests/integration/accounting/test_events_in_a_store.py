"""The example program that sends events to an OpenSearch, with a running pool and a store behind a port."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from kettle.client import select
from kettle.testing.services import eventually
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

from .bulk_store import BulkServer, bulk_server

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

PROGRAM = Path(__file__).parents[3] / "docs" / "examples" / "feed_opensearch.py"
INDEX = "kettle-events"
WITHIN_S = 120.0


@asynccontextmanager
async def feeding(pool: ThrowawayPool, store: BulkServer) -> AsyncGenerator[None]:
    """As somebody would run it who has no Kettle; killed at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(PROGRAM),
        store.url,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "KETTLE_HOME": str(pool.home)},
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


def of_jobs(store: BulkServer, verb: str) -> list[str]:
    """The jobs of which the store has such an event."""
    kind = f"org.kettle.job.{verb}."
    return sorted(each["subject"] for each in store.documents.values() if each["type"].startswith(kind))


async def test_each_event_is_a_document_whatever_is_killed(tmp_path: Path, template: Path) -> None:
    """
    A store that is away, or has too much to do for some, gets them later; a program that is killed goes on where the store was;
    what has happened meanwhile is not left out, and nothing is there twice.
    """
    async with throwaway_pool(tmp_path, cpus=2, template=template) as pool, bulk_server() as store:
        first = (await pool.client.submit("executable = /bin/true\nqueue 2\n")).cluster
        await pool.client.wait(select(first))
        store.whole = [web.Response(status=503), web.Response(text="no bulk protocol")]
        busy = (await eventually(lambda: _published(pool), within=WITHIN_S))[0]
        store.busy[busy] = 1
        async with feeding(pool, store):
            await eventually(lambda: _has(store, [f"{first}.0", f"{first}.1"]), within=WITHIN_S)
        second = (await pool.client.submit("executable = /bin/true\nqueue\n")).cluster
        await pool.client.wait(select(second))
        async with feeding(pool, store):
            await eventually(
                lambda: _has(store, [f"{first}.0", f"{first}.1", f"{second}.0"]), within=WITHIN_S
            )
            known = set(store.documents)
            everything = await _published(pool)
            await eventually(lambda: _complete(store, everything), within=WITHIN_S)
        assert known <= set(store.documents)
        assert 0 == store.busy[busy]
        assert all(name == each["id"] for (_, name), each in store.documents.items())


async def _has(store: BulkServer, jobs: list[str]) -> bool:
    return of_jobs(store, "completed") == jobs


async def _published(pool: ThrowawayPool) -> list[str]:
    """The ids of all events so far."""
    status, out, err = await pool.kettle("events", "--json", "--since", "10m")
    assert 0 == status, err
    return [json.loads(line)["id"] for line in out.splitlines()]


async def _complete(store: BulkServer, ids: list[str]) -> bool:
    return {(INDEX, name) for name in ids} <= set(store.documents)
