"""A compute entrypoint gives jobs their routes: to this pool with another ad, or says why none takes them."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobAssigned, JobCompleted, JobRouted, JobUnrouted
from kettle_wire.jobs import JobId

SERVICES: Final = ["collector", "negotiator", "schedd", "shadow", "startd", "ce"]
ROUTES: Final = """\
JOB_ROUTER_ROUTE_NAMES = Here
JOB_ROUTER_ROUTE_Here @=end
    REQUIREMENTS VO =?= "atlas"
    UNIVERSE vanilla
    SET RequestMemory 64
    SET Arguments "routed"
    EVALSET Queued VO
    DELETE Rank
@end
"""


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with the routes."""
    path = tmp_path_factory.mktemp("ce") / "routes"
    path.write_text(ROUTES)
    return path


@pytest.fixture(scope="module")
def configuration(routes: Path) -> dict[str, Any]:
    return {
        "settings": {
            "master": {"daemon_list": SERVICES},
            "schedd": {"entrypoint": True, "route_jobs": "VO isnt undefined"},
            "ce": {"routes": str(routes), "routes_interval": 0.2},
        }
    }


async def test_a_job_is_routed_to_this_pool_with_another_ad(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    It is offered to no machine before it has its route, runs with what the route made of its ad, and says by which route; others
    beside it are not touched.
    """
    out = tmp_path / "out"
    submitted = await pool.client.submit(
        "executable = /bin/echo\ntransfer_executable = false\nrequest_memory = 32\narguments = own\nrank = Memory\n"
        f'output = {out}.$(ProcId)\n+VO = "atlas"\nqueue 2\n',
        cwd=tmp_path,
    )
    plain = await pool.client.submit(
        f"executable = /bin/echo\ntransfer_executable = false\narguments = own\noutput = {out}.plain\nqueue\n",
        cwd=tmp_path,
    )
    await pool.client.wait(select(submitted.cluster))
    await pool.client.wait(select(plain.cluster))
    said = [each.event for each in await pool.client.events(JobId(submitted.cluster, 1))]
    kinds = [type(event) for event in said if isinstance(event, JobRouted | JobAssigned | JobCompleted)]
    assert [JobRouted, JobAssigned, JobCompleted] == kinds
    (routed,) = (event for event in said if isinstance(event, JobRouted))
    assert ("Here", 1, ["Rank"]) == (routed.route, routed.number, routed.removed)
    assert {"RequestMemory": 64, "Arguments": "routed", "Queued": "atlas"} == routed.attributes
    assert ["routed\n", "routed\n", "own\n"] == [
        Path(f"{out}.{which}").read_text() for which in ("0", "1", "plain")
    ]
    others = [type(each.event) for each in await pool.client.events(JobId(plain.cluster, 0))]
    assert JobRouted not in others


async def test_a_job_that_no_route_takes_says_why(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    The reason is the first clause of each route that is not true: recorded at once, and what people are told
    who ask why it waits.
    """
    submitted = await pool.client.submit(
        'executable = /bin/true\ntransfer_executable = false\n+VO = "cms"\nqueue\n', cwd=tmp_path
    )
    job = JobId(submitted.cluster, 0)
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.follow(job)) as following:
        said = await anext(each.event async for each in following if isinstance(each.event, JobUnrouted))
    assert 'no route takes it: Here: VO is "atlas" is false' == said.reason
    explanation = (await pool.client.why(job)).explanation
    assert explanation is not None
    assert (said.reason, None) == (explanation.reason, explanation.autocluster)
    await pool.client.remove(select(submitted.cluster))
