"""
How the cost of a short job grows with slots, with jobs in the queue, and with users, as panels that `plots` draws.

    python -m tests.performance.growth [--rounds 5] | python -m tests.performance.plots --output growth.svg

Each curve is from `jobs`, in a process of its own; what costs little is drawn as one curve, `others`.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from tests.performance.plots import Panel

from kettle.testing.measurements import say

SLOTS: Final = (1, 2, 4, 8, 16, 32, 64)
JOBS: Final = (250, 500, 1000, 2000, 4000)
USERS: Final = (1, 10, 100)
COMMON_SLOTS: Final = 32
COMMON_JOBS: Final = 600
CURVES: Final = 5
"""Of one panel; the others are one."""


def measured(rounds: int, slots: int, *options: str) -> Mapping[str, Any]:
    """What `jobs` prints about so many slots."""
    words = [f"--rounds={rounds}", f"--slots={slots}", "--latency=0", *options]
    command = [sys.executable, "-m", "tests.performance.jobs", *words]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    report: dict[str, Mapping[str, Any]] = json.loads(out)
    return report[f"{slots}_slots"]


def costs(title: str, across: str, found: Mapping[int, Mapping[str, Any]]) -> Panel:
    """Milliseconds of processor time a job, by service."""
    name = "processor_ms_per_job_by_service"
    services = list(next(iter(found.values()))[name])
    services.sort(key=lambda service: -max(each[name][service] for each in found.values()))
    curves = {
        service.replace("_", " "): [(float(at), float(each[name][service])) for at, each in found.items()]
        for service in services[:CURVES]
    }
    curves["others"] = [
        (float(at), round(sum(each[name][service] for service in services[CURVES:]), 3))
        for at, each in found.items()
    ]
    return Panel(title=title, across=across, up="ms of processor time a job", curves=curves)


def rates(title: str, across: str, found: Mapping[int, Mapping[str, Any]]) -> Panel:
    """Jobs per second: the median, and the range seen."""
    curves = {
        name: [(float(at), float(each["jobs_per_second"][key])) for at, each in found.items()]
        for name, key in (("best", "max"), ("median", "median"), ("worst", "min"))
    }
    return Panel(title=title, across=across, up="jobs a second", curves=curves)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    usual = f"{COMMON_JOBS}_jobs"
    say("by slots")
    by_slots = {slots: measured(rounds, slots, f"--jobs={COMMON_JOBS}")[usual] for slots in SLOTS}
    say("by jobs")
    found = measured(rounds, COMMON_SLOTS, "--jobs", *map(str, JOBS))
    by_jobs = {jobs: found[f"{jobs}_jobs"] for jobs in JOBS}
    say("by users")
    found = measured(rounds, COMMON_SLOTS, f"--jobs={COMMON_JOBS}", "--users", *map(str, USERS))
    by_users = {users: found[f"{usual}_of_{users}_users" if users > 1 else usual] for users in USERS}
    panels = [
        rates(f"{COMMON_JOBS} jobs, by slots", "slots", by_slots),
        costs(f"{COMMON_JOBS} jobs, by slots", "slots", by_slots),
        costs(f"{COMMON_SLOTS} slots, by jobs in the queue", "jobs", by_jobs),
        costs(f"{COMMON_SLOTS} slots, {COMMON_JOBS} jobs, by users", "users", by_users),
    ]
    print(json.dumps(msgspec.to_builtins(panels)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
