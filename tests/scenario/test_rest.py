"""The REST interface of a running pool, over real HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool

from .evidence import Evidence

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

HELD = 'executable = /bin/true\nhold = true\n+Colour = "green"\nenvironment = SECRET=1\nqueue 3\n'


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True}}}


class Rest:
    """Asks with the private token of the pool."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def get(
        self, path: str, status: int = 200, headers: dict[str, str] | None = None, **query: Any
    ) -> Any:
        async with self.session.get(path, params=query, headers=headers) as response:
            self.headers = response.headers
            assert response.status == status, await response.text()
            return None if status == 304 else await response.json(content_type=None)

    async def send(
        self, method: str, path: str, body: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> Any:
        said = {"data": body} if isinstance(body, str) else {"json": body}
        if isinstance(body, str):
            headers = {"Content-Type": "text/plain", **(headers or {})}
        async with self.session.request(method, path, headers=headers, **said) as response:
            assert response.status == status, await response.text()
            return await response.json(content_type=None)


def address(pool: ThrowawayPool) -> str:
    return f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"


@pytest_asyncio.fixture
async def rest(pool: ThrowawayPool) -> AsyncIterator[Rest]:
    token = (pool.home / "gateway" / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(address(pool), headers=headers) as session:
        yield Rest(session)


async def test_jobs_are_submitted_listed_changed_and_removed(rest: Rest, pool: ThrowawayPool) -> None:
    """
    What is submitted over HTTP is listed at once for who names its position, and held, edited and removed the same way.
    """
    made = await rest.send("POST", "/v2/jobs", HELD, headers={"Idempotency-Key": "one"})
    again = await rest.send("POST", "/v2/jobs", HELD, headers={"Idempotency-Key": "one"})
    assert made == again
    assert made["count"] == 3
    cluster, position = made["cluster"], made["position"]
    listed = await rest.get("/v2/jobs", cluster=cluster, at_least=position, fields="Colour,Environment")
    assert [f"{cluster}.{proc}@schedd" for proc in (2, 1, 0)] == [job["id"] for job in listed["jobs"]]
    assert {"held"} == {job["state"] for job in listed["jobs"]}
    assert "green" == listed["jobs"][0]["attributes"]["Colour"]
    assert "Environment" in listed["jobs"][0]["attributes"]
    etag = rest.headers["ETag"]
    await rest.get("/v2/jobs", 304, {"If-None-Match": etag}, cluster=cluster, fields="Colour,Environment")
