"""A person's jobs in containers of docker and podman, with images of a registry, in a whole pool."""

import asyncio
import base64
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.testing.container_images import busybox_root, missing, tar_of
from kettle.testing.servers.container_engines import engine
from kettle.testing.servers.image_registry import ACCOUNT, PROGRAM, Registry, registry
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

from .published_by_containers import page_of
from .test_job_secrets import OURS, files, shown
from .test_rest_v1 import SERVICES, client
from .test_rest_v1_jobs import ended
from .test_rest_v1_workflows import ended as workflow_ended
from .test_rest_v1_workflows import own_token
from .test_tasks import ends, run, shell

WITHIN_S = 120.0
ENGINES = {"podman": ("podman", "podman"), "docker": ("dockerd", "docker.io")}
JOB = "executable = /bin/sh\ntransfer_executable = false\noutput = out\n"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module", params=ENGINES)
def name(request: pytest.FixtureRequest) -> str:
    if reason := missing(*ENGINES[request.param]):
        pytest.skip(reason)
    if os.geteuid() != 0:
        pytest.skip("the images of these tests are for a startd that is root")
    if not shutil.which(PROGRAM):
        pytest.skip(f"no registry of images (Debian package {PROGRAM})")
    return str(request.param)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """One of which the machine has no login."""
    with registry(tmp_path_factory.mktemp("closed")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(
    name: str,
    images: Registry,
    closed: Registry,
    tmp_path_factory: pytest.TempPathFactory,
    template: Path,
) -> AsyncIterator[ThrowawayPool]:
    directory = tmp_path_factory.mktemp("engines")
    registries = directory / "registries.conf"
    registries.write_text(
        "".join((each.logins.parent / "registries.conf").read_text() for each in (images, closed))
    )
    environ = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(registries)}
    with engine(name) as options:
        settings: dict[str, dict[str, Any]] = {
            "startd": {
                "container_runtimes": [name],
                "container_engine_options": {name: options},
                "container_auth_file": str(images.logins),
            },
            "gateway": {"rest": True, "prominence": True},
            "master": {"daemon_list": list(SERVICES)},
        }
        async with throwaway_pool(
            directory, cpus=2, template=template, settings=settings, environ=environ
        ) as running:
            yield running
        assert [] == running.left


async def held(pool: ThrowawayPool, cluster: int) -> Ad:
    """The job's ad when it is held."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            (ad,) = await pool.client.jobs(select(cluster))
            if ad["JobStatus"] == 5:
                return ad
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "wanted", ["universe = docker\ndocker_image = {}\n", "container_image = docker://{}\n"]
)
async def test_an_image_of_a_registry(
    pool: ThrowawayPool, images: Registry, tmp_path: Path, wanted: str
) -> None:
    """
    It is pulled with the login of the machine's owner; its variables and its search path are the job's; files come back.
    """
    root = busybox_root(tmp_path / "root")
    image = images.push("group/box:1", root, config={"Env": ["COLOUR=green", "PATH=/bin"], "User": "1234"})
    submitted = await pool.client.submit(
        wanted.format(image)
        + JOB
        + "arguments = \"-c 'cat /etc/image; echo $COLOUR; pwd > made'\"\nqueue 2\n",
        cwd=tmp_path,
    )
    async with asyncio.timeout(WITHIN_S):
        progress = await pool.client.wait(select(submitted.cluster))

    assert [0, 0] == [state.exit_code for state in progress.jobs.values()]
    assert "busybox\ngreen\n" == (tmp_path / "out").read_text()
    assert "/srv\n" == (tmp_path / "made").read_text()


@pytest.mark.parametrize("network", ["host", "none"])
async def test_a_service_in_a_container_is_reached(
    pool: ThrowawayPool, images: Registry, tmp_path: Path, network: str
) -> None:
    """
    A web server that listens in the container alone is read through the gateway, also in a network of its own.
    """
    image = images.push("group/web:1", busybox_root(tmp_path / "root"))
    assert "from inside\n" == await page_of(pool, f"container_image = docker://{image}", network, tmp_path)


async def test_tasks_have_images_of_a_registry(pool: ThrowawayPool, images: Registry, tmp_path: Path) -> None:
    """
    A task is what the entry point of its image does, beside a sidecar in another container; an image that the registry has not is the
    failure of its task.
    """
    root = busybox_root(tmp_path / "root")
    image = "docker://" + images.push(
        "group/entry:1", root, config={"Entrypoint": ["/bin/sh", "-c", "echo entry"]}
    )
    tasks = {
        "ignore_failures": True,
        "tasks": [
            shell("touch beside; while :; do sleep 0.05; done", type="sidecar", image=image),
            {"image": image},
            {"image": f"docker://{images.host}/group/none:1"},
            shell("until test -e beside; do sleep 0.02; done; cat /etc/image; pwd", image=image),
        ],
    }
    completed, steps = await run(pool, tmp_path, tasks)

    assert 1 == completed.exit.code
    assert "entry\nbusybox\n/home/user\n" == (tmp_path / "out").read_text()
    assert [("task", 1, "done"), ("task", 2, "failed"), ("task", 3, "done"), ("sidecar", 0, "done")] == [
        (kind, task, outcome) for kind, task, _, outcome, _ in ends(steps)
    ]
    assert ["done", "cached", "failed", "cached"] == [step.outcome for step in steps if step.kind == "pull"]


async def test_what_the_registry_has_not_holds_the_job(
    pool: ThrowawayPool, images: Registry, tmp_path: Path
) -> None:
    """Hold code 35 with the name of the image, and no word of how the machine logs in."""
    submitted = await pool.client.submit(
        f'universe = docker\ndocker_image = {images.host}/group/none:1\n{JOB}arguments = "-c true"\nqueue\n',
        cwd=tmp_path,
    )
    ad = await held(pool, submitted.cluster)

    assert 35 == ad["HoldReasonCode"]
    assert f"has no image {images.host}/group/none:1" in str(ad["HoldReason"])
    assert ACCOUNT.partition(":")[2] not in str(ad)
    await pool.client.remove(select(submitted.cluster))


async def test_a_registry_that_is_away_holds_nobody(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The job is tried again, and says meanwhile why it could not start."""
    submitted = await pool.client.submit(
        f'universe = docker\ndocker_image = 127.0.0.1:9/a:1\n{JOB}arguments = "-c true"\nlog = log\nqueue\n',
        cwd=tmp_path,
    )
    async with asyncio.timeout(WITHIN_S):
        while True:
            (ad,) = await pool.client.jobs(select(submitted.cluster))
            assert 5 != ad["JobStatus"], ad
            if "cannot be pulled" in str(ad.get("VacateReason", "")):
                break
            await asyncio.sleep(0.05)

    assert 1021 == ad["VacateReasonCode"]
    await pool.client.remove(select(submitted.cluster))


async def test_an_image_is_pulled_with_the_login_of_its_job_and_for_nobody_else(
    pool: ThrowawayPool, closed: Registry, tmp_path: Path
) -> None:
    """
    A document brings it once, and a copy of the job has it; who shows none, or a wrong one, does not get an image that is there already.
    The secret is nowhere: not in events, ads, tables and logs of the pool.
    """
    image = closed.push("group/box:1", busybox_root(tmp_path / "root"))
    user, _, secret = ACCOUNT.partition(":")

    def document(credential: dict[str, str] | None) -> dict[str, Any]:
        task = {
            "image": image,
            "runtime": "udocker",
            "cmd": "/bin/sh -c 'ls -A . $_CONDOR_CREDS; cat /etc/image'",
        }
        shown = {"imagePullCredential": credential} if credential else {}
        return {"resources": {"cpus": 1, "memory": 0.1, "disk": 1}, "tasks": [task | shown]}

    async with client(pool, own_token(pool)) as ada:
        before = await ada.ask("POST", "/jobs", 400, json=document({"username": user, "token": "***"}))
        assert f"no imagePullCredential of {user} at {closed.host} is stored" in before["error"]
        given = document({"username": user, "token": secret})
        number = (await ada.ask("POST", "/jobs", 201, json=given))["id"]
        found = await ended(ada, number)
        assert ("completed", 0) == (found["status"], found["exitCode"]), found
        assert "***" == found["tasks"][0]["imagePullCredential"]["token"]
        said = await ada.ask("GET", f"/jobs/{number}/stdout")
        assert ["busybox"] == [line for line in said.split() if "cred" in line or line == "busybox"]
        copied = (await ada.ask("PUT", f"/jobs/{number}/clone", 201))["id"]
        assert "completed" == (await ended(ada, copied))["status"]
        for credential in (None, {"username": "eve", "token": "guessed"}):
            other = (await ada.ask("POST", "/jobs", 201, json=document(credential)))["id"]
            failed = await ended(ada, other)
            assert "failed" == failed["status"], failed
            assert "does not give the image" in failed["statusReason"]
    login = base64.b64encode(ACCOUNT.encode()).decode()
    for name, text in {
        **await shown(pool, [JobId(number, 0)]),
        **{n: d.decode("latin-1") for n, d in files(pool)},
    }.items():
        if not name.startswith(OURS):
            assert secret not in text, name
            assert login not in text, name


@pytest_asyncio.fixture(loop_scope="module")
async def with_dagman(
    name: str, closed: Registry, tmp_path_factory: pytest.TempPathFactory, template: Path
) -> AsyncIterator[ThrowawayPool]:
    """
    One whose jobs run as we do: the process of a DAG job is this Python, which an account of a slot may not reach here.
    """
    directory = tmp_path_factory.mktemp("workflows")
    environ = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(closed.logins.parent / "registries.conf")}
    with engine(name) as options:
        settings: dict[str, dict[str, Any]] = {
            "startd": {
                "container_runtimes": [name],
                "container_engine_options": {name: options},
                "job_account": "own",
            },
            "gateway": {"rest": True, "prominence": True},
            "master": {"daemon_list": [*SERVICES, "dagman"]},
        }
        async with throwaway_pool(
            directory, cpus=2, template=template, settings=settings, environ=environ
        ) as running:
            yield running
        assert [] == running.left


@pytest.mark.skipif(
    "KETTLE_TEST_LONG" not in os.environ,
    reason="it takes minutes: a pool and an engine of its own (KETTLE_TEST_LONG=1 waits)",
)
async def test_jobs_of_a_workflow_are_pulled_for_with_its_login(
    with_dagman: ThrowawayPool, closed: Registry, tmp_path: Path
) -> None:
    """
    Each that names it: one brings it, one means it by `***`, after the other; one that has none gets no image. The workflow shows
    nothing of it.
    """
    image = closed.push("group/flow:1", busybox_root(tmp_path / "root"))
    user, _, secret = ACCOUNT.partition(":")

    def job(name: str, token: str) -> dict[str, Any]:
        login = {"imagePullCredential": {"username": user, "token": token}} if token else {}
        task = {"image": image, "runtime": "udocker", "cmd": "/bin/cat /etc/image", **login}
        return {"name": name, "resources": {"cpus": 1, "memory": 0.1, "disk": 1}, "tasks": [task]}

    document = {
        "name": "w",
        "jobs": [job("one", secret), job("two", "***"), job("none", "")],
        "dependencies": {"one": ["two"], "two": ["none"]},
    }
    async with client(with_dagman, own_token(with_dagman)) as ada:
        number = (await ada.ask("POST", "/workflows", 201, json=document))["id"]
        found = await workflow_ended(ada, number)
        assert {"total": 3, "done": 2, "failed": 1, "queued": 0, "waiting": 0} == found["progress"], found
        for name in ("one", "two"):
            assert "busybox\n" == await ada.ask("GET", f"/workflows/{number}/{name}/stdout")
        assert secret not in str(found)
    for path, text in files(with_dagman):
        if not path.startswith(OURS):
            assert secret.encode() not in text, path


async def test_an_archive_comes_along(pool: ThrowawayPool, tmp_path: Path) -> None:
    """What is sent as a file runs as an image of the engine too."""
    (tmp_path / "box.tar").write_bytes(tar_of(busybox_root(tmp_path / "root")))
    submitted = await pool.client.submit(
        f"universe = container\ncontainer_image = box.tar\n{JOB}arguments = \"-c 'cat /etc/image'\"\nqueue\n",
        cwd=tmp_path,
    )
    async with asyncio.timeout(WITHIN_S):
        await pool.client.wait(select(submitted.cluster))

    assert "busybox\n" == (tmp_path / "out").read_text()
