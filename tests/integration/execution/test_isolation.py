"""What jobs without a container do not share with the machine: temporary files, shared memory, rights."""

import os
import secrets
from pathlib import Path

import msgspec
import pytest

from kettle.execution.attempts.job_spec import Account, Isolation
from kettle.execution.processes.isolation import Enclosure, in_thread
from kettle.execution.processes.launch import Program, launch
from kettle.execution.processes.namespaces import why_no_mounts
from kettle.execution.processes.side_program import spawn_beside
from kettle.execution.sandbox.directory import Sandbox
from kettle.testing.submit_side import SubmitSide, script
from kettle_services.startd.settings import StartdSettings
from kettle_wire.worker_reports import FinalReport

WHY_NOT = "only root makes namespaces for jobs" if os.geteuid() != 0 else in_thread(why_no_mounts)
mounts = pytest.mark.skipif(bool(WHY_NOT), reason=f"this machine lets no job have its own /tmp: {WHY_NOT}")
DEFAULTS = StartdSettings().mount_under_scratch
NAME = f"kettle-own-{secrets.token_hex(8)}"


@pytest.fixture
def settings(settings: StartdSettings) -> StartdSettings:
    """As people have it: here no file below /tmp tells a test anything."""
    return msgspec.structs.replace(settings, mount_under_scratch=DEFAULTS)


def said(final: FinalReport) -> str:
    """What a job that went well has printed."""
    assert final.result.exit is not None, final.result.ending
    assert 0 == final.result.exit.code
    return next((file.data or b"").decode() for file in final.outputs if file.name == "_condor_stdout")


async def test_no_program_of_a_job_gets_more_rights(submitter: SubmitSide) -> None:
    """The kernel is told so, for the job and all that comes of it."""
    final = await submitter.run(script("grep NoNewPrivs /proc/self/status"))

    assert ["NoNewPrivs:", "1"] == said(final).split()


class TestWithMoreRights:
    """A machine whose owner wants set-user-id programs in jobs."""

    @pytest.fixture
    def settings(self, settings: StartdSettings) -> StartdSettings:
        return msgspec.structs.replace(settings, no_new_privileges=False)

    async def test_programs_may_get_more_rights(self, submitter: SubmitSide) -> None:
        """The kernel is told nothing."""
        final = await submitter.run(script("grep NoNewPrivs /proc/self/status"))

        assert ["NoNewPrivs:", "0"] == said(final).split()


@mounts
async def test_temporary_files_are_the_jobs_own(submitter: SubmitSide) -> None:
    """The machine does not see them, nor the job the machine's; they go with it and are no results."""
    other = Path("/tmp", f"{NAME}-machine")
    writes = f"ls {other} || echo x > /tmp/{NAME}; echo y > /var/tmp/{NAME}"
    other.touch()
    try:
        final = await submitter.run(script(f"{writes}; cat /tmp/{NAME} /var/tmp/{NAME}"))
    finally:
        other.unlink()

    assert "x\ny\n" == said(final)
    assert {"_condor_stdout", "_condor_stderr"} == {file.name for file in final.outputs}
    assert [] == [place for place in ("/tmp", "/var/tmp") if Path(place, NAME).exists()]


@mounts
async def test_the_next_job_of_a_slot_sees_nothing_of_its_predecessor(submitter: SubmitSide) -> None:
    """Neither its temporary files nor its shared memory, while both have all of them."""
    places = [f"{place}/{NAME}" for place in ("/tmp", "/var/tmp", "/dev/shm")]
    text = (
        f"for place in {' '.join(places)}; do test ! -e $place && echo x > $place || exit 1; done; "
        "ipcmk -Q >/dev/null; ipcmk -M 4096 >/dev/null; grep -c . /proc/sysvipc/shm /proc/sysvipc/msg"
    )

    first, second = await submitter.run(script(text)), await submitter.run(script(text))

    assert said(first) == said(second) == "/proc/sysvipc/shm:2\n/proc/sysvipc/msg:2\n"


@mounts
async def test_temporary_files_do_not_come_back_with_the_whole_sandbox(submitter: SubmitSide) -> None:
    """What else the job has made does, whatever it is called."""
    text = "echo x > /tmp/x; mkdir -p d/.private; echo y > d/.private/y"

    final = await submitter.run(script(text, TransferOutput="."))

    assert "d/.private/y" in {file.name for file in final.outputs}
    assert [] == [file.name for file in final.outputs if file.name.startswith(".private")]


@mounts
async def test_temporary_files_count_as_the_jobs_disk(submitter: SubmitSide) -> None:
    """They are in its sandbox."""
    final = await submitter.run(script("head -c 3000000 /dev/zero > /tmp/x; true"))

    assert final.result.usage.disk_kib >= 3000000 // 1024


@mounts
async def test_shared_memory_has_the_size_of_the_jobs_memory(submitter: SubmitSide) -> None:
    """More of it than the slot has memory cannot be written."""
    final = await submitter.run(script("df -m --output=size /dev/shm | tail -1; mountpoint -q /dev/shm"))

    assert 0 < int(said(final)) <= 4096


@mounts
async def test_a_job_may_choose_more_directories(submitter: SubmitSide) -> None:
    """Each must be there; nobody else sees what it writes there."""
    chosen = await submitter.run(script("ls -A /srv /opt; touch /srv/x", MountUnderScratch="/srv,/opt"))
    missing = await submitter.run(script("true", MountUnderScratch="/no/such"))

    assert "/opt:\n\n/srv:\n" == said(chosen)
    assert not Path("/srv/x").exists()
    assert missing.result.ending is not None
    assert missing.result.ending.holds
    assert "/no/such" in missing.result.ending.reason


def look_in(directory: Path) -> bool:
    """Start a job that waits, and a program beside it: whether that sees what the job has written."""
    account = Account(54321, 54322)
    sandbox = Sandbox(f"{directory}/execute/x", account)
    Path(directory, "execute").mkdir()
    sandbox.make()
    isolation = Isolation(no_new_privileges=True, directories=DEFAULTS, shared_memory=True)
    job = Program(
        path="/bin/sh", arguments=["-c", "echo x > /tmp/x; echo y > /dev/shm/y; mkfifo f; echo > f; read word < f"],
        environment={"PATH": "/usr/bin:/bin"}, directory=sandbox.path,
        stdin=os.devnull, stdout=os.devnull, stderr=os.devnull,
        account=account, enclosure=Enclosure(isolation=isolation, sandbox=sandbox.path),
    )  # fmt: skip
    pid = launch(job)
    told, tell = os.pipe()
    look = "until read word < f; do :; done; cat /tmp/x /dev/shm/y; grep -c 'NoNewPrivs:.1' /proc/self/status"
    beside = msgspec.structs.replace(job, arguments=["-c", look], streams=(tell, tell, tell))
    born = spawn_beside(None, beside, job=pid)
    os.close(tell)
    os.set_inheritable(told, False)
    said = b""
    while piece := os.read(told, 4096):
        said += piece
    os.kill(pid, 9)
    for each in (pid, born.pid):
        os.waitpid(each, 0)
    sandbox.remove()
    return said.endswith(b"x\ny\n1\n")


@mounts
def test_who_looks_in_sees_what_the_job_sees(directory: Path) -> None:
    """Programs beside the job have its directories and shared memory, and no more rights."""
    child = os.fork()  # launching changes the process that does it for a moment
    if child == 0:
        well = False
        try:
            well = look_in(directory)
        finally:
            os._exit(0 if well else 1)
    assert 0 == os.waitpid(child, 0)[1]
