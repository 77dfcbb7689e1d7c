"""
Jobs in containers: what they see, and that everything which holds for a plain job holds for them.
"""

import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from kettle.startd.settings import StartdSettings
from kettle.testing.images import busybox_root, docker_archive, missing, oci_layout, tar_of
from kettle.testing.submit_side import SubmitSide, inline, output, script
from kettle.testing.worker import WorkerPool
from kettle.wire.ads import Ad, Scalar
from kettle.wire.commands.startd import DEACTIVATE, Deactivate, Deactivation
from kettle.wire.work import Exited, Failed, Started

RUNTIMES = {"bubblewrap": ("bwrap", "bubblewrap"), "runc": ("runc", "runc"), "crun": ("crun", "crun")}


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if why := missing(*RUNTIMES[name]):
        pytest.skip(why)
    if name != "bubblewrap" and os.geteuid() != 0:
        pytest.skip(f"{name} takes a startd that is root")
    return name


@pytest.fixture
def settings(settings: StartdSettings, runtime: str) -> StartdSettings:
    return msgspec.structs.replace(settings, container_runtimes=(runtime,), container_images_mib=64)


@pytest.fixture
def image(directory: Path) -> Path:
    """
    A root file system on the worker, readable for all.
    """
    return busybox_root(directory / "image")


@pytest.fixture
async def submitter(pool: WorkerPool) -> AsyncGenerator[SubmitSide]:
    async with pool.startd() as startd:
        yield pool.submitter
        await startd.drain()
    assert [] == list(pool.execute.glob("dir_*"))


def inside(image: Path | str, text: str, **attributes: Scalar) -> Ad:
    """
    A line of shell in a container with an image of the worker.
    """
    wanted = {"WantContainer": True, "ContainerImage": str(image), "TransferContainer": False}
    return script(text, **{**wanted, **attributes})


async def test_a_job_sees_its_image_and_its_sandbox(submitter: SubmitSide, image: Path) -> None:
    """
    The root is the image, read-only; the sandbox is /srv, writable, and where the job begins; /tmp is the job's own.
    """
    text = (
        "cat /etc/image; pwd; echo $_CONDOR_SCRATCH_DIR $HOME; touch /bin/x /y 2>/dev/null || echo closed; "
        "echo t > /tmp/t; ls /tmp; cat input; echo result > made; ls -d /home /root 2>/dev/null"
    )
    exited = await submitter.run(inside(image, text), inputs=[inline("input", b"given\n")])

    assert isinstance(exited, Exited)
    lines = (output(exited) or b"").decode().split("\n")
    assert ["busybox", "/srv", "/srv /srv", "closed", "t", "given", ""] == lines
    assert b"result\n" == output(exited, "made")


@pytest.mark.parametrize(
    ("text", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 1", 1, None),
        ("exit 137", 137, None),
        ("kill -9 $$", None, 9),
        ("kill -15 $$", None, 15),
        ("sleep 0.3; exit 3", 3, None),
        ("sleep 0.3; kill -11 $$", None, 11),
    ],
)
async def test_the_end_of_a_job_is_told_as_it_was(
    submitter: SubmitSide, image: Path, text: str, code: int | None, number: int | None
) -> None:
    """
    Exit code or signal, as outside of a container, however short the job is.
    """
    exited = await submitter.run(inside(image, text))

    assert isinstance(exited, Exited), exited
    assert (code, number) == (exited.exit_code, exited.exit_signal)
