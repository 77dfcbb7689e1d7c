"""
The REST interface of a running pool, about what is not a job: standings, usage, machines, claims, the log.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .asking import patiently

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6}}}


@pytest_asyncio.fixture
async def session(pool: ThrowawayPool) -> AsyncIterator[aiohttp.ClientSession]:
    token = (pool.home / "gateway" / "token").read_text().strip()
    port = (pool.home / "gateway" / "port").read_text()
    headers = {"Authorization": f"Bearer {token}"}
    address = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,)) as made:
        yield made


async def get(session: aiohttp.ClientSession, path: str, **query: Any) -> Any:
    async with session.get(path, params=query) as response:
        assert response.status == 200, await response.text()
        return await response.json(content_type=None)


async def until(session: aiohttp.ClientSession, says: Callable[[Any], bool], path: str, **query: Any) -> Any:
    """The first answer that says so: what others tell of comes when it comes."""
    async with asyncio.timeout(PATIENCE_S):
        while not says(answer := await get(session, path, **query)):
            await asyncio.sleep(0.05)
    return answer


async def submitted(session: aiohttp.ClientSession, text: str) -> tuple[int, str]:
    async with session.post("/v2/jobs", data=text, headers={"Content-Type": "text/plain"}) as response:
        assert response.status == 200, await response.text()
        made = await response.json()
        return made["cluster"], made["position"]


async def test_a_machine_is_drained_by_who_may(session: aiohttp.ClientSession, pool: ThrowawayPool) -> None:
    """
    An administrator of a machine has it take no jobs, and again, over HTTP; a repeat with its key is the same drain, and what cannot be
    done says why.
    """
    machines = await until(session, lambda said: said["ads"], "/v2/machines", fields="Name")
    [machine] = [each["name"] for each in machines["ads"]]
    path = f"/v2/machines/{machine}"

    async def order(action: str, said: dict[str, Any], key: str = "") -> tuple[int, Any]:
        headers = {"Idempotency-Key": key} if key else {}
        async with session.post(f"{path}:{action}", json=said, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    def draining(said: Any) -> bool:
        return any(slot["attributes"].get("DrainReason") == "a disk" for slot in said["slots"])

    refused = await order("drain", {"check": "Cpus >"})
    assert (422, "/body/check") == (refused[0], refused[1]["errors"][0]["pointer"])
    status, never = await order("drain", {"check": "Cpus > 1000000"})
    assert status in {409, 422}, never
    try:
        first = await order("drain", {"reason": "a disk", "start": "TARGET.IsShort"}, "k")
        assert first == await order("drain", {"reason": "a disk", "start": "TARGET.IsShort"}, "k")
        assert (200, machine) == (first[0], first[1]["name"])
        await until(session, draining, path, fields="Draining,DrainReason")
        other = await order("cancel_drain", {"request": "another"})
        assert other[0] in {404, 409, 422}, other
    finally:
        assert 200 == (await order("cancel_drain", {}))[0]
    await until(session, lambda said: not draining(said), path, fields="Draining,DrainReason")
    async with session.post("/v2/machines/nowhere:drain", json={}) as response:
        assert (404, "nowhere" in (await response.text())) == (response.status, True)


async def test_a_job_is_seen_from_its_machine_its_claim_and_its_owner(
    session: aiohttp.ClientSession, pool: ThrowawayPool
) -> None:
    """
    While a job runs its machine, its claim and the log tell of it; when it has run its owner has a standing and a usage.
    """
    cluster, _ = await submitted(session, "executable = /bin/sleep\narguments = 1000\nqueue\n")
    job = f"{cluster}.0@schedd"
    async with aclosing(pool.client.watch(select(cluster))) as watched:
        async for progress in watched:
            if progress.counts["running"]:
                break
    _, position = await submitted(session, "executable = /bin/true\nhold = true\nqueue\n")
    await get(session, "/v2/jobs", at_least=position, limit=1)  # the tables have the running job, too

    [claim] = [
        each for each in (await get(session, "/v2/claims"))["claims"] if each.get("job", {}).get("id") == job
    ]
    machine = await until(
        session,
        lambda said: claim["slot"] in [each["name"] for each in said["slots"]],
        f"/v2/machines/{claim['machine']}",
        fields="State,Cpus",
    )
    assert (job, claim["slot"]) in [(each["id"], each["slot"]) for each in machine["jobs"]]
    records = (await get(session, "/v2/log", job=job))["records"]
    assert ["cluster.submitted/1", "job.assigned/1"] == [each["type"] for each in records[::-1]][:2]
    await until(session, lambda said: said["negotiations"], "/v2/negotiations", submitter=claim["submitter"])

    async with session.post("/v2/jobs:remove", json={"ids": [job], "expect": 1}) as response:
        assert response.status == 200, await response.text()
    cluster, _ = await submitted(session, "executable = /bin/true\nqueue\n")
    await pool.client.wait(select(cluster))
    [end] = (await get(session, "/v2/log", stream=f"job/{cluster}.0", kind="job.completed"))["records"]
    owner = {"owner": claim["submitter"], "at_least": f"{end['shard']}:{end['frame']}"}
    usage = await get(session, "/v2/usage", group_by="owner,day", **owner)
    assert usage["total"]["attempts"] >= 1
    assert usage["total"]["jobs"] >= 1
    assert {claim["submitter"]} == {row["key"]["owner"] for row in usage["rows"]}

    known = await until(session, lambda said: said["users"], "/v2/users", name=claim["submitter"])
    [user] = known["users"]
    shares = (await get(session, "/v2/fairshare"))["shares"]
    assert user["factor"] * user["priority"] == pytest.approx(user["effective"])
    assert claim["submitter"] in [each["name"] for each in shares]
    history = await get(session, "/v2/fairshare/history", owner=claim["submitter"], points=2)
    assert 2 == len(history["times"]) == len(history["owners"][0]["running"])
