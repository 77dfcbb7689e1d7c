"""A worker for jobs in containers, by each runtime in its turn."""

import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import msgspec
import pytest

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


@pytest.fixture
def settings(
    settings: StartdSettings, runtime: str, options: dict[str, list[str]], directory: Path
) -> StartdSettings:
    (directory / "node").touch()
    return msgspec.structs.replace(
        settings,
        container_runtimes=(runtime,),
        container_engine_options=options,
        container_images_mib=64,
        machine_resources={"gpus": ["GPU-a"]},
        container_devices=[str(directory / "node")],
        polling_interval=0.1,
        activity_delay=0.01,
        want_suspend=True,
        suspend="TARGET.Pause =?= true && TotalJobSuspendTime =?= undefined",
        continue_="time() - EnteredCurrentActivity >= 6",
    )


@pytest.fixture
def image(directory: Path, runtime: str) -> Path:
    """A root file system on the worker, readable for all; as an archive where it has to be one."""
    root = busybox_root(directory / "image")
    if runtime not in ENGINES:
        return root
    archive = directory / "image.tar"
    archive.write_bytes(tar_of(root))
    return archive


@pytest.fixture
async def submitter(pool: WorkerPool) -> AsyncGenerator[SubmitSide]:
    async with pool.startd() as startd:
        yield pool.submitter
        await startd.drain()
    assert [] == list(pool.execute.glob("dir_*"))
