"""Runtimes by themselves: what is decided between a container that is ready and a job that runs."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kettle.execution.containers.job_container import runtime_of
from kettle.execution.containers.policy import ContainerError, FoundRuntime
from kettle.execution.containers.root_directory import Mount, make_mount_points
from kettle.execution.containers.runtimes.runtime import ContainerRuntime, ContainerSpec, no_check
from kettle.execution.processes.launch import Program
from kettle.execution.system.linux import become_subreaper, descendants_of
from kettle.testing.container_images import BUSYBOX, NO_BUSYBOX, busybox_root, missing
from kettle.testing.patience import PATIENCE_S

RUNTIMES = {"bubblewrap": ("bwrap", "bubblewrap"), "runc": ("runc", "runc"), "crun": ("crun", "crun")}


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> ContainerRuntime:
    name = str(request.param)
    program, package = RUNTIMES[name]
    if why := missing(program, package):
        pytest.skip(why)
    if name != "bubblewrap" and os.geteuid() != 0:
        pytest.skip(f"{name} takes a startd that is root")
    return runtime_of(FoundRuntime(name, shutil.which(program, path="/usr/sbin:/usr/bin:/bin") or ""))


@pytest.fixture
def box(directory: Path) -> ContainerSpec:
    """A job that leaves a file, if it runs."""
    if not os.access(BUSYBOX, os.X_OK):
        pytest.skip(NO_BUSYBOX)
    image, area = busybox_root(directory / "image"), directory / "area"
    place = directory / "sandbox"
    for path in (area, place):
        path.mkdir()
    sandbox = Mount(source=str(place), destination="/srv", writable=True)
    mounts = make_mount_points(str(image), str(area / "root"), [sandbox])
    program = Program(
        path="/bin/touch", arguments=["ran"], environment={"PATH": "/bin"}, directory="/srv",
        stdin=os.devnull, stdout=os.devnull, stderr=os.devnull,
    )  # fmt: skip
    return ContainerSpec(
        program=program, sandbox=str(place), area=str(area), skeleton=str(area / "root"), mounts=mounts
    )


def apart(work: Callable[[], bool]) -> bool:
    """
    What `work` says in a process of its own, which is the parent of all orphans; false if any process is left of it.
    """
    child = os.fork()
    if child == 0:
        well = False
        try:
            become_subreaper()
            well = work() and not living()
        finally:
            os._exit(0 if well else 1)
    return os.waitpid(child, 0)[1] == 0


def living() -> list[int]:
    """Processes below us; those that have ended are collected."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        time.sleep(0.01)
    return descendants_of(os.getpid())


def test_a_job_that_is_refused_at_the_last_moment_does_not_run(
    runtime: ContainerRuntime, box: ContainerSpec
) -> None:
    """And nothing is left of its container; one that is not refused runs."""

    def refuse(pid: int = 0) -> None:
        raise TimeoutError

    def refused() -> bool:
        try:
            runtime.start(box, None, refuse)
        except TimeoutError:
            return True
        return False

    def run() -> bool:
        shutil.rmtree(f"{box.area}/state", ignore_errors=True)
        return os.waitpid(runtime.start(box, None, no_check), 0)[1] == 0

    ran = Path(box.sandbox) / "ran"
    assert apart(refused)
    assert not ran.exists()
    assert apart(run)
    assert ran.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="others follow paths with the job's own rights")
def test_a_directory_that_was_exchanged_is_noticed(
    runtime: ContainerRuntime, box: ContainerSpec, directory: Path
) -> None:
    """Between the look at an image and the mount by root its owner may put a link there."""
    if type(runtime).__name__ == "Bubblewrap":
        pytest.skip("it follows paths with the job's own rights")
    (directory / "secret").mkdir()
    (directory / "image" / "etc").rename(directory / "image" / "old")
    (directory / "image" / "etc").symlink_to(directory / "secret")

    def noticed() -> bool:
        try:
            runtime.start(box, None, no_check)
        except ContainerError as error:
            return error.code == 35 and "exchanged" in str(error)
        return False

    assert apart(noticed)
    assert not (Path(box.area).parent / "ran").exists()


def test_what_was_looked_at_is_remembered(box: ContainerSpec) -> None:
    """It is for every directory of the image, and for nothing of Kettle's own."""
    assert {"/bin", "/etc", "/tmp", "/usr"} == {each.destination for each in box.mounts if each.identity}
