"""Simulations over HTTP: jobs of the pool that play studies."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.simulator.simulation_file import read

from .asking import patiently
from .test_rest import Rest, address

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

STUDY: Final = """\
[platform]
hosts = 2
cores = 2

[[workload]]
jobs = 40
every = "2 s"
arrivals = "poisson"
duration = { kind = "exponential", mean = 6 }

[[workload]]
dag = "flow.dag"
duration = "5 s"
"""
DAG: Final = "JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b\n"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    asked = {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6, "simulations_of_one": 2}
    # Jobs run as this account: whether another one may read this checkout is not the question here.
    return {"settings": {"gateway": asked, "startd": {"job_account": "own"}}}


@pytest_asyncio.fixture
async def rest(pool: ThrowawayPool) -> AsyncIterator[Rest]:
    token = (pool.home / "gateway" / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(address(pool), headers=headers, middlewares=(patiently,)) as session:
        yield Rest(session)


async def followed(rest: Rest, name: str) -> list[Any]:
    """All that is told of one until it is over."""
    async with rest.session.get(f"/v2/simulations/{name}/events") as stream:
        lines = [line async for line in stream.content]
        assert 200 == stream.status, lines
    found = [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]
    assert found.pop() == {"reason": "the simulation is over, and that was its last event"}
    return found


async def test_a_study_is_played_by_a_job_and_comes_to_what_the_command_says(
    rest: Rest, tmp_path: Path
) -> None:
    """
    The result of a simulation over HTTP is that of the same study at a terminal, and its table is a file of its job; it is listed until
    somebody removes it, and a repeat with its key begins no other one.
    """
    body = {
        "study": STUDY,
        "files": [{"name": "flow.dag", "text": DAG}],
        "seeds": [7],
        "name": "mine",
        "table": True,
    }
    key = {"Idempotency-Key": "a study"}
    made = await rest.send("POST", "/v2/simulations", body, 201, headers=key)
    assert made["id"] == (await rest.send("POST", "/v2/simulations", body, 201, headers=key))["id"]
    last = (await followed(rest, made["id"]))[-1]
    assert ("done", "mine") == (last["state"], last["name"]), last
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "flow.dag").write_text(DAG)
    simulation = read(tmp_path / "study.toml", seed=7).simulation
    assert last["runs"][0]["all"] == msgspec.to_builtins(simulation.run().figures())
    assert last["runs"] == (await rest.get(f"/v2/simulations/{made['id']}"))["runs"]
    files = await rest.get(f"/v2/jobs/{made['id']}/files")
    assert "jobs.parquet" in [file["path"] for file in files["files"]]
    listed = await rest.get("/v2/simulations")
    assert [made["id"]] == [each["id"] for each in listed["simulations"]]
    await rest.send("DELETE", f"/v2/simulations/{made['id']}", None)
    assert [] == (await rest.get("/v2/simulations"))["simulations"]
    await rest.get(f"/v2/simulations/{made['id']}", 404)


async def test_what_only_the_run_can_find_is_told_with_its_place(rest: Rest) -> None:
    """A trace with bad lines fails the simulation, and the sentence is that of the command."""
    study = '[platform]\n[[workload]]\nswf = "short.swf"\n'
    body = {"study": study, "files": [{"name": "short.swf", "text": "1 2 3\n"}]}
    made = await rest.send("POST", "/v2/simulations", body, 201)
    last = (await followed(rest, made["id"]))[-1]
    assert "failed" == last["state"], last
    assert "short.swf:1: it has 3 fields, and a job has 18" in last["problem"]
    await rest.send("DELETE", f"/v2/simulations/{made['id']}", None)


async def test_a_study_that_cannot_be_is_refused_before_there_is_a_job(rest: Rest) -> None:
    async def refused(**body: Any) -> Any:
        return (await rest.send("POST", "/v2/simulations", body, 422))["errors"][0]

    said = await refused(study=STUDY.replace("cores", "cors"))
    assert said["pointer"] == "/body/study"
    assert "study.toml:3: platform.cors: there is no such key, did you mean cores?" in said["detail"]
    said = await refused(study=STUDY)
    assert "study.toml:12: workload.1.dag: flow.dag is not among the files that have come" in said["detail"]
    outside = '[platform]\n[[workload]]\nswf = "/etc/passwd"\n'
    assert "is not among the files" in (await refused(study=outside))["detail"]
    twice = {"name": "flow.dag", "text": DAG}
    assert (await refused(study=STUDY, files=[twice, twice]))["pointer"] == "/body/files/1/name"
    assert (await refused(study=STUDY, files=[twice], seeds=[1, 2], table=True))["pointer"] == "/body/table"
    assert [] == (await rest.get("/v2/simulations"))["simulations"]


async def test_one_person_has_so_many_at_once(rest: Rest) -> None:
    endless = '[platform]\nmtbf = "1 s"\nrepair = "1 s"\n[[workload]]\njobs = 1\nduration = "100 d"\n'
    made = [await rest.send("POST", "/v2/simulations", {"study": endless}, 201) for _ in range(2)]
    problem = await rest.send("POST", "/v2/simulations", {"study": endless}, 429)
    assert "you have 2 simulations that are not over" in problem["detail"]
    for each in made:
        assert "removed" == (await rest.send("DELETE", f"/v2/simulations/{each['id']}", None))["state"]
