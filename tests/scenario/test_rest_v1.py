"""PROMINENCE's REST interface on a running pool, asked by people with tokens."""

import asyncio
import hashlib
import io
import json
import os
import signal
import socket
import tarfile
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from tests.integration.iam.issuer import TokenIssuer, signing_key, token_issuer

from kettle.embedded.ports import free_ports
from kettle.testing.commands.running import execute
from kettle.testing.container_images import busybox_root, tar_of
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool

from .client_environments import python_with
from .test_containers import WORKING

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]

PORT: Final = free_ports(1)[0]
ISSUER: Final = f"http://127.0.0.1:{PORT}"
KEY: Final = signing_key()
POOL: Final = "https://pool.example.org"
SERVICES: Final = ("collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "gateway")
RULES: Final = f"""
[[rules]]
when.issuer = "{ISSUER}"
when.subject = '/^([a-z0-9_-]+)$/'
owner = '\\1'
"""
WITHIN_S: Final = 60.0
needs_containers: Final = pytest.mark.skipif(
    not WORKING,
    reason="needs bubblewrap or, as root, runc, and busybox (Debian packages of these names; busybox-static)",
)
CLIENT: Final = "prominence==0.21.0"
RESOURCES: Final = {"cpus": 1, "memory": 0.1, "disk": 1}


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    rules = tmp_path_factory.mktemp("rules") / "rules.toml"
    rules.write_text(RULES)
    return {
        "settings": {
            "master": {"daemon_list": list(SERVICES)},
            "startd": {"container_runtimes": WORKING},
            "iam": {"issuers": {ISSUER: [POOL]}},
            "gateway": {
                "rest": True,
                "prominence": True,
                "issuers": {ISSUER: [POOL]},
                "request_burst": 1e6,
                "requests_per_second": 1e6,
            },
            "authorization": {"domain": "pool", "rules": str(rules)},
        }
    }


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[TokenIssuer]:
    async with token_issuer(ISSUER, socket.create_server(("127.0.0.1", PORT)), key=KEY) as made:
        yield made


class V1:
    """Asks as PROMINENCE's client does."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def ask(self, method: str, path: str, status: int = 200, **said: Any) -> Any:
        """The answer, which has this status: the value of its JSON, or its text."""
        async with self.session.request(method, f"/prominence/v1{path}", **said) as response:
            assert response.status == status, (response.status, await response.text())
            if response.content_type == "application/json":
                return await response.json()
            return await response.text()


def address(pool: ThrowawayPool) -> str:
    return f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"


@asynccontextmanager
async def client(pool: ThrowawayPool, token: str = "") -> AsyncGenerator[V1]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession(address(pool), headers=headers) as session:
        yield V1(session)


async def test_refusals_have_the_form_that_the_client_understands(
    pool: ThrowawayPool, issuer: TokenIssuer
) -> None:
    """
    Without a good token it is 401, at a wrong address 404, else 400, always with a sentence under `error`; health needs no token.
    """
    async with client(pool) as nobody:
        assert "error" in await nobody.ask("GET", "/kv?list", 401)
        assert "error" in await nobody.ask("GET", "/nowhere", 404)
        assert "" == await nobody.ask("GET", "/health", 204)
    async with client(pool, "no token at all") as nobody:
        assert "error" in await nobody.ask("GET", "/kv?list", 401)
    async with client(pool, issuer.token("ada", POOL)) as ada:
        assert "error" in await ada.ask("POST", "/kv/" + "k" * 513, 400, data=b"1")
        assert "error" in await ada.ask("PATCH", "/kv/a", 404)


async def test_values_are_ones_own_and_have_limits(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    A value has 16384 bytes at most, all of one person's together 512 KiB; nobody sees those of another, and keys of PROMINENCE's own
    parts are not listed.
    """
    async with client(pool, issuer.token("ada", POOL)) as ada, client(pool, issuer.token("bob", POOL)) as bob:
        await ada.ask("POST", "/kv/limits/most", 201, data=b"x" * 16_384)
        assert "16,384" in (await ada.ask("POST", "/kv/limits/more", 400, data=b"x" * 16_385))["error"]
        assert "x" * 16_384 == await ada.ask("GET", "/kv/limits/most")
        await bob.ask("POST", "/kv/limits/most", 201, data="b\u00f6b's")
        assert "b\u00f6b's" == await bob.ask("GET", "/kv/limits/most")
        assert {"error": "No such key"} == await bob.ask("GET", "/kv/limits/more", 404)
        await ada.ask("POST", "/kv/limits/_internal_/x", 201, data=b"1")
        assert ["/limits/most"] == await ada.ask("GET", "/kv/limits/?list")
        assert {"/limits/most": "b\u00f6b's"} == await bob.ask("GET", "/kv/limits/?list&values")
        for number in range(30):
            await ada.ask("POST", f"/kv/limits/{number}", 201, data=b"x" * 16_384)
        assert "together" in (await ada.ask("POST", "/kv/limits/30", 400, data=b"x" * 16_384))["error"]
        await ada.ask("DELETE", "/kv/limits/?prefix=True")
        assert [] == await ada.ask("GET", "/kv/limits/?list")
        assert ["/limits/most"] == await bob.ask("GET", "/kv/limits/?list")
        await bob.ask("DELETE", "/kv/limits/most")
        await bob.ask("DELETE", "/kv/limits/most")
        await ada.ask("GET", "/kv/limits/_internal_/x", 404)


async def test_one_of_fifty_wins(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    Of fifty programs that replace the same value at the same time one is told that it did, and the value is that one's.
    """
    async with client(pool, issuer.token("ada", POOL)) as ada:
        await ada.ask("POST", "/kv/race", 201, data=b"free")

        async def grab(number: int) -> int:
            sent = ada.session.post("/prominence/v1/kv/race?prev=free", data=f"{number}")
            async with sent as response:
                answer = await response.json()
                assert (response.status == 201) or answer == {"error": "Atomic replacement not successful"}
                return response.status

        statuses = await asyncio.gather(*map(grab, range(50)))
        assert 1 == statuses.count(201)
        assert str(statuses.index(201)) == await ada.ask("GET", "/kv/race")
        missing = await ada.ask("POST", "/kv/race/none?prev=", 400, data=b"1")
        assert {"error": "Atomic replacement not successful"} == missing


async def test_values_outlive_who_keeps_them(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """What was acknowledged is there after iam, gateway, database and bus were killed."""
    async with client(pool, issuer.token("ada", POOL)) as ada:
        await ada.ask("POST", "/kv/kept", 201, data=b"for good")
    killed = {name: pool.kill(name, signal.SIGKILL) for name in ("iam", "gateway", "postgres", "nats")}
    for name, number in killed.items():
        await pool.restarted(name, after=number)
    async with client(pool, issuer.token("ada", POOL)) as ada, asyncio.timeout(WITHIN_S):
        while (found := await _got(ada, "/kv/kept")) != (200, "for good"):
            assert 404 != found[0], found
            await asyncio.sleep(0.1)


async def _got(ada: V1, path: str) -> tuple[int, str]:
    async with ada.session.get(f"/prominence/v1{path}") as response:
        return response.status, await response.text()


async def test_files_are_sent_and_fetched_by_addresses(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    What is sent behind its digest is there under its name, whole or in parts, for who has an address; another digest or another name
    is refused and leaves nothing.
    """
    content = bytes(range(256)) * 10_000
    digest = hashlib.sha256(content).hexdigest()
    async with client(pool, issuer.token("ada", POOL)) as ada, client(pool) as anybody:
        made = await ada.ask("POST", "/data/upload", 201, json={"filename": "big.bin", "checksum": digest})

        async def send(fields: dict[str, str], body: bytes, url: str = made["url"]) -> tuple[int, str]:
            form = aiohttp.FormData(fields)
            form.add_field("file", io.BytesIO(body), filename="big.bin")
            async with anybody.session.post(url, data=form) as response:
                return response.status, await response.text()

        assert 400 == (await send(made["fields"], content[:-1]))[0]
        assert 400 == (await send({}, content))[0]
        assert 403 == (await send(made["fields"], content, made["url"].replace("of=ada", "of=bob")))[0]
        assert [] == await ada.ask("GET", "/data")
        assert (204, "") == await send(made["fields"], content)
        plain = await ada.ask("POST", "/data", 201, json={"filename": "small.txt"})
        async with anybody.session.put(plain["url"], data=b"small") as response:
            assert 201 == response.status
        async with anybody.session.get(plain["url"]) as response:
            assert 403 == response.status
        listed = await ada.ask("GET", "/data")
        assert [("big.bin", len(content)), ("small.txt", 5)] == [
            (each["name"], each["size"]) for each in listed
        ]
        await ada.ask("DELETE", "/data/small.txt", 204)
        await ada.ask("DELETE", "/data/small.txt", 400)
        await ada.ask("DELETE", "/data/big.bin", 204)


async def test_areas_of_groups_are_for_their_members(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    A member sends and sees what the group has; a group of which the name is a part, and nobody else, does not.
    """
    fusion = issuer.token("ada", POOL, groups=["fusion"])
    fus = issuer.token("bob", POOL, groups=["fus", "atom"])
    async with client(pool, fusion) as ada, client(pool, fus) as bob:
        made = await ada.ask("POST", "/data/upload", 201, json={"filename": "fusion/x", "checksum": None})
        async with bob.session.put(made["url"], data=b"1") as response:
            assert 201 == response.status
        assert ["fusion/x"] == [each["name"] for each in await ada.ask("GET", "/data/fusion")]
        for path in ("/data/fusion", "/data/fusion/x", "/data/usio"):
            assert "error" in await bob.ask("GET", path, 403)
        for name in ("fusion/x", "usio/x", "fus,atom/x"):
            assert "error" in await bob.ask("POST", "/data/upload", 403, json={"filename": name})
        await bob.ask("DELETE", "/data/fusion/x", 403)
        await ada.ask("DELETE", "/data/fusion/x", 204)
        for name, status in (("", 400), ("../x", 403), ("fusion/../../x" + "x" * 500, 400)):
            assert "error" in await ada.ask("POST", "/data/upload", status, json={"filename": name})


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
        wrong = await ada.ask("POST", "/jobs", 400, json={**job, "taks": []})
        assert "taks" in wrong["error"]
        for theirs in ("bob/secret", "fus/secret"):
            foreign = await ada.ask("POST", "/jobs", 400, json={**job, "artifacts": [{"url": theirs}]})
            assert theirs in foreign["error"]
        named = {**job, "name": "w"}
        cycle = {"jobs": [named], "dependencies": {"w": ["w"]}}
        assert "w" in (await ada.ask("POST", "/workflows", 400, json=cycle))["error"]
        assert (
            "not run workflows" in (await ada.ask("POST", "/workflows", 400, json={"jobs": [named]}))["error"]
        )
        assert [] == await ada.ask("GET", "/workflows?completed=true")
        assert "error" in await ada.ask("DELETE", "/workflows/1", 400)
        assert {} == await ada.ask("DELETE", f"/jobs?id={','.join(map(str, mine))}")
        assert "error" in await ada.ask("DELETE", "/jobs?id=999999999", 400)
        query = {"constraint": f"{label}=x.1", "completed": "true", "num": "1"}
        (gone,) = await ada.ask("GET", "/jobs", params=query)
        assert "deleted" == gone["status"]
        assert gone["id"] in mine


async def test_the_pool_says_what_it_has_and_what_was_used(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    Machines with what is free of them, usage by person and by group, and days that are none are refused.
    """
    async with client(pool, issuer.token("ada", POOL)) as ada:
        (machine,) = (await ada.ask("GET", "/resources"))["existing"]
        assert {"cpus": 2, "memory": 8} == machine["capacity"]
        assert {"usage": {"users": {}}} == await ada.ask("GET", "/accounting?start=2020-01-01&end=2020-01-31")
        groups = await ada.ask("GET", "/accounting?start=2020-01-01&end=2020-01-31&by_group=true")
        assert {"usage": {"groups": {}}} == groups
        assert "error" in await ada.ask("GET", "/accounting?start=2020-01-01&end=31", 400)
        assert "administrator" in (await ada.ask("POST", "/token", 403))["error"]


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
    made = await say("run", job("/bin/sh -c 'echo hello; echo made > made'", outputFiles=["made"]))
    number = made.strip().removeprefix("Job created with id ")
    assert "demo" in await say("list", "--all")
    found = await until(number, "completed")
    assert [0] == [each["exitCode"] for each in found["execution"]["tasks"]]
    assert "hello\n" in await say("stdout", number)
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
