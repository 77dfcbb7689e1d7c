"""Jobs and workflows of PROMINENCE on a running pool, also by its own client."""

import asyncio
import io
import json
import os
import tarfile
import time
from pathlib import Path
from typing import Any, Final

import pytest
from tests.integration.iam.issuer import TokenIssuer

from kettle.testing.commands.running import execute
from kettle.testing.container_images import busybox_root, tar_of
from kettle.testing.throwaway_pool import ThrowawayPool

from .client_environments import python_with
from .test_containers import WORKING
from .test_rest_v1 import POOL, V1, WITHIN_S, address, client, configuration, issuer, pytestmark

__all__ = ["configuration", "issuer", "pytestmark"]

needs_containers: Final = pytest.mark.skipif(
    not WORKING,
    reason="needs bubblewrap or, as root, runc, and busybox (Debian packages of these names; busybox-static)",
)
CLIENT: Final = "prominence==0.21.0"
RESOURCES: Final = {"cpus": 1, "memory": 0.1, "disk": 1}


async def ended(ada: V1, job: int) -> dict[str, Any]:
    """A job as it is described when it has ended."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            (found,) = await ada.ask("GET", f"/jobs/{job}")
            if found["status"] not in {"idle", "running"}:
                return dict(found)
            await asyncio.sleep(0.1)


async def sent(ada: V1, name: str, content: bytes) -> str:
    """The name of something that somebody has uploaded."""
    made = await ada.ask("POST", "/data/upload", 201, json={"filename": name})
    async with ada.session.put(made["url"], data=io.BytesIO(content)) as response:
        assert 201 == response.status
    return name


@needs_containers
async def test_a_job_runs_with_what_was_uploaded_and_sends_what_it_makes(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str, tmp_path: Path
) -> None:
    """
    Its image and its artifact are uploads, its input comes with the document; it is listed as soon as it is submitted, described with
    its tasks, and its results are fetched at the addresses that the description has.
    """
    async with client(pool, issuer.token(another, POOL)) as ada, client(pool) as anybody:
        image = await sent(ada, "busybox.tar", tar_of(busybox_root(tmp_path / "root")))
        artifact = await sent(ada, "data of ada", b"data\n")
        job = {
            "name": "first try",
            "labels": {"app": "demo.1"},
            "resources": RESOURCES,
            "inputs": [{"filename": "words", "content": "YgphCg=="}],
            "artifacts": [{"url": artifact}],
            "tasks": [
                {
                    "image": image,
                    "runtime": "udocker",
                    "cmd": "/bin/sh -c 'cat words; echo $WHO; cat data*; mkdir d; cp words d/w'",
                    "env": {"WHO": "it's $me"},
                },
                {"image": image, "runtime": "udocker", "cmd": "/bin/sh -c 'echo two > made'"},
            ],
            "outputFiles": ["made"],
            "outputDirs": ["d"],
        }
        number = (await ada.ask("POST", "/jobs", 201, json=job))["id"]
        (listed,) = await ada.ask("GET", f"/jobs?id={number}")
        assert (number, "first try") == (listed["id"], listed["name"])
        found = await ended(ada, number)
        assert ("completed", 0) == (found["status"], found["exitCode"]), found
        assert "b\na\nit's $me\ndata\n" == await ada.ask("GET", f"/jobs/{number}/stdout")
        assert "it's $me\ndata\n" == await ada.ask("GET", f"/jobs/{number}/stdout?offset=4&node=0")
        assert "" == await ada.ask("GET", f"/jobs/{number}/stderr?node=0&offset=0")
        assert [0, 0] == [each["exitCode"] for each in found["execution"]["tasks"]]
        (made,), (packed,) = found["outputFiles"], found["outputDirs"]
        async with anybody.session.get(made["url"], headers={"Range": "bytes=1-2"}) as response:
            assert (206, b"wo") == (response.status, await response.read())
        async with anybody.session.get(packed["url"]) as response, asyncio.timeout(WITHIN_S):
            with tarfile.open(fileobj=io.BytesIO(await response.read())) as archive:
                assert "d/w" in archive.getnames()
        assert {} == await ada.ask("PUT", f"/jobs/{number}/remove")
        (left,) = await ada.ask("GET", "/jobs?completed=true&num=1")
        assert (number, "completed") == (left["id"], left["status"])


@needs_containers
async def test_somebody_goes_into_a_running_job(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str, tmp_path: Path
) -> None:
    """
    A command runs beside it, a copy is taken of what it has, and nobody else may; deleted, it has ended, and is copied as a new job.
    """
    async with (
        client(pool, issuer.token(another, POOL)) as ada,
        client(pool, issuer.token("eve", POOL)) as eve,
    ):
        image = await sent(ada, "busybox.tar", tar_of(busybox_root(tmp_path / "root")))
        script = "/bin/sh -c 'echo half > made; sleep 600'"
        job = {"resources": RESOURCES, "tasks": [{"image": image, "runtime": "udocker", "cmd": script}]}
        number = (await ada.ask("POST", "/jobs", 201, json=job))["id"]
        async with asyncio.timeout(WITHIN_S):
            while True:
                path = f"/prominence/v1/jobs/{number}/exec?command=cat,made"
                async with ada.session.post(path) as response:
                    if (response.status, await response.text()) == (200, "half\n"):
                        break
                await asyncio.sleep(0.1)
        assert "error" in await ada.ask("PUT", f"/jobs/{number}/snapshot?path=../x", 400)
        assert "error" in await ada.ask("PUT", f"/jobs/{number}/snapshot?path=none", 400)
        assert "error" in await ada.ask("GET", f"/jobs/{number}/snapshot", 400)
        await ada.ask("PUT", f"/jobs/{number}/snapshot?path=made")
        taken = await ada.ask("GET", f"/jobs/{number}/snapshot")
        async with eve.session.get(taken["url"]) as response:
            with tarfile.open(fileobj=io.BytesIO(await response.read())) as archive:
                assert ["made"] == archive.getnames()
        assert "error" in await ada.ask("PUT", f"/jobs/{number}/remove", 400)

        assert [] == await eve.ask("GET", f"/jobs/{number}")
        for method, rest in (
            ("DELETE", ""),
            ("POST", "/exec?command=id"),
            ("PUT", "/snapshot?path=made"),
            ("GET", "/snapshot"),
            ("GET", "/stdout"),
            ("PUT", "/clone"),
            ("PUT", "/remove"),
        ):
            async with eve.session.request(method, f"/prominence/v1/jobs/{number}{rest}") as response:
                assert response.status in {400, 403}, (method, rest, await response.text())
                assert "error" in await response.json()

        copied = (await ada.ask("PUT", f"/jobs/{number}/clone", 201))["id"]
        assert {} == await ada.ask("DELETE", f"/jobs?id={number},{copied}")
        found = await ended(ada, number)
        assert ("deleted", "Job deleted by user") == (found["status"], found["statusReason"])
        assert number < copied
        assert "deleted" == (await ended(ada, copied))["status"]


async def test_lists_are_asked_for_by_label_name_and_state(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str
) -> None:
    """Whatever is in the name or the label that somebody looks for is compared, and never evaluated."""
    label = f"l{another.replace('-', '')}"
    async with client(pool, issuer.token(another, POOL)) as ada:
        task = {"image": "nobody/has:this", "runtime": "singularity"}
        job = {"name": "a b", "labels": {label: "x.1"}, "resources": RESOURCES, "tasks": [task]}
        mine = [(await ada.ask("POST", "/jobs", 201, json=job))["id"] for _ in range(2)]

        async def found(**query: str) -> list[int]:
            return [each["id"] for each in await ada.ask("GET", "/jobs", params=query)]

        assert mine == await found(constraint=f"{label}=x.1")
        assert mine == await found(constraint=f"{label}=x.1", name="a b", status="idle")
        assert [] == await found(constraint=f"{label}=x.1", status="running")
        assert [] == await found(constraint=f"{label}=x.1", completed="true", num="5")
        assert mine == await found(id=",".join(map(str, mine)))
        for value in ('x" || true || "', "x.1 || true", 'a" is "a'):
            assert [] == await found(constraint=f"{label}={value}".replace("==", "is"))
            assert [] == await found(name=value)
        assert "error" in await ada.ask("GET", "/jobs", 400, params={"constraint": f"true || {label}=1"})
        assert "error" in await ada.ask("GET", "/jobs?status=foo")
        wrong = await ada.ask("POST", "/jobs", 400, json={**job, "tasklist": []})
        assert "tasklist" in wrong["error"]
        long = await ada.ask("POST", "/jobs", 400, json={**job, "outputFiles": ["x" * 300]})
        assert "characters" in long["error"]
        for theirs in ("bob/secret", "fus/secret"):
            foreign = await ada.ask("POST", "/jobs", 400, json={**job, "artifacts": [{"url": theirs}]})
            assert theirs in foreign["error"]
        assert {} == await ada.ask("DELETE", f"/jobs?id={','.join(map(str, mine))}")
        assert "error" in await ada.ask("DELETE", "/jobs?id=999999999", 400)
        query = {"constraint": f"{label}=x.1", "completed": "true", "num": "1"}
        (gone,) = await ada.ask("GET", "/jobs", params=query)
        assert "deleted" == gone["status"]
        assert gone["id"] in mine


async def test_a_workflow_is_a_group_of_jobs(pool: ThrowawayPool, issuer: TokenIssuer, another: str) -> None:
    """
    Its jobs and the instances of its factories are submitted together, listed as members, copied with their files, and deleted together;
    what needs a process on the access point is refused to who has no account there that the pool serves.
    """
    async with client(pool, issuer.token(another, POOL)) as ada:
        task = {"image": "nobody/has:this", "runtime": "singularity", "cmd": "echo $x"}
        jobs: list[dict[str, Any]] = [
            {"name": name, "resources": RESOURCES, "tasks": [task]} for name in ("a", "sweep")
        ]
        jobs[0]["policies"] = {"priority": 1, "maximumRetries": 1, "maximumTimeInQueue": 60}
        jobs[0]["inputs"] = [{"filename": "words", "content": "YQo="}]
        factory = {
            "name": "f",
            "type": "zip",
            "jobs": ["sweep"],
            "parameters": [{"name": "x", "values": ["1", 'a"b']}],
        }
        workflow = {"name": "w", "labels": {"kind": "test"}, "jobs": jobs, "factories": [factory]}
        number = (await ada.ask("POST", "/workflows", 201, json=workflow))["id"]
        (found,) = await ada.ask("GET", f"/workflows/{number}")
        assert ("w", "idle") == (found["name"], found["status"])
        assert {"total": 3, "done": 0, "failed": 0, "queued": 3, "waiting": 0} == found["progress"]
        assert [factory] == found["factories"]
        members = await ada.ask("GET", f"/jobs?workflow=true&id={number}")
        shown = [(each["name"], each.get("parameters")) for each in members]
        assert [("w/a", None), ("w/sweep/0", {"x": "1"}), ("w/sweep/1", {"x": 'a"b'})] == shown
        (second,) = await ada.ask("GET", f"/jobs/{members[1]['id']}")
        assert "w/sweep/0" == second["name"]
        query = {"name": "w", "constraint": "kind=test"}
        assert [number] == [each["id"] for each in await ada.ask("GET", "/workflows", params=query)]
        assert [] == await ada.ask("GET", "/workflows", params={"name": 'w" || true || "'})
        assert "error" in await ada.ask("GET", f"/workflows/{number}/none/stdout", 400)
        assert "error" in await ada.ask("PUT", f"/workflows/{number}/remove", 400)
        assert "error" in await ada.ask("PUT", f"/workflows/{number}", 400)
        async with client(pool, issuer.token("eve", POOL)) as eve:
            assert [] == await eve.ask("GET", f"/workflows/{number}")
            for method, rest in (("DELETE", ""), ("PUT", "/clone"), ("GET", "/a/stdout")):
                assert "error" in await eve.ask(method, f"/workflows/{number}{rest}", 400)
        again = (await ada.ask("PUT", f"/workflows/{number}/clone", 201))["id"]
        copied = (await ada.ask("PUT", f"/workflows/{again}/clone", 201))["id"]
        assert {} == await ada.ask(
            "DELETE", f"/workflows/{again}"
        )  # nobody else may, so that the next test has no jobs
        await ada.ask("DELETE", f"/jobs/{members[0]['id']}")
        (found,) = await ada.ask("GET", f"/workflows/{number}")
        assert (1, 2) == (found["progress"]["failed"], found["progress"]["queued"])
        assert {} == await ada.ask("DELETE", f"/workflows?id={number},{copied}")
        ended = await ada.ask("GET", f"/workflows?completed=true&id={number},{copied}")
        assert [(number, "deleted"), (copied, "deleted")] == [(each["id"], each["status"]) for each in ended]
        newest = await ada.ask("GET", "/workflows?completed=true&num=3")
        assert sorted([number, again, copied]) == sorted(each["id"] for each in newest)

        waits = {**workflow, "dependencies": {"a": ["sweep"]}}
        assert "account" in (await ada.ask("POST", "/workflows", 400, json=waits))["error"]
        cycle = {**workflow, "dependencies": {"a": ["a"]}}
        assert "a" in (await ada.ask("POST", "/workflows", 400, json=cycle))["error"]
        many = {**workflow, "factories": [{"name": "f", "type": "repeat", "jobs": ["sweep"], "number": 1000}]}
        assert "account" in (await ada.ask("POST", "/workflows", 400, json=many))["error"]


async def prominence_of(tmp_path: Path) -> str:
    """The stock client, in an environment of its own."""
    python = await python_with([CLIENT], "prominence", tmp_path)
    return str(Path(python).parent / "prominence")


@needs_containers
async def test_the_stock_client_does_what_its_users_do(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str, tmp_path: Path
) -> None:
    """
    Unmodified, it uploads, runs, lists, describes, prints, downloads, goes into a job, keeps values, copies, deletes and tells usage.
    """
    program = await prominence_of(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    (work / "busybox.tar").write_bytes(tar_of(busybox_root(tmp_path / "root")))
    environ = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "PROMINENCE_TOKEN": issuer.token(another, POOL),
        "PROMINENCE_URL": f"{address(pool)}/prominence/v1",
    }

    async def say(*words: str, status: int = 0) -> str:
        said = await execute([program, *words], work, environ, within_s=WITHIN_S)
        assert status == said.status, (words, said)
        return said.out

    def job(cmd: str, **more: Any) -> str:
        task = {"image": "busybox.tar", "cmd": cmd}
        document = {"name": "demo", "resources": RESOURCES, "tasks": [task], **more}
        (work / "job.json").write_text(json.dumps(document))
        return "job.json"

    async def until(number: str, status: str) -> dict[str, Any]:
        async with asyncio.timeout(WITHIN_S):
            while True:
                found: dict[str, Any] = json.loads(await say("describe", "job", number))
                if found["status"] == status:
                    return found

    assert "Success" in await say("upload", "--name", "busybox.tar", "--filename", "busybox.tar")
    assert "busybox.tar" in await say("ls")
    made = await say(
        "run", job("/bin/sh -c 'echo hello; echo oops >&2; echo made > made'", outputFiles=["made"])
    )
    number = made.strip().removeprefix("Job created with id ")
    assert "demo" in await say("list", "--all")
    found = await until(number, "completed")
    assert [0] == [each["exitCode"] for each in found["execution"]["tasks"]]
    assert "hello\n" in await say("stdout", number)
    assert "oops\n" in await say("stderr", number)
    assert "demo" in await say("list", "--completed")
    await say("download", "job", number)
    assert "made\n" == (work / "made").read_text()
    assert "removed" in await say("remove", "job", number)
    running = (await say("run", job("/bin/sh -c 'echo half > made; sleep 600'"))).split()[-1]
    await until(running, "running")
    assert "busybox" in await say("exec", running, "cat /etc/image")
    await say("snapshot", running, "made")
    with tarfile.open(work / "snapshot.tgz") as archive:
        assert ["made"] == archive.getnames()
    copied = (await say("clone", "job", running)).split()[-1]
    for each in (running, copied):
        assert "Success" in await say("delete", "job", each)
        await until(each, "deleted")
    await say("kv", "set", "colour", "blue")
    assert "blue\n" == await say("kv", "get", "colour")
    assert "/colour\n" == await say("kv", "list")
    await say("kv", "delete", "colour")
    assert "No such key" in await say("kv", "get", "colour", status=1)
    assert "Free" in await say("resources")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert "" == await say("usage", "2020-01-01", "2020-01-02")
    assert another in await say("usage", "2020-01-01", today)
    assert "Success" in await say("rm", "busybox.tar")
