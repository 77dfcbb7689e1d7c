"""
What one `/bin/true` costs on the execution side alone: startd, starter and job, without log, schedd and shadow.

    python -m tests.performance.execution [JOBS] [SLOTS]

Prints JSON.  CPU is that of everything under this process, counted by the kernel for a control group of its own, so it
takes root and a cpuacct hierarchy; elsewhere only the wall time is given.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.testing.measurements import accounted, group_seconds
from kettle.testing.submit_side import POOL, STARTD, SubmitSide, job_ad
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.wiring import running
from kettle_wire.commands.startd import RELEASE, Release
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import FinalReport, Report, ReportKey


async def chain(submitter: SubmitSide, count: int) -> list[float]:
    """Job after job on one claim; the latency of each in seconds."""
    claim = await submitter.claim(RequestMemory=16, RequestDisk=16)
    recorded: list[ReportKey] = []
    latencies: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        activation = submitter.activation(
            claim, job_ad(Cmd="/bin/true", **{f"Attribute{i}": i for i in range(30)})
        )
        assert (await submitter.activate(activation, recorded=recorded)).code == 0
        report: Report = await submitter.hear(activation, lambda report: isinstance(report.body, FinalReport))
        latencies.append(time.perf_counter() - began)
        recorded = [report.key]
        submitter.reports[:] = [r for r in submitter.reports if r.job != activation.job]
    await submitter.schedd.call(RELEASE, STARTD, Release(claims=[claim], reason="enough"))
    return latencies


async def measure(jobs: int, slots: int, group: Path | None, home: str) -> dict[str, float | None]:
    """Run all jobs over the slots."""
    server = MemoryServer()
    schedd, shadow, startd = (
        MemoryBus(server, subjects=Subjects(POOL), identity=daemon(role))
        for role in ("schedd", "shadow", "startd")
    )
    submitter = SubmitSide(schedd, shadow)
    await submitter.prepare()
    listening = asyncio.create_task(submitter.listen())
    cgroups = os.environ.get("KETTLE_TEST_CGROUPS", "1") == "1"
    settings = StartdSettings(pool=POOL, home=home, name=STARTD, num_cpus=slots, cgroups=cgroups)
    async with running(startd, settings) as machine:
        await chain(submitter, 10)
        began, cpu = time.perf_counter(), None if group is None else group_seconds(group)
        own = time.process_time()
        results = await asyncio.gather(*(chain(submitter, jobs // slots) for _ in range(slots)))
        wall, used = time.perf_counter() - began, None if group is None else group_seconds(group)
        own = time.process_time() - own
        await machine.drain()
    listening.cancel()
    latencies = sorted(latency for each in results for latency in each)
    count = len(latencies)
    return {
        "jobs": count,
        "slots": slots,
        "jobs_per_s": round(count / wall, 1),
        "cpu_ms_per_job": None if used is None or cpu is None else round((used - cpu) * 1000 / count, 2),
        "of_which_startd_bus_and_this_client_ms": round(own * 1000 / count, 2),
        "latency_p50_ms": round(latencies[count // 2] * 1000, 2),
        "latency_p99_ms": round(latencies[int(count * 0.99)] * 1000, 2),
    }


def main() -> None:
    """Measure and print."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 800
    slots = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    home = tempfile.mkdtemp(prefix="kettle-")
    Path(home).chmod(0o711)
    try:
        with accounted() as group:
            print(json.dumps(asyncio.run(measure(jobs, slots, group, home))))
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
