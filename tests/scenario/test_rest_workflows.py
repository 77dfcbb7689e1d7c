"""The REST interface of a running pool, about workflows: one DAG is looked at from all sides, and removed."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from kettle.testing.container_images import busybox_root, tar_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .asking import patiently
from .condor import Condor
from .evidence import Evidence
from .test_containers import WORKING
from .test_rest_v1 import V1
from .test_rest_v1_jobs import RESOURCES, needs_containers, sent
from .waiting import WORKFLOW_S

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

NODE = """\
JOB {name} {{
    executable = /bin/sh
    arguments = "-c '{command}'"
    transfer_executable = false
    request_memory = 16
    request_disk = 1024
    queue
}}
"""
COMMANDS = {"A": "true", "B": "sleep 1000", "C": "exit 3", "D": "true"}
DAG = "".join(NODE.format(name=name, command=command) for name, command in COMMANDS.items()) + (
    "PARENT A CHILD B C\nPARENT B C CHILD D\nRETRY C 1\nCATEGORY B slow\nMAXJOBS slow 5\n"
)
YAML = """\
name: w
jobs:
- name: fit
  tasks: [{image: busybox, runtime: singularity}]
  resources: {cpus: 1, memory: 1, disk: 1, nodes: 1, walltime: 10}
factories:
- {type: repeat, name: r, jobs: [fit], number: 4}
"""
CYCLE = (
    "JOB A a.sub\nJOB B {\nexecutable = /bin/true\n}\nPARENT A CHILD B\nPARENT B CHILD A\nPARENT A CHILD Bx\n"
)


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    # The process of a DAG job is this Python, which an account of a slot may not reach.
    gateway = {"rest": True, "prominence": True, "request_burst": 1e6, "requests_per_second": 1e6}
    startd = {"job_account": "own", "container_runtimes": WORKING}
    return {"settings": {"gateway": gateway, "startd": startd}}


class Rest:
    """Asks, as the account that the pool runs as."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def ask(self, method: str, path: str, status: int = 200, **said: Any) -> Any:
        """The answer, which has this status."""
        async with self.session.request(method, f"/v2/workflows{path}", **said) as response:
            assert response.status == status, (response.status, await response.text())
            return await (response.json() if response.content_type.endswith("json") else response.text())

    async def until(self, says: Callable[[Any], bool], path: str) -> Any:
        """The first answer that says so: what a workflow comes to comes when it comes."""
        async with asyncio.timeout(WORKFLOW_S):
            while True:
                async with self.session.get(f"/v2/workflows{path}") as response:
                    answer = await response.json(content_type=None)
                    assert response.status in {200, 404}, answer  # it may not have begun
                if response.status == 200 and says(answer):
                    return answer
                await asyncio.sleep(0.05)

    async def events(self, path: str, wanted: int, **headers: str) -> list[tuple[int, str]]:
        """The first so many events of a stream, with their data."""
        found: list[tuple[int, str]] = []
        async with (
            asyncio.timeout(PATIENCE_S),
            self.session.get(f"/v2/workflows{path}", headers=headers) as response,
        ):
            async for line in response.content:
                if line.startswith(b"id: "):
                    found.append((int(line[4:]), ""))
                elif line.startswith(b"data: ") and found:
                    found[-1] = (found[-1][0], line[6:].decode())
                    if len(found) == wanted:
                        break
        return found


@pytest_asyncio.fixture
async def rest(pool: ThrowawayPool) -> AsyncIterator[Rest]:
    token = (pool.home / "gateway" / "token").read_text().strip()
    port = (pool.home / "gateway" / "port").read_text()
    headers = {"Authorization": f"Bearer {token}"}
    address = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,)) as session:
        yield Rest(session)


@pytest.fixture
def work(condor: Condor) -> Path:
    condor.environ["PATH"] += f":{Path(sys.executable).parent}"
    return condor.work


async def test_a_workflow_is_watched_slowed_down_and_removed(
    rest: Rest, pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    Counts, nodes with all attempts, reasons, graph, time line and events of one DAG agree; its limits are changed, it is halted, goes
    on, and is removed.
    """
    (work / "watched.dag").write_text(DAG)
    said = await condor("condor_submit_dag", "watched.dag")
    assert 0 == said.status, said
    (line,) = [line for line in said.out.splitlines() if "submitted to cluster" in line]
    one = f"/{line.rpartition(' ')[2].rstrip('.')}@schedd"
    expected = {"done": 1, "running": 1, "failed": 1, "futile": 1}
    shown = await rest.until(lambda said: said.get("counts") == expected, one)
    assert ("running", 4, {"slow": 5}) == (shown["state"], shown["nodes"], shown["limits"]["categories"])
    assert {"idle": 0, "running": 1, "held": 0} == shown["jobs"]

    await looked_at(rest, one, shown)
    await changed(rest, one, pool)


async def looked_at(rest: Rest, one: str, shown: Any) -> None:
    """Counts, nodes, reasons, graph, time line and events agree."""
    [failed] = (await rest.ask("GET", f"{one}/nodes?state=failed"))["nodes"]
    assert ("C", "exit code 3", [0, 1]) == (
        failed["name"],
        failed["reason"],
        [each["attempt"] for each in failed["attempts"]],
    )
    assert [3, 3] == [job["value"] for each in failed["attempts"] for job in each["jobs"]]
    first = await rest.ask("GET", f"{one}/nodes?limit=3")
    rest_of = await rest.ask("GET", f"{one}/nodes?limit=3&page={first['next']}")
    assert ["A", "B", "C", "D"] == [each["name"] for each in first["nodes"] + rest_of["nodes"]]
    assert ("next" in rest_of, rest_of["count"]) == (False, 4)
    await rest.ask("GET", f"{one}/nodes?page={first['next']}&name=A", 400)
    assert 2 == (await rest.ask("GET", f"{one}/nodes?name=?&state=running,futile"))["count"]

    graph = await rest.ask("GET", f"{one}/graph")
    assert [{"running": 1}, {"failed": 1}] == [each["states"] for each in graph["figures"][1:3]]
    assert {(0, 1), (0, 2), (1, 3), (2, 3)} == {(each["parent"], each["child"]) for each in graph["arrows"]}
    assert (await rest.ask("GET", f"{one}/graph?format=svg")).count("<g>") == 4
    assert "f0 -> f1" in await rest.ask("GET", f"{one}/graph?format=dot&fold=none")

    why = await rest.ask("GET", f"{one}/why?node=D")
    assert "It can never run, because C has failed." in why["sentences"]
    assert "did you mean" in (await rest.ask("GET", f"{one}/why?node=DD", 404))["detail"]

    times = await rest.ask("GET", f"{one}/timeline")
    assert ["A", "B", "C", "C", "D"] == [each["node"] for each in times["lines"]]
    last = times["lines"][1]["phases"][-1]
    assert ("running", False) == (last["what"], "until" in last)
    assert times["seconds"]["running"] > 0

    events = await rest.events(f"{one}/events?after=0", shown["events"])
    assert [*range(1, shown["events"] + 1)] == [number for number, _ in events]
    assert '"node":"C","state":"failed","attempt":1,"value":3' in "".join(data for _, data in events)
    again = await rest.events(f"{one}/events", 1, **{"Last-Event-ID": str(shown["events"] - 1)})
    assert events[-1:] == again


async def changed(rest: Rest, one: str, pool: ThrowawayPool) -> None:
    """Limits, halt, removal."""
    await rest.ask("PATCH", one, 422, json={})
    assert (
        "did you mean slow" in (await rest.ask("PATCH", one, 422, json={"categories": {"slw": 2}}))["detail"]
    )
    await rest.ask("PATCH", one, json={"max_jobs": 7, "categories": {"slow": 2}, "priority": 3})
    slow = await rest.until(lambda said: said["limits"]["max_jobs"] == 7, one)
    assert {"slow": 2} == slow["limits"]["categories"]
    await rest.ask("POST", f"{one}/halt", json={"reason": "lunch"})
    assert "lunch" == (await rest.until(lambda said: said["state"] == "halted", one))["reason"]
    await rest.ask("POST", f"{one}/resume", json={})
    await rest.until(lambda said: said["state"] == "running", one)
    number = one[1:].partition("@")[0]
    assert 0 == (await pool.kettle("dag", "halt", number, "--reason", "again"))[0]
    assert "again" == (await rest.until(lambda said: said["state"] == "halted", one))["reason"]
    assert "is halted: again." in (await pool.kettle("dag", "show", number)).out
    assert 0 == (await pool.kettle("dag", "resume", number))[0]
    await rest.until(lambda said: said["state"] == "running", one)

    listed = await rest.until(lambda said: said["workflows"], "?name=WATCHED.dag&state=running&limit=1")
    assert one[1:] == listed["workflows"][0]["id"]
    assert "is not over" in (await rest.ask("POST", f"{one}/rerun", 409))["detail"]
    told = await rest.ask("DELETE", f"{one}?reason=enough")
    removed = await rest.until(lambda said: said["state"] == "removed", one)
    assert "enough" in removed["reason"]
    await rest.ask("POST", f"{one}/halt", 409, json={})
    refused = await rest.ask("POST", f"{one}/rerun", 409)
    assert f"kettle dag rerun {number}" in refused["detail"]
    past = f"?state=removed&name=watched&at_least={told['position']}"
    listed = await rest.until(lambda said: one[1:] in [each["id"] for each in said["workflows"]], past)
    assert any("enough" in each["reason"] for each in listed["workflows"])
    await rest.ask("GET", "/12345678@schedd", 404)
    await rest.ask("GET", "/1@nowhere", 404)


async def test_what_is_sent_is_looked_at_and_all_faults_are_told(rest: Rest) -> None:
    """
    A DAG file, a document of PROMINENCE and an instance of WfFormat are measured; what is wrong has its line, or its pointer.
    """

    async def look(kind: str, body: Any, status: int = 200) -> Any:
        said = {"data": body, "headers": {"Content-Type": "text/plain"}} if kind == "dag" else {"json": body}
        return await rest.ask("POST", "?dry_run=1", status, **said)

    found = await look("dag", DAG)
    assert ("dag", 4, 3, 2) == (found["kind"], found["nodes"], found["height"], found["width"])
    refused = await look("dag", CYCLE, 422)
    assert {"workflow.dag:1", "workflow.dag:7"} == {each["pointer"] for each in refused["errors"]}
    assert "A -> B -> A" in " ".join(each["detail"] for each in refused["errors"])
    assert "did you mean B" in " ".join(each["detail"] for each in refused["errors"])

    job: dict[str, Any] = {"name": "fit", "tasks": [{"image": "busybox", "runtime": "singularity"}]}
    job["resources"] = {"cpus": 1, "memory": 1, "disk": 1, "nodes": 1, "walltime": 10}
    sweep = {"type": "repeat", "name": "r", "jobs": ["fit"], "number": 4}
    found = await look("json", {"name": "w", "jobs": [job], "factories": [sweep]})
    assert ("prominence", 1, 4, 4, 600.0) == (
        found["kind"],
        found["jobs"],
        found["nodes"],
        found["width"],
        found["seconds"],
    )
    as_yaml = {"Content-Type": "application/yaml"}
    found = await rest.ask("POST", "?dry_run=1", data=YAML, headers=as_yaml)
    assert ("prominence", 4) == (found["kind"], found["nodes"])
    refused = await rest.ask("POST", "?dry_run=1", 422, data="a: &a [x]\nb: *a\n", headers=as_yaml)
    assert "line 1: &a is an anchor" in refused["detail"]
    many = {
        "name": "w",
        "jobs": [job, job],
        "factories": [sweep | {"number": 10**8}],
        "dependencies": {"fit": ["fitt"]},
    }
    pointers = {each["pointer"] for each in (await look("json", many, 422))["errors"]}
    assert {"/body/jobs/1/name", "/body/factories/0/number", "/body/dependencies/fit"} <= pointers
    task: dict[str, Any] = {"name": "a", "id": "a", "parents": [], "children": []}
    instance: dict[str, Any] = {
        "name": "i",
        "schemaVersion": "1.5",
        "workflow": {"specification": {"tasks": [task]}},
    }
    assert "wfformat" == (await look("json", instance))["kind"]
    await look("json", {"name": "nothing"}, 422)


async def test_a_workflow_is_submitted_as_text(rest: Rest, evidence: Evidence) -> None:
    """
    A DAG file whose nodes have their descriptions runs in the name of who sends it, once for each key, and again without what is done:
    what that has left is there; what it lacks is refused before.
    """
    go = evidence.directory / "go"
    text = (
        NODE.format(name="A", command="echo of A > left")
        + NODE.format(name="B", command=f"test -e {go} && cat left > {evidence.directory}/seen").replace(
            "    request_memory", "    transfer_input_files = left\n    request_memory"
        )
        + "PARENT A CHILD B\n"
    )
    headers = {"Content-Type": "text/plain", "Idempotency-Key": "one"}
    made = await rest.ask("POST", "?name=sent", 201, data=text, headers=headers)
    assert made == await rest.ask("POST", "?name=sent", 201, data=text, headers=headers)
    assert ("dag", 2, 2) == (made["kind"], made["nodes"], made["height"])
    ended = await rest.until(lambda said: "ended" in said and "exit_code" in said, f"/{made['id']}")
    assert ("failed", 1, {"done": 1, "failed": 1}) == (ended["state"], ended["exit_code"], ended["counts"])
    await rest.until(
        lambda said: made["id"] in [each["id"] for each in said["workflows"]], "?state=failed&name=sent"
    )
    again = f"/{made['id']}/rerun"
    assert {"done": 1, "count": 1, "runs": ["B"]} == await rest.ask("POST", f"{again}?dry_run=1")
    assert ["A", "B"] == (await rest.ask("POST", f"{again}?from=A&dry_run=1"))["runs"]
    assert "no node X" in (await rest.ask("POST", f"{again}?only=X", 422))["detail"]
    go.touch()
    key = {"Idempotency-Key": "again"}
    new = await rest.ask("POST", f"{again}?name=again", 201, headers=key)
    assert new == await rest.ask("POST", f"{again}?name=again", 201, headers=key)
    ended = await rest.until(lambda said: "ended" in said and "exit_code" in said, f"/{new['id']}")
    assert ("done", 0, {"done": 2}) == (ended["state"], ended["exit_code"], ended["counts"])
    assert "of A\n" == (evidence.directory / "seen").read_text()
    await rest.until(
        lambda said: new["id"] in [each["id"] for each in said["workflows"]], "?state=done&name=again"
    )
    assert 0 == (await rest.ask("POST", f"/{new['id']}/rerun"))["count"]
    lacking = text + "JOB C c.sub\nSCRIPT POST A post.sh\n"
    refused = await rest.ask("POST", "", 422, data=lacking, headers={"Content-Type": "text/plain"})
    assert 2 == len(refused["errors"])
    await rest.ask("POST", "", 415, data=text, headers={"Content-Type": "text/x-dag"})


@needs_containers
async def test_a_document_of_prominence_is_submitted(rest: Rest, tmp_path: Path) -> None:
    """
    A document of PROMINENCE runs to its end in the name of who sends it, once for each key; its nodes and what they write are asked for
    as those of every workflow.
    """
    ada = V1(rest.session)
    image = await sent(ada, "busybox.tar", tar_of(busybox_root(tmp_path / "root")))

    def job(name: str, script: str) -> dict[str, Any]:
        task = {"image": image, "runtime": "udocker", "cmd": f"/bin/sh -c '{script}'"}
        return {"name": name, "resources": RESOURCES, "tasks": [task]}

    parameters = [{"name": "x", "start": 1, "end": 2, "step": 1}]
    document = {
        "name": "squares",
        "jobs": [job("square", "echo $(($x * $x))"), job("report", "echo all")],
        "dependencies": {"square": ["report"]},
        "factories": [{"name": "f", "type": "parameterSweep", "jobs": ["square"], "parameters": parameters}],
    }
    headers = {"Idempotency-Key": "squares"}
    made = await rest.ask("POST", "", 201, json=document, headers=headers)
    assert made == await rest.ask("POST", "", 201, json=document, headers=headers)
    assert ("prominence", 2, 3, 2) == (made["kind"], made["jobs"], made["nodes"], made["height"])
    ended = await rest.until(lambda said: "ended" in said and "exit_code" in said, f"/{made['id']}")
    assert ("done", 0, {"done": 3}) == (ended["state"], ended["exit_code"], ended["counts"])
    nodes = (await rest.ask("GET", f"/{made['id']}/nodes"))["nodes"]
    jobs = {each["name"]: each["attempts"][0]["jobs"] for each in nodes}
    assert {"square/0", "square/1", "report"} == set(jobs)
    assert all([0] == [each["value"] for each in of_node] for of_node in jobs.values())
    ids = (
        "?state=done&name=squares"  # the tables, by which what was written is found, are told a moment later
    )
    await rest.until(lambda said: made["id"] in [each["id"] for each in said["workflows"]], ids)
    number = made["id"].partition("@")[0]
    assert "4\n" == await ada.ask("GET", f"/workflows/{number}/square/1/stdout")
    new = await rest.ask("POST", f"/{made['id']}/rerun?only=report", 201)
    assert (2, ["report"]) == (new["done"], new["runs"])
    ended = await rest.until(lambda said: "ended" in said, f"/{new['id']}")
    assert ("done", {"done": 3}) == (ended["state"], ended["counts"])
