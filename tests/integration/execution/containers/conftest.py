"""A worker for jobs in containers, by each runtime in its turn."""

import os
import subprocess
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from tests.integration.execution.workers import open_directory, worker_pool, worker_settings

from kettle.testing.container_images import busybox_root, missing, tar_of
from kettle.testing.servers.container_engines import engine
from kettle.testing.submit_side import SubmitSide
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings

from .wanted import ENGINES

RUNTIMES = {
    "bubblewrap": ("bwrap", "bubblewrap"),
    "runc": ("runc", "runc"),
    "crun": ("crun", "crun"),
    "podman": ("podman", "podman"),
    "docker": ("dockerd", "docker.io"),
}


@pytest.fixture(scope="module", params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if why := missing(*RUNTIMES[name]):
        pytest.skip(why)
    if name not in {"bubblewrap", "podman"} and os.geteuid() != 0:
        pytest.skip(f"{name} takes a startd that is root")
    return name


@pytest.fixture(scope="module")
def options(runtime: str) -> Iterator[dict[str, list[str]]]:
    """Where an engine of these tests alone is."""
    if runtime not in ENGINES:
        yield {}
        return
    with engine(runtime) as found:
        yield {runtime: found}


def _with_containers(home: Path, runtime: str, options: dict[str, list[str]]) -> StartdSettings:
    (home / "node").touch()
    return msgspec.structs.replace(
        worker_settings(home),
        container_runtimes=(runtime,),
        container_engine_options=options,
        container_images_mib=64,
        machine_resources={"gpus": ["GPU-a"]},
        container_devices=[str(home / "node")],
        polling_interval=0.1,
        activity_delay=0.01,
        want_suspend=True,
        # Again and again: a suspension that is over before the container is made is not reported.
        suspend="TARGET.Pause =?= true && (TotalJobSuspendTime ?: 0) < 60",
        continue_="time() - EnteredCurrentActivity >= 2",
    )


@pytest.fixture
def settings(directory: Path, runtime: str, options: dict[str, list[str]]) -> StartdSettings:
    """Settings of a startd of the test's own."""
    return _with_containers(directory, runtime, options)


@pytest_asyncio.fixture(loop_scope="module")
async def pool(settings: StartdSettings) -> AsyncGenerator[WorkerPool]:
    """For tests that have startds of their own."""
    async with worker_pool(settings) as made:
        yield made


@pytest.fixture(scope="module")
def place() -> Generator[Path]:
    with open_directory() as directory:
        path = directory / "shared"
        (path / "below").mkdir(parents=True)
        path.chmod(0o777)
        if os.geteuid() == 0:
            below = path / "below"
            subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", below], check=True)
        try:
            yield path
        finally:
            if os.geteuid() == 0:
                subprocess.run(["/bin/umount", path / "below"], check=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing(runtime: str, options: dict[str, list[str]], place: Path) -> AsyncGenerator[WorkerPool]:
    """
    A worker for all other tests of a module: trying a runtime is most of the start of a startd, and takes seconds.
    """
    with open_directory() as home:
        settings = msgspec.structs.replace(
            _with_containers(home, runtime, options), container_bind=[f"{place}:/site", f"{place}:/open:rw"]
        )
        async with worker_pool(settings) as made, made.startd() as startd:
            yield made
            await startd.drain()


@pytest.fixture
def shared(place: Path) -> Iterator[Path]:
    """
    The directory that the standing worker's owner shows to all jobs, read-only as /site and writable as /open: everybody may
    write there, and another file system is mounted below it.
    """
    yield place
    for path in place.iterdir():
        if path.name != "below":
            path.unlink()


@pytest.fixture
def image(directory: Path, runtime: str) -> Path:
    """A root file system on the worker, readable for all; as an archive where it has to be one."""
    root = busybox_root(directory / "image")
    if runtime not in ENGINES:
        return root
    archive = directory / "image.tar"
    archive.write_bytes(tar_of(root))
    return archive


@pytest_asyncio.fixture(loop_scope="module")
async def submitter(standing: WorkerPool) -> AsyncGenerator[SubmitSide]:
    """The submit side of the standing worker; a test leaves it without claims, sandboxes and reports."""
    yield standing.submitter
    await standing.until(lambda: not list(standing.execute.glob("dir_*")))
    await standing.submitter.settle()
    await standing.until(lambda: not list(standing.reports.glob("*")))
