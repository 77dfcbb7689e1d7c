"""Workflows of PROMINENCE whose jobs wait for each other, on a running pool."""

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from kettle.testing.commands.running import execute
from kettle.testing.container_images import busybox_root, tar_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .test_rest_v1 import SERVICES, V1, address, client, issuer, pytestmark
from .test_rest_v1 import configuration as without_dagman
from .test_rest_v1_jobs import RESOURCES, needs_containers, prominence_of, sent
from .test_tutorials import follow
from .waiting import WORKFLOW_S

__all__ = ["issuer", "pytestmark", "without_dagman"]

LIFETIME_S: Final = 9


@pytest.fixture(scope="module")
def configuration(without_dagman: dict[str, Any]) -> dict[str, Any]:
    """The process of a DAG job is this Python, which an account of a slot may not reach."""
    settings = without_dagman["settings"]
    more = {
        "master": {"daemon_list": [*SERVICES, "dagman"]},
        "startd": {**settings["startd"], "job_account": "own"},
        "iam": {**settings["iam"], "job_token_lifetime": LIFETIME_S, "job_token_scopes": ["condor:/READ"]},
    }
    return {**without_dagman, "settings": {**settings, **more}}


def own_token(pool: ThrowawayPool) -> str:
    """With which the account comes that the pool runs as."""
    return (pool.home / "gateway" / "token").read_text().strip()


async def ended(ada: V1, workflow: int) -> dict[str, Any]:
    """A workflow as it is described when it has ended."""
    async with asyncio.timeout(WORKFLOW_S):
        while True:
            (found,) = await ada.ask("GET", f"/workflows/{workflow}")
            if found["status"] not in {"idle", "running"}:
                return dict(found)
            await asyncio.sleep(0.2)


@needs_containers
async def test_a_workflow_runs_again_from_where_it_has_failed(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A factory waits for a job, and another job for all instances. When one of them fails, the rest can be run again, and what is done is
    not; a copy has the input files, too, and is deleted with its jobs.
    """
    async with client(pool, own_token(pool)) as ada:
        image = await sent(ada, "busybox.tar", tar_of(busybox_root(tmp_path / "root")))
        await sent(ada, "flag", b"exit 1\n")

        def job(name: str, script: str, **more: Any) -> dict[str, Any]:
            task = {"image": image, "runtime": "udocker", "cmd": f"/bin/sh -c '{script}'"}
            return {"name": name, "resources": RESOURCES, "tasks": [task], **more}

        workflow = {
            "name": "w",
            "jobs": [
                job("first", "cat words", inputs=[{"filename": "words", "content": "YgphCg=="}]),
                job("sweep", "echo $x; test $x != 0.5 || . ./flag", artifacts=[{"url": "flag"}]),
                job("last", "echo last > made", outputFiles=["made"]),
            ],
            "dependencies": {"first": ["sweep"], "sweep": ["last"]},
            "factories": [{
                "name": "f",
                "type": "parameterSweep",
                "jobs": ["sweep"],
                "parameters": [{"name": "x", "start": 0, "end": 1, "step": 0.5}],
            }],
        }  # fmt: skip
        number = (await ada.ask("POST", "/workflows", 201, json=workflow))["id"]
        found = await ended(ada, number)
        assert ("failed", "One or more jobs failed") == (found["status"], found["statusReason"])
        assert {"total": 5, "done": 3, "failed": 1, "queued": 0, "waiting": 1} == found["progress"]
        assert workflow["factories"] == found["factories"]
        assert "error" in await ada.ask("GET", f"/workflows/{number}/last/stdout", 400)

        await sent(ada, "flag", b"exit 0\n")
        again = (await ada.ask("PUT", f"/workflows/{number}"))["id"]
        found = await ended(ada, again)
        assert "completed" == found["status"], found
        assert {"total": 5, "done": 5, "failed": 0, "queued": 0, "waiting": 0} == found["progress"]
        assert "b\na\n" == await ada.ask("GET", f"/workflows/{again}/first/stdout")
        assert "0.5\n" == await ada.ask("GET", f"/workflows/{again}/sweep/1/stdout")
        members = await ada.ask("GET", f"/jobs?workflow=true&id={again}&all=true&detail=true")
        sweep = [f"w/sweep/{index}" for index in range(3)]
        assert sorted(["w/first", *sweep, "w/sweep/1", "w/last"]) == sorted(each["name"] for each in members)
        (made,) = members[-1]["outputFiles"]
        async with ada.session.get(made["url"]) as response:
            assert b"last\n" == await response.read()
        assert "error" in await ada.ask("PUT", f"/workflows/{again}", 400)

        copied = (await ada.ask("PUT", f"/workflows/{again}/clone", 201))["id"]
        assert {} == await ada.ask("DELETE", f"/workflows/{copied}")
        assert "deleted" == (await ended(ada, copied))["status"]
        for each in (number, again):
            assert {} == await ada.ask("PUT", f"/workflows/{each}/remove")


@needs_containers
async def test_the_tutorial_works_as_it_stands(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Every command of it ends well, and prints what the page shows."""
    await follow("prominence", pool, tmp_path)


@needs_containers
async def test_the_stock_client_runs_workflows(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Unmodified, it runs one whose jobs wait for each other, lists and describes it, prints, runs it again, copies and deletes it.
    """
    program = await prominence_of(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    (work / "busybox.tar").write_bytes(tar_of(busybox_root(tmp_path / "root")))
    environ = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "PROMINENCE_TOKEN": (await pool.kettle("token", "create")).out.strip(),
        "PROMINENCE_URL": f"{address(pool)}/prominence/v1",
    }

    async def say(*words: str) -> str:
        said = await execute([program, *words], work, environ, within_s=PATIENCE_S)
        assert 0 == said.status, (words, said)
        return said.out

    async def until(number: str, *statuses: str) -> dict[str, Any]:
        async with asyncio.timeout(WORKFLOW_S):
            while True:
                found: dict[str, Any] = json.loads(await say("describe", "workflow", number))
                if found["status"] in statuses:
                    return found

    def flag(says: str) -> tuple[str, ...]:
        (work / "flag").write_text(f"{says}\n")
        return "upload", "--name", "flag", "--filename", "flag"

    def job(name: str, script: str, **more: Any) -> dict[str, Any]:
        task = {"image": "busybox.tar", "runtime": "udocker", "cmd": f"/bin/sh -c '{script}'"}
        return {"name": name, "resources": RESOURCES, "tasks": [task], **more}

    document = {
        "name": "chain",
        "jobs": [job("one", "echo one"), job("two", ". ./flag; echo two", artifacts=[{"url": "flag"}])],
        "dependencies": {"one": ["two"]},
    }
    (work / "workflow.json").write_text(json.dumps(document))
    await say("upload", "--name", "busybox.tar", "--filename", "busybox.tar")
    await say(*flag("exit 3"))
    number = (await say("run", "workflow.json")).strip().removeprefix("Workflow created with id ")
    found = await until(number, "failed", "completed")
    assert ("failed", 1) == (found["status"], found["progress"]["failed"])
    assert "chain" in await say("list", "workflows", "--all")
    assert "chain/one" in await say("list", "jobs", number, "--all")
    await say(*flag("true"))
    again = (await say("rerun", number)).split()[-1]
    await until(again, "completed")
    assert "one\n" in await say("stdout", again, "one")
    assert "two\n" in await say("stdout", again, "two")
    copied = (await say("clone", "workflow", again)).split()[-1]
    assert "Success" in await say("delete", "workflow", copied)
    await until(copied, "deleted")
    assert "removed" in await say("remove", "workflow", again)


async def state_of(session: aiohttp.ClientSession, workflow: str) -> str:
    """With what a workflow has ended."""
    async with asyncio.timeout(WORKFLOW_S):
        while True:
            async with session.get(f"/v2/workflows/{workflow}") as response:
                told = await response.json(content_type=None)
            if "ended" in told:
                return str(told["state"])
            await asyncio.sleep(0.05)


NODE: Final = """\
JOB A {
executable = /bin/true
transfer_executable = false
request_memory = 16
request_disk = 1024
queue
}
"""


async def test_a_workflow_that_comes_by_a_token_runs_nothing_on_the_access_point(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Its process runs, and its nodes do; scripts, and jobs of the local universe, are for the account itself, which has them as before.
    """
    shown = (await pool.kettle("token", "create")).out.strip()
    local = {"Cmd": "/bin/true", "JobUniverse": 12, "Iwd": str(tmp_path), "TransferExecutable": False}
    script = f"{NODE}SCRIPT PRE A /bin/true\n"

    async def sent_as(session: aiohttp.ClientSession, text: str) -> tuple[int, Any]:
        kind = {"Content-Type": "text/plain"}
        async with session.post("/v2/workflows", data=text, headers=kind) as response:
            return response.status, await response.json(content_type=None)

    async with client(pool, shown) as by_token, client(pool, own_token(pool)) as account:
        status, made = await sent_as(by_token.session, NODE)
        assert (201, "done") == (status, await state_of(by_token.session, made["id"])), made
        status, refused = await sent_as(by_token.session, script)
        assert (422, True) == (status, "scripts of node A would run on the access" in refused["detail"])
        async with by_token.session.post("/v2/jobs", json={"ad": local}) as response:
            told = await response.json(content_type=None)
        assert (403, True) == (response.status, "does not let you run jobs of the local" in told["detail"])
        status, made = await sent_as(account.session, script)
        assert (201, "done") == (status, await state_of(account.session, made["id"])), made
        async with account.session.post("/v2/jobs", json={"ad": local}) as response:
            assert 200 == response.status, await response.text()


RENEWED: Final = """\
JOB A renewed.sub
JOB B renewed.sub
SUBMIT-DESCRIPTION renewed.sub {{
executable = /bin/sh
arguments = "-c 'cat $BEARER_TOKEN_FILE > {place}/$(JOB).1; while cmp -s $BEARER_TOKEN_FILE {place}/$(JOB).1; do sleep 0.1; done; \
cat $BEARER_TOKEN_FILE > {place}/$(JOB).2'"
transfer_executable = false
request_memory = 16
request_disk = 1024
use_oauth_services = kettle
queue
}}
"""


async def test_nodes_have_tokens_of_their_owner_that_are_renewed_while_they_run(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """Each node of a workflow that came by a token has its own, for its job alone."""
    owner, shown = pool.client.pool.user, (await pool.kettle("token", "create")).out.strip()
    place = tmp_path / "tokens"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    async with client(pool, shown) as ada:
        kind = {"Content-Type": "text/plain"}
        async with ada.session.post(
            "/v2/workflows", data=RENEWED.format(place=place), headers=kind
        ) as response:
            made = await response.json(content_type=None)
            assert 201 == response.status, made
        assert "done" == await state_of(ada.session, made["id"])
    claims: dict[str, dict[str, Any]] = {}
    for path in place.iterdir():
        _, body, _ = path.read_text().strip().split(".")
        claims[path.name] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert {"A.1", "A.2", "B.1", "B.2"} == claims.keys()
    assert {(owner, "condor:/READ")} == {(each["sub"], each["scope"]) for each in claims.values()}
    assert 4 == len({each["jti"] for each in claims.values()})
    for node in "AB":
        first, second = claims[f"{node}.1"], claims[f"{node}.2"]
        assert first["kettle_session"] == second["kettle_session"]
        assert first["iat"] < second["iat"]
    assert claims["A.1"]["kettle_session"] != claims["B.1"]["kettle_session"]
