"""
What the gateway of a whole pool takes for what goes through its services: JSON on standard output.

    python -m tests.performance.gateway_pool --jobs=10000 --changes=20000

One request submits all jobs, none of which can run, when the pool has nothing else to do: its tables have what was before.

The past is asked for a moment before all of them were held and released, again and again, until so many changes were recorded: about what
an hour of a busy pool has.  Reads of the past are of the whole list, of one job and of the page.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp

from kettle.client import select
from kettle.testing.measurements import summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

SETTINGS: Final = {
    "gateway": {
        "rest": True,
        "requests_per_second": 1e5,
        "request_burst": 1e5,
        "all_requests_per_second": 1e5,
        "all_request_burst": 1e5,
    }
}
JOBS: Final = "executable = /bin/sleep\narguments = $(Process)\nrequirements = false\nqueue {jobs}\n"


async def submitted(session: aiohttp.ClientSession, jobs: int) -> tuple[int, str, float]:
    """Submit jobs by one request; their cluster, the position to wait for, and seconds until the answer."""
    began = time.perf_counter()
    plain = {"Content-Type": "text/plain"}
    async with session.post("/v2/jobs", data=JOBS.format(jobs=jobs), headers=plain) as response:
        assert response.status in {200, 201}, await response.text()
        answer = await response.json()
    return answer["cluster"], answer["position"], time.perf_counter() - began


async def asked(session: aiohttp.ClientSession, path: str, **query: str) -> float:
    """Seconds of one question."""
    began = time.perf_counter()
    async with session.get(path, params=query) as response:
        assert 200 == response.status, await response.text()
        await response.read()
    return time.perf_counter() - began


async def settled(session: aiohttp.ClientSession, position: str) -> None:
    """Wait until the tables have what was written, however long they take on a busy machine."""
    while True:
        async with session.get("/v2/jobs", params={"limit": 1, "at_least": position}) as response:
            if response.status == 200:
                return
            assert 503 == response.status, await response.text()


async def measured(
    pool: ThrowawayPool, session: aiohttp.ClientSession, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Submissions first, then the past."""
    found: dict[str, list[float]] = {"submit": []}
    for _ in range(arguments.rounds):
        cluster, position, took = await submitted(session, arguments.jobs)
        found["submit"].append(took * 1000)
        await settled(session, position)
        removed = await pool.client.remove(select(cluster))
        assert removed.position is not None
        await settled(session, f"{removed.position.shard}:{removed.position.frame}")
    cluster, position, _ = await submitted(session, arguments.jobs)
    await settled(session, position)
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    for _ in range(max(1, arguments.changes // (2 * arguments.jobs))):
        await pool.client.release(select(cluster))
        await pool.client.hold(select(cluster), reason="the bench")
    _, position, _ = await submitted(session, 1)
    await settled(session, position)
    for _ in range(arguments.rounds):
        for name, path in (
            ("list_as_of", "/v2/jobs"),
            ("job_as_of", f"/v2/jobs/{cluster}.7"),
            ("page_as_of", "/jobs"),
            ("list_now", "/v2/jobs"),
        ):
            query = {} if name == "list_now" else {"as_of": moment}
            found.setdefault(name, []).append(await asked(session, path, **query) * 1000)
    return {f"{name}_ms": summary(values, 2) for name, values in found.items()}


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """In a pool of its own, in which no job runs."""
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as name:
        async with throwaway_pool(Path(name), settings=SETTINGS) as pool:
            gateway = pool.home / "gateway"
            token, port = ((gateway / each).read_text().strip() for each in ("token", "port"))
            headers = {"Authorization": f"Bearer {token}"}
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:
                return await measured(pool, session, arguments)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    report = asyncio.run(run(arguments))
    sys.stdout.write(f"{json.dumps({'jobs': arguments.jobs, **report}, indent=2)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
