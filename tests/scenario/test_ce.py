"""A compute entrypoint gives jobs their routes: to this pool with another ad, or says why none takes them."""

import asyncio
import io
import json
import tarfile
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from kettle.client import CommandRefusedError, select
from kettle.retry.deadline import Deadline
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.codes import RefusalCode
from kettle_wire.events import JobAssigned, JobCompleted, JobRouted, JobStarted, JobUnrouted
from kettle_wire.jobs import JobId

from .asking import patiently
from .condor import Condor

SERVICES: Final = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting", "gateway", "ce"]
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
            "gateway": {"rest": True},
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
    The reason is the first clause of each route that is not true: recorded at once, and what people are told who ask why it
    waits.
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


async def _once_known(pool: ThrowawayPool, *words: str) -> tuple[int, str, str]:
    """What a command says of a job that has ended, once the history has it."""
    patience = Deadline(PATIENCE_S)
    while True:
        said = await pool.kettle(*words)
        if "no job is called" not in said[2] or patience.passed:
            return said
        await asyncio.sleep(0.2)


def gateway_of(pool: ThrowawayPool) -> aiohttp.ClientSession:
    """Asks the gateway as the account of this process."""
    token = (pool.home / "gateway" / "token").read_text().strip()
    address = f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"
    headers = {"Authorization": f"Bearer {token}"}
    return aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,))


async def test_people_see_what_was_decided(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    By command and over HTTP: the routes, the route of a job with the effect of each statement, and where another job would
    go.
    """
    submitted = await pool.client.submit(
        'executable = /bin/true\ntransfer_executable = false\n+VO = "atlas"\nqueue\n', cwd=tmp_path
    )
    job = f"{submitted.cluster}.0"
    await pool.client.wait(select(submitted.cluster))
    status, out, err = await _once_known(pool, "ce", "show", job)
    assert (0, "") == (status, err), pool.log("ce")
    assert "  RequestMemory = 64\n" in out
    assert '    route Here, line 7: Queued = "atlas"\n' in out
    status, out, _ = await pool.kettle("ce", "trace", job, "--json")
    assert ("ended", "completed", "Here") == tuple(
        json.loads(out)[key] for key in ("state", "outcome", "route")
    )
    assert 0 == status
    status, out, _ = await pool.kettle("ce", "status", "--json")
    assert [("Here", "pool", 100)] == [
        (each["name"], each["target"], each["max_jobs"]) for each in json.loads(out)["routes"]
    ]
    status, _, err = await pool.kettle("ce", "trace", "slurm/20260101/47110000")
    assert 1 == status
    assert "no job is called slurm/20260101/47110000" in err
    async with gateway_of(pool) as session:
        async with session.get("/ce/v1/routes") as response:
            assert ["Here"] == [each["name"] for each in (await response.json())["routes"]]
        async with session.get("/routes") as response:
            page = await response.text()
            assert '<th scope="row">Here</th><td>this pool</td>\n<td>yes</td>' in page
            assert "kettle ce trace JOB" in page
        async with session.get(f"/ce/v1/jobs/{job}") as response:
            chain = await response.json()
            assert ("ended", "Here") == (chain["state"], chain["route"])
        async with session.get("/ce/v1/jobs/slurm%2F20260101%2F47110000") as response:
            assert 404 == response.status
        async with session.post("/ce/v1/jobs:route", json={"ad": {"VO": "cms"}}) as response:
            answer = await response.json()
            assert [("Here", "requirements", 'VO is "atlas" is false')] == [
                tuple(each.values()) for each in answer["refusals"]
            ]
        async with session.post("/ce/v1/jobs:route", json={"ad": {"VO": "atlas"}}) as response:
            assert ("Here", 64) == (
                (await response.json())["route"],
                (await response.json())["attributes"]["RequestMemory"],
            )


PILOT: Final = {
    "ad": {
        "Cmd": "pilot",
        "Iwd": "/nowhere",
        "Out": "out",
        "TransferInput": "data",
        "RequestMemory": 16,
        "VO": "atlas",
    }
}


def sandbox() -> bytes:
    """An archive with the files of a pilot."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as writing:
        for name, mode, content in (
            ("pilot", 0o755, b"#!/bin/sh\ncat data\necho $1\n"),
            ("data", 0o644, b"in\n"),
        ):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(content)
            writing.addfile(entry, io.BytesIO(content))
    return made.getvalue()


async def _until(
    session: aiohttp.ClientSession, place: int, job: str, reached: Callable[[dict[str, Any]], bool]
) -> tuple[int, dict[str, Any]]:
    """Ask for what has happened behind a place until it is a job's being as it is to be; the place then."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with session.get(f"/ce/v1/jobs?since={place}") as response:
                said = await response.json()
                assert 200 == response.status, said
            place = said["next"]
            for each in said["jobs"]:
                if each["id"] == job and reached(each):
                    return place, each
            await asyncio.sleep(0.1)


async def _held_of_vo(session: aiohttp.ClientSession, vo: str) -> None:
    """Ask until a job of a VO that is held is counted: what was counted for others is told for a while."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with session.get("/ce/v1/json/vos") as response:
                if (await response.json()).get(vo, {}).get("Held"):
                    return
            await asyncio.sleep(0.5)


async def test_a_pilot_comes_in_over_http(pool: ThrowawayPool) -> None:
    """
    It is refused at once where no route takes it, recorded once however often it is sent, runs with the files of its archive, is
    followed by what has changed, and what it left comes as an archive, also in parts, until it is removed.
    """
    async with gateway_of(pool) as session:
        async with session.post("/ce/v1/jobs", json={"ad": {"Cmd": "/bin/true", "VO": "cms"}}) as response:
            refusal = await response.json(content_type=None)
            assert (422, "ce.no_route") == (response.status, refusal["code"])
            assert [{"pointer": "/routes/Here", "detail": 'VO is "atlas" is false'}] == refusal["errors"]
        async with session.get("/ce/v1/jobs") as response:
            begun = await response.json()
            assert begun["whole"]
        answers: list[Any] = []
        for _ in range(2):
            async with session.post(
                "/ce/v1/jobs?spool=1", json=PILOT, headers={"Idempotency-Key": "pilot"}
            ) as response:
                assert 201 == response.status, await response.text()
                answers.append(await response.json())
        assert answers[0] == answers[1]
        job, route = answers[0]["id"], answers[0]["route"]
        assert ("Here", []) == (route, answers[0].get("warnings", []))
        other = {"ad": PILOT["ad"] | {"RequestMemory": 17}}
        async with session.post(
            "/ce/v1/jobs?spool=1", json=other, headers={"Idempotency-Key": "pilot"}
        ) as response:
            assert 409 == response.status
        await _held_of_vo(session, "atlas")
        async with session.get(
            "/ce/v1/json/jobs", params={"projection": "ProcId", "constraint": 'VO == "atlas"'}
        ) as response:
            assert {"ProcId": 0} in await response.json()
        async with session.put(
            f"/ce/v1/jobs/{job}/sandbox", data=sandbox(), headers={"Content-Type": "application/x-tar"}
        ) as response:
            assert 200 == response.status, await response.text()
            assert 2 == (await response.json())["files"]
        place, ended = await _until(session, begun["next"], job, lambda each: each["state"] == "ended")
        assert ("completed", 0, "Here") == (ended["outcome"], ended["exit_code"], ended["route"])
        async with session.get(f"/ce/v1/jobs/{job}/output") as response:
            assert 200 == response.status, await response.text()
            whole, etag = await response.read(), response.headers["ETag"]
        with tarfile.open(fileobj=io.BytesIO(whole)) as reading:
            left = [file.read() for file in map(reading.extractfile, reading) if file is not None]
        assert b"in\nrouted\n" in left
        headers = {"Range": "bytes=100-611", "If-Range": etag}
        async with session.get(f"/ce/v1/jobs/{job}/output", headers=headers) as response:
            assert (206, whole[100:612]) == (response.status, await response.read())
        async with session.delete(f"/ce/v1/jobs/{job}", params={"reason": "fetched"}) as response:
            assert 200 == response.status, await response.text()
        await _until(session, place, job, lambda each: each["state"] == "ended")
        async with session.get("/ce/v1/jobs") as response:
            said = await response.json()
            assert job not in {each["id"] for each in said["jobs"]}


async def test_what_a_pilot_runs_is_recorded(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    From what it says over HTTP and by command; who asks later is told, also of one that is over, and so is who reads the log.
    """
    (tmp_path / "pilot").write_text("#!/bin/sh\nexec sleep 600\n")
    submitted = await pool.client.submit('executable = pilot\n+VO = "atlas"\nqueue\n', cwd=tmp_path)
    job = f"{submitted.cluster}.0"
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.follow(JobId(submitted.cluster, 0))) as seen:
        await anext(each async for each in seen if isinstance(each.event, JobStarted))
    begun = {"name": "atlas.1", "owner": "bob", "vo": "atlas"}
    async with gateway_of(pool) as session:
        for running in (1, 1):
            async with session.post(f"/ce/v1/jobs/{job}/payloads", json={"begun": [begun]}) as response:
                assert {"id": job, "running": running} == await response.json()
        async with session.post(
            f"/ce/v1/jobs/{job}/payloads", json={"begun": [{"name": "atlas.1"}]}
        ) as response:
            assert 422 == response.status
        said = await pool.kettle("ce", "report", job, "atlas.2", "--owner", "carol", "--host", "node7")
        assert (0, "The pilot runs 2 now.\n", "") == said
        async with session.get("/ce/v1/payloads", params={"owner": "bob"}) as response:
            assert [(job, begun)] == [
                (each["job"], each["payload"]) for each in (await response.json())["payloads"]
            ]
        said = await pool.kettle("ce", "report", job, "atlas.1", "--over", "--exit-code", "3")
        assert (0, "The pilot runs 1 now.\n", "") == said
        async with session.get(f"/ce/v1/jobs/{job}/payloads") as response:
            told = (await response.json())["payloads"]
            assert [("bob", 3), ("carol", None)] == [
                (each["payload"]["owner"], each.get("exit_code")) for each in told
            ]
    await pool.client.remove(select(submitted.cluster))
    status, out, err = await _once_known(pool, "ce", "payloads", job)
    assert (0, "") == (status, err)
    assert ["atlas.1", "atlas.2"] == [line.split()[2] for line in out.splitlines()[1:]]
    status, out, err = await pool.kettle("log", "show", "ce.schedd", "--type", "payload")
    assert (0, "") == (status, err)
    assert "runs atlas.1 for bob (atlas)" in out


async def _advertised(session: aiohttp.ClientSession) -> None:
    """Ask until the access point has told the collector of itself."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with session.get("/ce/v1/json/schedd") as response:
                if response.status == 200:
                    return
                assert 404 == response.status, await response.text()
            await asyncio.sleep(0.2)


async def test_programs_for_ceview_read_an_entrypoint(pool: ThrowawayPool) -> None:
    """Each name of CEView's answers in its form, and with 304 to who has the answer."""
    async with gateway_of(pool) as session:
        await _advertised(session)
        for name, members in (
            ("totals", {"Running", "Idle", "Held", "UpdateDate"}),
            ("schedds", {"schedd"}),
            ("statuses", {"schedd"}),
            ("status", {"status"}),
        ):
            async with session.get(f"/ce/v1/json/{name}") as response:
                assert (200, members) == (response.status, set(await response.json())), name
        async with session.get("/ce/v1/json/schedd") as response:
            assert "schedd" == (await response.json())["Name"]
        async with session.get("/ce/v1/json/pilots") as response:
            assert isinstance(await response.json(), list)
        async with session.get("/ce/v1/json/tableattribs") as response:
            assert {"label", "attrib"} == set((await response.json())[0])
            known = {"If-None-Match": response.headers["ETag"]}
        async with session.get("/ce/v1/json/tableattribs", headers=known) as response:
            assert 304 == response.status
        async with session.get("/ce/v1/status") as response:
            said = await response.json()
            assert {"totals", "vos", "pilots", "schedds", "counted"} == set(said)


async def test_a_job_is_traced_through_an_entrypoint(condor: Condor) -> None:
    """
    condor_ce_trace ends with the output of its job, and at once with the reason where no route takes it.
    """
    said = await condor("condor_ce_trace", "-d", "-a", '+VO = "atlas"', "-a", "executable = /bin/echo")
    assert (0, "") == (said.status, said.err), said
    assert "- RouteName is Here\n" in said.out
    assert "routed\n" == said.out.partition("Job output:\n")[2].partition("- ")[0]
    said = await condor("condor_ce_trace", "-a", '+VO = "cms"')
    assert 1 == said.status
    assert 'no route takes it: Here: VO is "atlas" is false' in said.err
    said = await condor("condor_ce_trace", "-a", '+VO = "atlas"')
    assert (1, True) == (said.status, "ended with exit status 127" in said.err), said
    said = await condor("condor_ce_job_router_info", "-config")
    assert 'Name         : "Here"\n' in said.out
    said = await condor("condor_ce_verify_config")
    assert (0, "") == (said.status, said.err), said


async def test_commands_of_entrypoints_do_what_those_of_htcondor_do(condor: Condor, tmp_path: Path) -> None:
    """
    A job is submitted, seen, held, released and removed; one that was routed has the names of both jobs that HTCondor would have.
    """
    (file := tmp_path / "job.sub").write_text(
        "executable = /bin/echo\ntransfer_executable = false\n+VO = $(Vo)\nqueue\n"
    )

    async def done(command: str, *words: str) -> str:
        said = await condor(f"condor_ce_{command}", *words)
        assert 0 == said.status, said
        return said.out

    waits, routed = [
        (await done("submit", "-terse", f'Vo="{vo}"', str(file))).split()[0] for vo in ("cms", "atlas")
    ]
    for act, status in (("hold", "5"), ("release", "1")):
        await done(act, waits)
        assert status == (await done("q", waits, "-af", "JobStatus")).strip()
    await done("rm", waits)
    async with asyncio.timeout(PATIENCE_S):
        while not (ended := (await done("history", routed, "-af", *_NAMES)).split()):
            await asyncio.sleep(0.2)
    assert ["Here", routed, routed, "0"] == ended
    assert "schedd" in await done("status", "-schedd", "-af", "Name")
    assert "WRITE" in await done("ping", "WRITE")
    assert "JOBS ST Route" in await done("router_q", "-S")


_NAMES: Final = ("RouteName", "RoutedFromJobId", "RoutedToJobId", "ExitCode")


async def test_an_entrypoint_is_drained_and_resumed(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    What is submitted for a route is refused with the reason, and other jobs are not; a job that waits is told so, and is looked at again
    when it is over.
    """
    text = 'executable = /bin/true\ntransfer_executable = false\n+VO = "{vo}"\nqueue\n'
    submitted = await pool.client.submit(text.format(vo="cms"), cwd=tmp_path)
    job = JobId(submitted.cluster, 0)
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.follow(job)) as following:
        said = aiter(each.event async for each in following if isinstance(each.event, JobUnrouted))
        assert "Here: " in (await anext(said)).reason
        status, out, err = await pool.kettle("ce", "drain", "--reason", "new cooling")
        assert (0, "") == (status, err)
        assert "new cooling" in out
        reason = (await anext(said)).reason
        assert "ce.draining: " in reason
        assert "drains the entrypoint: new cooling" in reason
        explanation = (await pool.client.why(job)).explanation
        assert explanation is not None
        assert reason == explanation.reason
        with pytest.raises(CommandRefusedError, match="drains the entrypoint: new cooling") as refused:
            await pool.client.submit(text.format(vo="atlas"), cwd=tmp_path)
        assert RefusalCode.CE_DRAINING == refused.value.code
        status, out, err = await pool.kettle("ce", "resume")
        assert (0, "It takes jobs.\n", "") == (status, out, err)
        assert "Here: " in (await anext(said)).reason
    await pool.client.submit(text.format(vo="atlas"), cwd=tmp_path)
    await pool.client.remove(select(submitted.cluster))
