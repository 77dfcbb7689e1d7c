"""Dask clusters whose scheduler and workers are jobs."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from kettle.dask.credentials import Credentials, read_credentials, write_credentials
from kettle.dask.security import security_of
from kettle.pki.certificates import make_request
from kettle.pki.session_authority import SessionAuthority
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

PROGRAM = """
executable = {python}
arguments = "-m kettle.dask.{program} --shared {shared}"
transfer_executable = false
request_cpus = 1
request_memory = 256 MB
kill_sig = SIGTERM
output = {program}.$(ProcId).out
error = {program}.$(ProcId).err
queue {count}
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    """Jobs run this Python, which an account of a slot may not reach."""
    return {"cpus": 4, "settings": {"startd": {"job_account": "own"}}}


def credentials(name: str) -> Credentials:
    now = datetime.now(UTC)
    authority = SessionAuthority(b"s" * 32, name, now=now)
    key, request = make_request("member")
    signed = authority.sign(request, now=now)
    return Credentials(authority.certificate.decode(), signed.decode(), key.decode())


async def test_scheduler_and_workers_are_jobs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    They find and believe each other, compute for a client with a certificate of the session, and let nobody else in.
    """
    shared = tmp_path / "shared"
    write_credentials(shared, credentials("one"))
    for program, count in (("scheduler", 1), ("worker", 2)):
        text = PROGRAM.format(python=sys.executable, program=program, shared=shared, count=count)
        await pool.client.submit(text, cwd=tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        while not (shared / "scheduler").exists():
            await asyncio.sleep(0.05)
    address = (shared / "scheduler").read_text()
    async with Client(address, security=security_of(read_credentials(shared)), asynchronous=True) as client:
        await client.wait_for_workers(2, timeout=PATIENCE_S)
        assert 10 == await client.submit(sum, [1, 2, 3, 4])
        assert [n + 1 for n in range(20)] == await client.gather(client.map(lambda n: n + 1, range(20)))
        names = {each["name"] for each in client.scheduler_info()["workers"].values()}
    jobs = {
        f"{ad['ClusterId']}.{ad['ProcId']}"
        for ad in await pool.client.jobs(projection=["ClusterId", "ProcId"])
    }
    assert names < jobs
    with pytest.raises(OSError):
        await Client(address, security=security_of(credentials("two")), asynchronous=True, timeout=1)
