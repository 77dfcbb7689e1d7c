"""
Pilots over one login: how many an entrypoint looks after, at how many sessions, questions and bytes of memory.

    python -m tests.performance.entrypoint [--pilots 20000] [--seconds 60]

A real OpenSSH server on this machine lets one account in; behind it shell programs stand for Slurm, and their jobs only wait.  The
entrypoint's part that looks after jobs runs in this process, with its record in memory; activations and reports go over a bus in memory.
Prints JSON.
"""

import argparse
import asyncio
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.conformance.batch.entrypoint import Entrypoint, World, job

from kettle.testing.measurements import say, summary
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle.testing.servers.sshd import SshServer, no_sshd, sshd
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.domain.attempts.attempt import Stage
from kettle_wire.batch import BatchKind

_AT_ONCE: Final = 500
_LOOK_S: Final = 0.5
_CHANGES: Final = 30


async def submitted(entrypoint: Entrypoint, count: int) -> float:
    """Seconds in which so many are submitted."""
    began = time.perf_counter()
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one() -> None:
        async with gate:
            key, decided = await entrypoint.claim()
            assert decided.granted, decided.reason
            await entrypoint.activate(key, job(key, "exit 0"))

    await asyncio.gather(*(one() for _ in range(count)))
    while True:
        stages = [each.run.stage for each in entrypoint.claims.values() if each.run is not None]
        there = stages.count(Stage.SUBMITTED)
        if there == count:
            return time.perf_counter() - began
        say(f"{there} of {count} are submitted")
        await asyncio.sleep(5.0)


async def measured(server: SshServer, place: Path, pilots: int, seconds: float) -> dict[str, Any]:
    """Submit them, look after them for a while, then have all of them end."""
    fake = FakeSlurm(place / "slurm")
    settings = BatchSettings(
        name="site",
        kind=BatchKind.SLURM,
        directory=str(place / "there"),
        host=f"{server.user}@127.0.0.1:{server.port}",
        key_file=str(server.place / "key"),
        known_hosts_file=str(server.known_hosts(server.port)),
        environment=fake.environment,
        patience=120.0,
    )
    world = World(settings, place)
    async with world.running() as entrypoint:
        await entrypoint.well()
        took = await submitted(entrypoint, pilots)
        say(f"submitted in {took:.0f} s")
        before, used = fake.asked("squeue"), time.process_time()
        await asyncio.sleep(seconds)
        polls, busy = fake.asked("squeue") - before, time.process_time() - used
        with (fake.place / "journal").open("a") as journal:
            for number, (_, name, *_, script) in fake.jobs().items():
                journal.write(f"{number}|{name}|RUNNING|None|0|{script}\n")
        seen = await _running(entrypoint, pilots)
        before = fake.asked("squeue")
        late = await _late(entrypoint, fake, min(pilots, _CHANGES))
        return {
            "pilots": pilots,
            "submitted_per_s": round(pilots / took, 1),
            "double": len(fake.jobs()) - pilots,
            "polls_in_a_minute": round(60 * polls / seconds, 1),
            "busy_share": round(busy / seconds, 3),
            "all_seen_running_s": round(seen, 1),
            "one_that_changes_is_reported_after_s": summary(late),
            "polls_for_that": fake.asked("squeue") - before,
            "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        }


async def _running(entrypoint: Entrypoint, count: int) -> float:
    """Seconds until so many are seen running."""
    began = time.perf_counter()
    while sum(each.run is not None and each.run.began > 0 for each in entrypoint.claims.values()) < count:
        await asyncio.sleep(_LOOK_S)
    return time.perf_counter() - began


async def _late(entrypoint: Entrypoint, fake: FakeSlurm, count: int) -> list[float]:
    """
    Seconds from the change of one job after the other at the batch system to the report of it at the access point.
    """
    jobs = dict(list(fake.jobs().items())[:count])
    claims = {each.run.id: claim for claim, each in entrypoint.claims.items() if each.run is not None}
    reports, late = entrypoint.world.reports, list[float]()
    for number, (_, name, *_, script) in jobs.items():
        told, began = len(reports), time.perf_counter()
        with (fake.place / "journal").open("ab", buffering=0) as journal:
            journal.write(f"{number}|{name}|SUSPENDED|None|0|{script}\n".encode())
        while not any(each.claim == claims[number] for each in reports[told:]):
            await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began)
    return late


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pilots", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="for which all of them wait")
    arguments = parser.parse_args()
    if why := no_sshd():
        raise SystemExit(why)
    with tempfile.TemporaryDirectory(prefix="kettle-ce-", dir="/tmp") as name:
        os.chmod(name, 0o755)  # noqa: PTH101 - a string
        keys = Path(name, "ssh")
        keys.mkdir()
        with sshd(keys) as server:
            found = asyncio.run(measured(server, Path(name), arguments.pilots, arguments.seconds))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
