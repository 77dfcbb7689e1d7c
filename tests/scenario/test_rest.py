"""The REST interface of a running pool, over real HTTP."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from yarl import URL

from kettle.client import prepare, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.master.domain.start_order import DAEMON_LIST
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.problem import Problem
from kettle_wire.rest.route import EVERYWHERE, Route

from .asking import patiently

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

HELD = 'executable = /bin/true\nhold = true\n+Colour = "green"\nenvironment = SECRET=1\nqueue 3\n'


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {
        "settings": {
            "gateway": {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6},
            "master": {"daemon_list": [*DAEMON_LIST, "iam", "scaler", "ce"]},
        }
    }


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
        said: dict[str, Any] = {"data": body} if isinstance(body, str) else {"json": body}
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
    async with aiohttp.ClientSession(address(pool), headers=headers, middlewares=(patiently,)) as session:
        yield Rest(session)


async def submitted(rest: Rest, text: str = HELD) -> tuple[int, str]:
    made = await rest.send("POST", "/v2/jobs", text)
    return made["cluster"], made["position"]


async def test_a_submission_happens_once_and_is_seen_by_who_names_its_position(rest: Rest) -> None:
    """
    What is submitted over HTTP is listed at once for who names its position; a repeat with its key submits nothing more.
    """
    key = {"Idempotency-Key": "once"}
    made = await rest.send("POST", "/v2/jobs", HELD, headers=key)
    assert made == await rest.send("POST", "/v2/jobs", HELD, headers=key)
    assert 3 == made["count"]
    other = await rest.send("POST", "/v2/jobs", HELD + "queue\n", 422, headers=key)
    assert "idempotency_key.reused" == other["code"]
    cluster = made["cluster"]
    query: dict[str, Any] = {"cluster": cluster, "fields": "Colour,Environment"}
    listed = await rest.get("/v2/jobs", at_least=made["position"], **query)
    assert [f"{cluster}.{proc}@schedd" for proc in (2, 1, 0)] == [job["id"] for job in listed["jobs"]]
    assert {"held"} == {job["state"] for job in listed["jobs"]}
    assert {"Colour": "green", "Environment": "SECRET=1"} == listed["jobs"][0]["attributes"]
    await rest.get("/v2/jobs", 304, {"If-None-Match": rest.headers["ETag"]}, **query)
    assert "Authorization, Cookie" == rest.headers["Vary"]


async def test_what_is_sent_as_json_is_submitted_too(rest: Rest, pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Jobs as attributes and rows become a cluster; a dry run submits nothing, and a row too short names its place.
    """
    jobs = prepare("executable = /bin/true\narguments = $(Item)\nqueue Item in 1, 2", cwd=tmp_path)
    body = msgspec.to_builtins({"ad": jobs.ad, "columns": jobs.columns, "rows": jobs.rows})
    _, position = await submitted(rest)  # what was removed before it is in the tables no more
    await rest.get("/v2/jobs", at_least=position, limit=1)
    before = await rest.get("/v2/clusters")
    assert 2 == (await rest.send("POST", "/v2/jobs?dry_run=1", body))["count"]
    assert before["clusters"] == (await rest.get("/v2/clusters"))["clusters"]
    wrong = await rest.send("POST", "/v2/jobs", {**body, "rows": [jobs.rows[0], []]}, 422)
    assert "/body/rows/1" == wrong["errors"][0]["pointer"]
    made = await rest.send("POST", "/v2/jobs", body)
    await pool.client.wait(select(made["cluster"]))
    _, later = await submitted(rest)
    past = await rest.get(
        "/v2/history",
        at_least=later,
        cluster=made["cluster"],
        sort="wall_time",
    )
    assert [{"completed"}, 2] == [{job["state"] for job in past["jobs"]}, len(past["jobs"])]
    one = await rest.get(f"/v2/jobs/{past['jobs'][0]['id']}", fields="Arguments,ExitCode")
    assert 0 == one["exit_code"] == one["attributes"]["ExitCode"]


async def test_jobs_without_requirements_run(rest: Rest, pool: ThrowawayPool) -> None:
    """Attributes that a program has made, with neither Requirements nor requests, are enough for a job."""
    ad = {"Cmd": "/bin/true", "Iwd": "/tmp", "TransferExecutable": False}
    made = await rest.send("POST", "/v2/jobs", {"ad": ad})
    await pool.client.wait(select(made["cluster"]))
    _, later = await submitted(rest)
    past = await rest.get("/v2/history", at_least=later, cluster=made["cluster"], fields="Requirements")
    assert ["completed"] == [job["state"] for job in past["jobs"]]
    assert "TARGET.Memory >= RequestMemory" in past["jobs"][0]["attributes"]["Requirements"]["expr"]


async def test_a_job_is_edited_as_soon_as_it_is_submitted(rest: Rest) -> None:
    """Nobody has to wait until the tables have a job to change it, or to be told that there is none."""
    change = {"attributes": {"JobPrio": 7}}
    for _ in range(5):
        cluster, _ = await submitted(rest)
        tried = await rest.send("PATCH", f"/v2/jobs/{cluster}.1?dry_run=1", change)
        assert {"outcomes": [], "count": 1} == tried
        edited = await rest.send("PATCH", f"/v2/jobs/{cluster}.0", change)
        assert ["done"] == [each["outcome"] for each in edited["outcomes"]]
        for query in ("", "?dry_run=1"):
            await rest.send("PATCH", f"/v2/jobs/{cluster}.9{query}", change, 404)


async def test_an_access_point_that_does_not_exist_is_named_at_once(rest: Rest) -> None:
    """Wherever a request that changes something names one, the refusal says where, and which was meant."""
    cluster, position = await submitted(rest)
    await rest.get(f"/v2/jobs/{cluster}.0", at_least=position)
    async with asyncio.timeout(PATIENCE_S):
        while not (await rest.get("/v2/submitters"))["ads"]:  # until the access point has told of itself
            await asyncio.sleep(0.1)
    change = {"attributes": {"JobPrio": 7}}
    for method, path, body, pointer in (
        ("POST", "/v2/jobs?schedd=schdd", {"ad": {"Cmd": "/bin/true"}}, "/query/schedd"),
        ("POST", "/v2/jobs:hold", {"filter": "true", "expect": 1, "schedd": "schdd"}, "/body/schedd"),
        ("POST", "/v2/jobs:hold", {"ids": ["1.0@schdd"]}, "/body/ids"),
        ("PATCH", "/v2/jobs/1.0@schdd", change, "/path/id"),
    ):
        refused = await rest.send(method, path, body, 404)
        assert [pointer] == [each["pointer"] for each in refused["errors"]]
        assert refused["detail"].endswith("did you mean schedd?")


async def test_filters_pages_and_groups_are_about_all_jobs(rest: Rest) -> None:
    """
    A filter, a page and a count see every job in the queue, and a page token belongs to its question alone.
    """
    cluster, position = await submitted(rest)
    one = await rest.get("/v2/jobs", cluster=cluster, at_least=position, limit=2)
    two = await rest.get("/v2/jobs", cluster=cluster, page=one["next"], limit=2)
    assert ([2, 1], [0]) == ([job["proc"] for job in one["jobs"]], [job["proc"] for job in two["jobs"]])
    assert "next" not in two
    mixed = await rest.get("/v2/jobs", 400, page=one["next"])
    assert "page.invalid" == mixed["code"]
    found = await rest.get("/v2/jobs", filter=f'MY.Colour == "green" && ProcId > 0 && ClusterId == {cluster}')
    assert [2, 1] == [job["proc"] for job in found["jobs"]]
    counted = await rest.get("/v2/jobs", cluster=cluster, group_by="state,cluster")
    assert [{"key": {"state": "held", "cluster": str(cluster), "schedd": "schedd"}, "count": 3}] == counted[
        "groups"
    ]
    same = await rest.get("/v2/jobs", filter=f"ClusterId == {cluster}", group_by="state")
    assert [{"key": {"state": "held"}, "count": 3}] == same["groups"]
    shown = await rest.get("/v2/clusters", cluster=cluster)
    assert {"held": 3} == shown["clusters"][0]["states"]


async def test_how_a_list_is_looked_for_is_told(rest: Rest) -> None:
    """
    What becomes of a filter in the tables, along which index they are read, and that the rest is tried on ads.
    """
    plan = (await rest.get("/v2/jobs", explain=1, filter="JobStatus == 5 && MY.Colour == 1"))["plan"]
    assert "status" in plan["condition"]
    assert plan["tried"]
    assert plan["rows"] >= 0
    assert any("live" in step for step in plan["steps"]), plan
    past = await rest.get("/v2/history", explain=1, owner="nobody")
    assert ["nobody"] == past["plan"]["values"]
    assert not past["plan"]["tried"]
    assert "jobs" not in past


async def test_actions_are_carried_out_only_on_as_many_jobs_as_are_meant(rest: Rest) -> None:
    """
    A filter with another count than expected does nothing; with the right one, and with ids, the jobs change.
    """
    cluster, position = await submitted(rest)
    body = {"filter": f"ClusterId == {cluster}", "expect": 2}
    assert "count" == (await rest.send("POST", "/v2/jobs:remove", body, 409))["code"]
    unsaid = await rest.send("POST", "/v2/jobs:remove", {"filter": "true"}, 422)
    assert "/body/expect" == unsaid["errors"][0]["pointer"]
    tried = await rest.send("POST", "/v2/jobs:remove?dry_run=1", {"filter": body["filter"]})
    assert {"outcomes": [], "count": 3} == tried
    job = f"/v2/jobs/{cluster}.0"
    await rest.get(job, at_least=position)
    seen = rest.headers["ETag"]
    edited = await rest.send("PATCH", job, {"attributes": {"JobPrio": 7}}, headers={"If-Match": seen})
    assert ["done"] == [each["outcome"] for each in edited["outcomes"]]
    late = await rest.send("PATCH", job, {"attributes": {"JobPrio": 8}}, 412, headers={"If-Match": seen})
    assert "changed" == late["code"]
    assert 7 == (await rest.get(job, at_least=edited["position"], fields="JobPrio"))["attributes"]["JobPrio"]
    gone = await rest.send("POST", "/v2/jobs:remove", {**body, "expect": 3, "reason": "over"})
    assert ["done"] * 3 == [each["outcome"] for each in gone["outcomes"]]
    left = await rest.get("/v2/history", cluster=cluster, at_least=gone["position"], group_by="state")
    assert [{"key": {"state": "removed"}, "count": 3}] == left["groups"]


async def test_the_pool_beside_its_jobs(rest: Rest) -> None:
    """Slots, machines and submitters are listed with the attributes that somebody wants."""
    async with asyncio.timeout(PATIENCE_S):
        while not (slots := await rest.get("/v2/slots", fields="Cpus,State", filter="Cpus > 0"))["ads"]:
            await asyncio.sleep(0.1)
    assert {"Cpus", "State"} <= slots["ads"][0]["attributes"].keys()
    machines = await rest.get("/v2/machines", limit=1)
    assert 1 == len(machines["ads"])
    await rest.get("/v2/submitters")


async def test_the_past_of_a_job_and_why_it_waits(rest: Rest) -> None:
    """
    What was recorded, the states with their times, the job as it was, and the reason are each a question.
    """
    cluster, position = await submitted(rest)
    job = f"/v2/jobs/{cluster}.0"
    await rest.get(job, at_least=position)
    assert "on hold" in (await rest.get(f"{job}/why"))["sentence"]
    released = await rest.send("POST", "/v2/jobs:remove", {"ids": [f"{cluster}.0"], "expect": 1})
    gone = await rest.get(job, at_least=released["position"])
    assert "removed" == gone["state"]
    *_, held, removed = (await rest.get(f"{job}/timeline"))["phases"]
    assert ("held", "removed") == (held["state"], removed["state"])
    assert "held" == (await rest.get(job, as_of=held["since"]))["state"]
    assert "it was removed" in (await rest.get(f"{job}/why", at=gone["left"]))["sentence"]
    records = await rest.get(f"{job}/history")
    assert "job.removed/1" in [each["type"] for each in records["events"]]
    early = await rest.get(job, 404, as_of="2020-01-01T00:00:00Z")
    assert "submitted later" in early["detail"]


async def test_events_are_followed_and_resumed_behind_the_last_one(rest: Rest) -> None:
    """A stream has the events of one's jobs with their places; who names the last place goes on behind it."""
    cluster, _ = await submitted(rest)
    first = await read_events(rest, cluster, {}, after=0)
    places = [place for place, _ in first]
    assert places == sorted(set(places))
    assert {f"{cluster}.0", f"{cluster}.1", f"{cluster}.2"} <= {event["subject"] for _, event in first}
    later = await read_events(rest, cluster, {"Last-Event-ID": str(places[0])})
    assert first[1:] == later


async def test_one_job_or_cluster_is_followed_and_what_changes_is_named(rest: Rest) -> None:
    """
    The events of one job are those of its cluster and its own; who shows a job is told when it has changed, no matter by whom.
    """
    cluster, _ = await submitted(rest)
    shown = {"job": f"{cluster}.1"}
    async with asyncio.timeout(PATIENCE_S):
        while 200 != (await head(rest, f"/v2/clusters/{cluster}/events", {})):
            await asyncio.sleep(0.1)
        async with rest.session.get("/v2/changes", params=shown) as changes:
            for proc in (0, 1):
                await rest.send("POST", "/v2/jobs:remove", {"ids": [f"{cluster}.{proc}"]})
            assert {"jobs": [f"{cluster}.1@schedd"]} == await next_event(changes)
        async with rest.session.get(f"/v2/jobs/{cluster}.1@schedd/events", params={"after": "0"}) as own:
            subjects: list[str] = []
            while "job.removed" not in (event := await next_event(own))["type"]:
                subjects.append(event["subject"])
            assert {f"cluster/{cluster}", f"{cluster}.1"} == {*subjects, event["subject"]}
    assert 404 == await head(rest, "/v2/clusters/99999/events", {})
    assert 404 == await head(rest, f"/v2/jobs/{cluster}.1@nobody/events", {})


async def head(rest: Rest, path: str, query: dict[str, str]) -> int:
    async with rest.session.get(path, params=query) as response:
        return response.status


async def next_event(response: aiohttp.ClientResponse) -> Any:
    assert response.status == 200, await response.text()
    async for line in response.content:
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))
    pytest.fail("the stream has ended")


async def test_a_job_is_tried_as_if_it_were_otherwise(rest: Rest) -> None:
    """
    How many slots could run a job that waits is answered as it is and as it would be; the job stays as it is.
    """
    text = "executable = /bin/true\nrequest_memory = 100TB\nqueue\n"
    cluster, position = await submitted(rest, text)
    job = f"/v2/jobs/{cluster}.0"
    await rest.get(job, at_least=position)
    change = {"attributes": {"RequestMemory": 16}}
    async with asyncio.timeout(PATIENCE_S):
        while True:  # until the negotiator has seen it
            async with rest.session.post(f"{job}/what-if", json=change) as response:
                said = await response.json(content_type=None)
                if response.status == 200:
                    break
                assert response.status in {409, 503}, said
            await asyncio.sleep(0.2)
    assert 0 == said["now"]["able"] < said["then"]["able"]
    assert "could run it" in said["sentence"]
    assert 16 != (await rest.get(job, fields="RequestMemory"))["attributes"]["RequestMemory"]
    wrong = {"attributes": {"Requirements": {"expr": "1 +"}}}
    refused = await rest.send("POST", f"{job}/what-if", wrong, 422)
    assert "/body/attributes/Requirements" == refused["errors"][0]["pointer"]
    await rest.send("POST", "/v2/jobs:remove", {"ids": [f"{cluster}.0"]})


async def read_events(
    rest: Rest, cluster: int, headers: dict[str, str], **query: Any
) -> list[tuple[int, dict[str, Any]]]:
    """The events of a cluster up to those of its last job."""
    found: list[tuple[int, dict[str, Any]]] = []
    async with (
        asyncio.timeout(PATIENCE_S),
        rest.session.get("/v2/events", params={"cluster": cluster, **query}, headers=headers) as response,
    ):
        assert "text/event-stream" == response.content_type
        place = 0
        async for line in response.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                place = int(value)
            elif name == "data":
                found.append((place, json.loads(value)))
                if found[-1][1]["subject"] == f"{cluster}.2":
                    break
    return found


async def test_refusals_say_what_where_and_what_is_nearest(rest: Rest, pool: ThrowawayPool) -> None:
    """Each refusal is a problem document with a stable code, a pointer, and the nearest known name."""
    unknown = await rest.get("/v2/jobs", 400, filter="JobStatsu > 5")
    assert ("attribute.unknown", "/query/filter") == (unknown["code"], unknown["errors"][0]["pointer"])
    assert "the nearest is JobStatus" in unknown["detail"]
    assert "the nearest is owner" in (await rest.get("/v2/jobs", 400, ownr="ada"))["detail"]
    assert "/query/limit" == (await rest.get("/v2/jobs", 400, limit=0))["errors"][0]["pointer"]
    assert "not_found" == (await rest.get("/v2/jobs/999999.0", 404))["code"]
    for raw in (
        "/v2/jobs/%FF.0",
        "/v2/jobs?owner=%FF",
        "/v2/jobs?filter=%FF%22",
        "/v2/slots?filter=%00",
        EARLIEST,
    ):
        async with rest.session.get(URL(raw, encoded=True)) as response:
            assert response.status in {200, 400}, await response.text()
    async with rest.session.get("/v2/jobs", headers={"Authorization": "Bearer \udcff"}) as response:
        assert 401 == response.status
    assert "method" == (await rest.send("POST", "/v2/slots", {}, 405))["code"]
    assert "body.type" == (await rest.send("POST", "/v2/jobs:hold", "text", 415))["code"]
    packed = {"Content-Encoding": "gzip"}
    assert "body.type" == (await rest.send("POST", "/v2/jobs", HELD, 415, headers=packed))["code"]
    async with aiohttp.ClientSession(address(pool)) as stranger:
        async with stranger.get("/v2/jobs") as response:
            assert 401 == response.status
            assert "application/problem+json" == response.content_type
            assert 'Bearer realm="kettle"' == response.headers["WWW-Authenticate"]
        async with stranger.get("/v2/jobs", headers={"Authorization": "Bearer guess"}) as response:
            assert "token.issuer_unknown" == (await response.json(content_type=None))["code"]
        async with stranger.get("/v2/jobs?token=secret") as response:
            assert "token.in_query" == (await response.json(content_type=None))["code"]


async def test_the_gateway_says_whether_it_can_answer(rest: Rest) -> None:
    """
    Health, metrics and the document of the interface are for everybody, and the tables are one of the checks.
    """
    assert {"alive": True} == await rest.get("/healthz")
    assert (await rest.get("/readyz"))["tables"] is True
    assert "3.1.0" == (await rest.get("/openapi.json"))["openapi"]


EARLIEST = "/v2/jobs?since=0001-01-01T00:00:00%2B14:00"
"""A time that is before the first one in the zone of the database."""
ODD = [*"""
0001-01-01T00:00:00+14:00|9999-12-31T23:59:59-14:00|0|1|-1|1.5|12.0|99999999999.0|1.0@schedd|1.0@nobody|true|null|ä|\0|%|a,b|'|2026-11-25T14:00:00Z|0001-01-01T00:00:00Z
|9999-12-31T23:59:59Z|schedd.schedd:1|x:1|JobStatus == 1|(|MY.x|idle|held,idle|owner|-submitted|wall_time
|ifThenElse(true,1,|regexp("(","")|
""".replace("\n", "").split("|"), "=" * 3000]  # fmt: skip


def values_of(route: Route, rng: random.Random) -> dict[str, str]:
    """For some parameters of a route what they may be, or anything."""
    found: dict[str, str] = {}
    for field in msgspec.structs.fields(route.parameters):
        if f"{{{field.name}}}" in route.path or rng.random() < 0.4:
            known = re.findall(r"Literal\[(.*?)\]", str(field.type))
            words = [each.strip(" '") for each in known[0].split(",")] if known else []
            found[field.name] = rng.choice(words) if words and rng.random() < 0.8 else rng.choice(ODD)
    return found


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_asked_the_answer_has_the_declared_form(rest: Rest, seed: int) -> None:
    """
    To any question that the table of routes allows, or nearly, the answer is the declared one or a declared refusal.
    """
    rng = random.Random(seed)
    await submitted(rest)
    for route in [route for route in ROUTES if route.method == "GET" and not route.stream] * 20:
        query = values_of(route, rng)
        query.pop("at_least", None)  # waits for what may never come
        path = route.path
        for name in re.findall(r"\{(\w+)\}", path):
            path = path.replace(f"{{{name}}}", quote(query.pop(name), safe="") or "-")
        async with rest.session.get(URL(path, encoded=True), params=query) as response:
            data = await response.read()
            said = (path, query, response.status, data[:500])
            if route.reply is None and response.status == 200:
                assert response.content_type == route.octets, said
                continue
            if response.status == 200 and response.content_type in route.others:
                continue
            assert response.content_type.endswith("json"), said
            if response.status == 200:
                msgspec.json.decode(data, type=route.reply)
            else:
                problem = msgspec.json.decode(data, type=Problem)
                assert problem.status == response.status, said
                assert response.status in {*EVERYWHERE, *route.errors} - {503}, said
                assert problem.code, said
                assert problem.detail, said
