"""
Where containers are made: not in the sandbox, where a job, or what runs beside it, could put anything in the place of a name.
"""

import os
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from kettle.execution.attempts.job_spec import Account, JobSpec
from kettle.execution.containers.job_container import JobContainer
from kettle.execution.containers.policy import ContainerPolicy, FoundRuntime
from kettle.execution.containers.request import ContainerRequest
from kettle.execution.containers.runtimes.runtime import ContainerSpec
from kettle.execution.processes.kept_namespaces import NamespaceKeeper
from kettle.execution.processes.launch import Program
from kettle.execution.sandbox.directory import Sandbox, area_of
from kettle.execution.sandbox.spare import SpareSandbox
from kettle_services.startd.starters import orphan_cleanup
from kettle_services.starter.execution.job_remains import JobRemains
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId

ACCOUNT = Account(1_999_999_001, 1_999_999_002) if os.geteuid() == 0 else None


@pytest.fixture
def execute() -> Generator[Path]:
    """
    A directory that other accounts can pass through; the temporary directories of pytest are closed to them.
    """
    with tempfile.TemporaryDirectory(prefix="kettle-") as name:
        path = Path(name)
        path.chmod(0o711)
        yield path


@pytest.fixture
def sandbox(execute: Path) -> Sandbox:
    made = Sandbox(f"{execute}/dir_1", ACCOUNT)
    made.make()
    return made


def a_job(execute: Path, runtime: str = "bubblewrap") -> JobSpec:
    policy = ContainerPolicy(runtimes=[FoundRuntime(runtime, f"/bin/{runtime}")], images="", limit=0)
    return JobSpec(
        key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, schedd="s", execute=str(execute), state="/s", slot="slot1",
        cpus=1, memory=1, disk=1, ad={}, machine_ad="", inputs=[], received=0, began=0, deadline=0, sequence=0,
        account=ACCOUNT, containers=policy,
    )  # fmt: skip


def a_container(execute: Path, sandbox: Sandbox, runtime: str = "bubblewrap") -> JobContainer:
    program = execute / "image" / "bin" / "true"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.touch(0o755)
    request = ContainerRequest(image=str(execute / "image"), form="files", local=True)
    return JobContainer(a_job(execute, runtime), request, sandbox.path)


def made(container: JobContainer) -> ContainerSpec:
    program = Program(
        path="/bin/true", arguments=[], environment={}, directory="/srv",
        stdin=os.devnull, stdout=os.devnull, stderr=os.devnull, account=ACCOUNT,
    )  # fmt: skip
    with container.preparing(program) as builder:
        return container.prepared(builder)


@pytest.mark.parametrize("runtime", ["bubblewrap", "crun"])
def test_a_container_is_made_where_its_job_can_exchange_nothing(
    execute: Path, sandbox: Sandbox, runtime: str
) -> None:
    """
    Nothing is made in the sandbox, and no directory above what is made can be written to by another account; only for bubblewrap, which
    runs as the job's, may another one pass through.
    """
    box = made(a_container(execute, sandbox, runtime))

    assert [] == list(Path(sandbox.path).iterdir())
    scratch = [Path(mount.source) for mount in box.mounts if mount.destination in {"/tmp", "/var/tmp"}]
    assert [ACCOUNT.uid if ACCOUNT is not None else os.geteuid()] * 2 == [
        path.stat().st_uid for path in scratch
    ]
    for place in (
        Path(box.skeleton),
        *(path.parent for path in scratch),
        Path(area_of(sandbox.path)),
        execute,
    ):
        about = place.lstat()
        assert stat.S_ISDIR(about.st_mode)
        assert (os.geteuid(), 0) == (about.st_uid, about.st_mode & 0o022)
    if ACCOUNT is not None:
        about = Path(box.area).stat()
        closed = (about.st_gid, stat.S_IMODE(about.st_mode))
        assert closed == ((ACCOUNT.gid, 0o710) if runtime == "bubblewrap" else (os.getegid(), 0o700))


def test_what_a_job_links_to_is_no_container(execute: Path, sandbox: Sandbox) -> None:
    """It may have put links into its sandbox under any name: what they lead to stays."""
    victim = execute / "victim"
    victim.mkdir()
    (victim / "passwd").write_text("root")
    container = a_container(execute, sandbox)
    box = made(container)
    for name in (".container", Path(box.area).name):
        Path(sandbox.path, name).symlink_to(victim)

    container.clear()

    assert "root" == (victim / "passwd").read_text()
    assert not Path(box.area).exists()
    assert made(container).area == box.area, "it can be made again"


def test_what_is_written_in_a_container_counts_as_the_jobs(execute: Path, sandbox: Sandbox) -> None:
    """Its private directories are on the disk that the job has asked for."""
    box = made(a_container(execute, sandbox))
    before = sandbox.size_kib()
    Path(next(mount.source for mount in box.mounts if mount.destination == "/tmp"), "file").write_bytes(
        os.urandom(1 << 20)
    )

    assert sandbox.size_kib() >= before + 1024


@pytest.mark.parametrize("results", [False, True])
@pytest.mark.parametrize("follows", [False, True])
def test_what_a_container_had_goes_with_its_job(
    execute: Path, sandbox: Sandbox, *, results: bool, follows: bool
) -> None:
    """Also if the sandbox stays, for results that are still to be fetched or for the next job."""
    made(a_container(execute, sandbox))
    spare = SpareSandbox()
    remains = JobRemains(a_job(execute), sandbox, NamespaceKeeper(), spare, "alice")
    remains.make_sandbox()
    made(a_container(execute, sandbox))

    remains.remove(results=results, follows=follows)

    assert not Path(area_of(sandbox.path)).exists()
    spare.drop()


def test_what_a_dead_starter_has_made_is_found_without_its_sandbox(execute: Path, sandbox: Sandbox) -> None:
    """A startd that starts finds it by either, and removes both."""
    made(a_container(execute, sandbox))
    assert ["dir_1"] == orphan_cleanup.leftovers(execute, None)
    Path(sandbox.path).rmdir()
    assert ["dir_1"] == orphan_cleanup.leftovers(execute, None)

    assert orphan_cleanup.remove_remains(sandbox.path, None, None)

    assert ["image"] == [path.name for path in execute.iterdir()]
    assert [] == orphan_cleanup.leftovers(execute, None)
