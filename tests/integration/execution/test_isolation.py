"""What jobs without a container do not share with the machine: directories for temporary files, shared memory, rights."""

import os
import secrets
from pathlib import Path

import msgspec
import pytest

from kettle.execution.processes.isolation import why_no_mounts
from kettle.testing.submit_side import SubmitSide, script
from kettle_services.startd.settings import StartdSettings
from kettle_wire.worker_reports import FinalReport

WHY_NOT = "only root has mounts of its own" if os.geteuid() != 0 else why_no_mounts()
mounts = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
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
    """The machine does not see them, and the job sees none of the machine's; they go with it and are no results."""
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
