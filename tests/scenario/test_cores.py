"""Jobs whose program a signal ends."""

import asyncio
import resource
from pathlib import Path

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobCompleted
from kettle_wire.jobs import JobId

from .job_log import written

PATTERN = Path("/proc/sys/kernel/core_pattern").read_text().strip()

pytestmark = [
    pytest.mark.skipif(
        PATTERN != "core" or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0,
        reason="the kernel of this machine does not write core files where the program is",
    ),
]


@pytest.mark.parametrize(
    ("more", "comes"),
    [("core_size = -1\n", True), ("core_size = -1\ntransfer_output_files = made\n", True), ("", False)],
)
async def test_a_core_file_comes_back_to_who_wants_it(
    pool: ThrowawayPool, tmp_path: Path, more: str, comes: bool
) -> None:
    """
    With the job's number in its name, beside other results; event, ad and log say where it is. Who says nothing gets none.
    """
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho it > made\nkill -SEGV $$\n")
    script.chmod(0o755)
    description = f"executable = job.sh\nlog = log\n{more}queue\n"
    cluster = (await pool.client.submit(description, cwd=tmp_path)).cluster
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))
    said = [each.event for each in await pool.client.events(JobId(cluster, 0))]
    (completed,) = (each for each in said if isinstance(each, JobCompleted))
    core = tmp_path / f"core.{cluster}.0"

    assert (11, comes, str(core) if comes else "") == (
        completed.exit.signal,
        completed.exit.dumped,
        completed.exit.core,
    )
    assert comes == core.exists()
    assert not comes or core.read_bytes().startswith(b"\x7fELF")
    assert "it\n" == (tmp_path / "made").read_text()
    line = f"\t(1) Corefile in: {core}\n" if comes else "\t(0) No core file\n"
    await written(tmp_path / "log", line)
