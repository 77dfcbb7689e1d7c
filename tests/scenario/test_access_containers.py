"""Programs beside jobs that run in containers."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from kettle.client import CommandRefusedError, select
from kettle.client.jobs.access import AttemptAccess
from kettle.testing.container_images import busybox_root, missing, tar_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.access import Terminal
from kettle_wire.jobs import JobId

PROGRAMS = {"runc": "runc", "bubblewrap": "bwrap"}
STATUS = "grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs)' /proc/self/status"


def why_not(name: str) -> str:
    if name == "runc" and os.geteuid() != 0:
        return "runc needs root"
    return missing(PROGRAMS[name], name)


@pytest.fixture(scope="module", params=sorted(PROGRAMS))
def configuration(request: pytest.FixtureRequest) -> dict[str, Any]:
    if reason := why_not(request.param):
        pytest.skip(reason)
    return {"settings": {"startd": {"container_runtimes": [request.param]}}}


async def ready(pool: ThrowawayPool, job: JobId) -> AttemptAccess:
    """Wait until the job's program runs."""
    while True:
        try:
            visit = await pool.client.visit(job)
            await visit.peek("ready")
        except CommandRefusedError as error:
            if error.code not in {"not_running", "unreadable"}:
                raise
            await asyncio.sleep(0.05)
        else:
            return visit


async def said(visit: AttemptAccess, script: str, terminal: Terminal | None = None) -> tuple[int | None, str]:
    """What a shell beside the job writes, and its exit code."""
    out = b""
    async with visit.running(["sh", "-c", script], terminal=terminal) as session:
        async for output in session.output():
            out += output.data
    return session.exit_code, out.decode()


async def test_it_is_in_the_container(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    It sees the image, the sandbox where the job sees it, and the job's environment, and has no more rights than the job.
    """
    (tmp_path / "busybox.tar").write_bytes(tar_of(busybox_root(tmp_path / "root")))
    submitted = await pool.client.submit(
        "container_image = busybox.tar\nexecutable = /bin/sh\ntransfer_executable = false\n"
        f"arguments = \"-c '{STATUS.replace(chr(39), chr(39) * 2)} > status; touch ready; while true; do sleep 1; done'\"\n"
        'environment = "COLOUR=green"\noutput = out\nqueue\n',
        cwd=tmp_path,
    )
    async with asyncio.timeout(PATIENCE_S):
        visit = await ready(pool, JobId(submitted.cluster, 0))
        job = (await visit.peek("status")).data.decode()
        found = await said(visit, f"cat /etc/image; pwd; echo $COLOUR; {STATUS}; exit 3")
        assert (3, f"busybox\n/srv\ngreen\n{job}") == found
        assert "CapEff:\t0000000000000000" in job
        code, seen = await said(visit, "test -t 0 && : < /dev/tty && echo $TERM", Terminal(kind="vt100"))
        assert (0, "vt100\r\n") == (code, seen)
        status, out, _ = await pool.kettle("ssh", str(visit.job), "cat /etc/image")
        assert (0, "busybox\n") == (status, out)
    await pool.client.remove(select(submitted.cluster))
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(submitted.cluster))
