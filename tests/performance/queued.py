"""
What jobs that wait cost the schedd: its memory with 1,000,000 in one cluster, and with 100,000 in ten and in a thousand.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from kettle.client import select
from kettle.testing.measurements import say, summary
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

JOB: Final = (
    "executable = /bin/true\ntransfer_executable = false\nrequirements = false\narguments = $(Process)\n"
)
CASES: Final = {
    "1000000_in_1": (1_000_000, 1, "max_idle = 1000\n"),
    "100000_in_10": (100_000, 10, ""),
    "100000_in_1000": (100_000, 1000, ""),
}
"""Jobs, clusters, and what else the description says."""
_MEASURED: Final = ("VmRSS:", "VmHWM:", "Pss:", "Private_Clean:", "Private_Dirty:")


def resident_mib(pool: ThrowawayPool) -> dict[str, float]:
    """
    The schedd's memory now, and the most that it ever was, MiB; what of it is nobody else's: it shares the modules of all services with
    the process that it is forked from; and its proportional set, in which each shared page is divided among those who share it.

    The sum of all proportional sets is what a pool takes of a host; of what is resident each service counts all modules again.
    """
    process = Path(f"/proc/{pool.pid('schedd')}")
    lines = [
        *(process / "status").read_text().splitlines(),
        *(process / "smaps_rollup").read_text().splitlines(),
    ]
    found = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith(_MEASURED)}
    own = found["Private_Clean"] + found["Private_Dirty"]
    return {
        "rss_mib": round(found["VmRSS"], 1),
        "peak_mib": round(found["VmHWM"], 1),
        "proportional_mib": round(found["Pss"], 1),
        "own_mib": round(own, 1),
    }


async def measure(directory: Path, jobs: int, clusters: int, pace: str) -> dict[str, float]:
    """Submit, see the memory; then have another schedd take over, and see its memory."""
    async with throwaway_pool(directory, cpus=1) as pool:
        empty = resident_mib(pool)["rss_mib"]
        began = time.perf_counter()
        newest = 0
        for _ in range(clusters):
            newest = (await pool.client.submit(f"{JOB}{pace}queue {jobs // clusters}\n")).cluster
        submitted = time.perf_counter() - began
        report: dict[str, float] = {
            "empty_mib": empty,
            "submitted_s": round(submitted, 2),
            **resident_mib(pool),
        }
        pid = pool.kill("schedd")
        began = time.perf_counter()
        await pool.restarted("schedd", after=pid)
        await pool.client.jobs(select(newest), projection=["ClusterId"], limit=1)
        report["restarted_s"] = round(time.perf_counter() - began, 2)
        report |= {f"restarted_{name}": value for name, value in resident_mib(pool).items()}
        return report


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=CASES, help="only this; may be repeated")
    parser.add_argument("--rounds", type=int, default=1, help="pools that each is done with")
    arguments = parser.parse_args()
    report: dict[str, Any] = {}
    for name in arguments.case or CASES:
        rounds: list[dict[str, float]] = []
        for _ in range(arguments.rounds):
            with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
                rounds.append(asyncio.run(measure(Path(directory), *CASES[name])))
            say(f"  {name}: {rounds[-1]}")
        report[name] = {figure: summary((each[figure] for each in rounds), 2) for figure in rounds[0]}
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
