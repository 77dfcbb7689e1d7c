"""
What a personal pool costs that has nothing to do: its processor time, in percent of one core, by service.

    python -m tests.performance.idle [--settle 20] [--seconds 60] [--rounds 3]

It is a pool as `kettle up` makes it, with the intervals that people have; nobody asks it anything meanwhile.
Beside the processor time stands how often the processes of a service have woken, each second: that is what makes the difference on a
machine that could sleep.
"""

import argparse
import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kettle import pool
from kettle.pool import MasterState, processes
from kettle.testing.measurements import below, processor_seconds, say, summary

SERVERS: Final = ("nats", "postgres")
_UP_S: Final = 120.0


class Use(dict[str, tuple[float, int]]):
    """By service: processor seconds, and how often it has waited, so far."""


def used(state: MasterState) -> Use:
    """All services, the servers with their own processes, and the master."""
    found = Use()
    for name, pids in (
        {each.name: [each.pid] for each in state.daemons if each.pid} | {"master": [state.pid]}
    ).items():
        everybody = {*pids, *(child for pid in pids for child in below(pid) if name in SERVERS)}
        found[name] = (
            sum(processor_seconds(pid, ended_children=name in SERVERS) for pid in everybody),
            sum(map(waits, everybody)),
        )
    return found


def waits(pid: int) -> int:
    """How often the threads of a process have waited for something so far."""
    count = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            lines = (thread / "status").read_text().splitlines()
            count += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
    return count


def measure(arguments: argparse.Namespace, home: Path) -> dict[str, Any]:
    """A pool from its start to its end, most of it asleep."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("KETTLE_") or name.endswith("_BIN")
    }
    started = pool.up(home, environ=environ, deadline_s=_UP_S)
    try:
        time.sleep(arguments.settle)
        rounds: list[dict[str, tuple[float, float]]] = []
        for _ in range(arguments.rounds):
            before, began = used(started.state), time.monotonic()
            time.sleep(arguments.seconds)
            after, took = used(started.state), time.monotonic() - began
            rounds.append(
                {
                    name: ((cpu - before[name][0]) / took * 100, (woken - before[name][1]) / took)
                    for name, (cpu, woken) in after.items()
                    if name in before
                }
            )
            say(f"  {sum(cpu for cpu, _ in rounds[-1].values()):.2f} % of a core")
        count = len(processes.of_pool(started.state.pool_id, home / "execute"))
    finally:
        pool.down(home, deadline_s=_UP_S)
    return {
        "percent_of_a_core": summary((sum(cpu for cpu, _ in each.values()) for each in rounds), 2),
        "waits_per_second": summary((sum(woken for _, woken in each.values()) for each in rounds), 1),
        "by_service": {
            name: {
                "percent_of_a_core": summary((each[name][0] for each in rounds), 2),
                "waits_per_second": summary((each[name][1] for each in rounds), 1),
            }
            for name in sorted(rounds[0], key=lambda name: -rounds[0][name][0])
        },
        "processes": count,
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--settle", type=float, default=20.0, help="seconds before the first round")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        print(json.dumps(measure(parser.parse_args(), Path(directory) / "home"), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
