"""
Programs written for HTCondor's Python modules run against a pool: each as a process that finds ours in their place.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio

from kettle.testing.pool import ThrowawayPool, throwaway_pool

MODULES: Final = Path(__file__).parents[2] / "services" / "kettle" / "condor" / "python"
WITHIN_S: Final = 120.0

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    async with throwaway_pool(tmp_path_factory.mktemp("bindings"), cpus=4, template=template) as running:
        yield running
    assert [] == running.left


async def said(pool: ThrowawayPool, place: Path, program: str) -> Any:
    """
    What a program leaves in `answer` when it has run with our modules.
    """
    path = place / "program.py"
    path.write_text(f"{program}\nimport json\nprint(json.dumps(answer, default=str))\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(path),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "KETTLE_HOME": str(pool.home), "PYTHONPATH": str(MODULES)},
        cwd=place,
    )
    async with asyncio.timeout(WITHIN_S):
        out, err = await process.communicate()
    assert 0 == process.returncode, err.decode()
    assert "" == err.decode()
    return msgspec.json.decode(out.splitlines()[-1])


async def test_a_job_from_its_description_to_its_history(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    The way of most clients: submit, look, follow the log to the end, read the history.
    """
    answer = await said(
        pool,
        tmp_path,
        """
import htcondor2, time

schedd = htcondor2.Schedd()
result = schedd.submit(htcondor2.Submit({
    "executable": "/bin/sleep", "arguments": "1", "transfer_executable": False, "log": "job.log",
    "request_memory": 16, "+Mine": '"yes"',
}), count=1)
cluster = result.cluster()
queued = schedd.query(f"ClusterId == {cluster}", ["ClusterId", "ProcId", "Mine", "JobStatus"])
import os
while not os.path.exists("job.log"):
    time.sleep(0.05)
seen = []
for event in htcondor2.JobEventLog("job.log").events(stop_after=60):
    assert event.cluster == cluster
    seen.append(event.type.name)
    if event.type is htcondor2.JobEventType.JOB_TERMINATED:
        returned = event["ReturnValue"]
        break
past = []
while not past:
    past = schedd.history(f"ClusterId == {cluster}", ["ExitCode", "Mine"], match=1)
answer = [int(result), cluster, result.num_procs(), [dict(ad) for ad in queued], seen, returned,
    [dict(ad) for ad in past], schedd.query(f"ClusterId == {cluster}")]
""",
    )
    number, cluster, count, [queued], seen, returned, past, left = answer
    assert (number, 1) == (cluster, count)
    assert (cluster, 0, "yes") == (queued["ClusterId"], queued["ProcId"], queued["Mine"])
    assert queued["JobStatus"] in {1, 2}
    assert ("SUBMIT", "JOB_TERMINATED") == (seen[0], seen[-1])
    assert (0, [{"ExitCode": 0, "Mine": "yes"}], []) == (returned, past, left)
