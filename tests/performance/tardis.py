"""
Two scalers on the same work: COBalD/TARDIS, unmodified, and Kettle's own; JSON on standard output.

    python -m tests.performance.tardis --python ENVIRONMENT/bin/python [--rounds 3] [--jobs 24]

ENVIRONMENT has `cobald-tardis`. Machines are pilots of a real Slurm with a node of eight cores, four pilots of two cores at most.
TARDIS asks the pool through condor_status and condor_drain, and starts pilots that join the pool by a token; Kettle's scaler starts
pilots of leases. Both start with an empty pool, and are looked at from the submission until half a minute after the last job. TARDIS's
controller follows how much of the machines is used, and does not see work that waits: it keeps one pilot to see with.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from kettle.client import select
from kettle.testing.measurements import say, summary
from kettle.testing.servers.slurm import PARTITION, SlurmCluster, no_slurm, slurm
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle.worker_pools.reading import read_pool
from kettle_services.condor import launchers

SERVICES: Final = [
    "collector", "negotiator", "schedd", "shadow", "accounting", "iam", "scaler", "provisioner"
]  # fmt: skip
PROGRAM: Final = str(Path(sys.executable).parent / "kettle")
CORES: Final = 2
MOST: Final = 4
IDLE_S: Final = 5
AFTER_S: Final = 30.0
WITHIN_S: Final = 600.0
_LOOK_S: Final = 0.2
JOBS: Final = "executable = /bin/sleep\narguments = {seconds}\ntransfer_executable = false\nrequest_memory = 128\nqueue {count}\n"
POOL: Final = f"""\
name = "race"
max = {MOST}
idle = "{IDLE_S}s"
life = "30m"
waits = 0
[[offer]]
name = "pilot"
provider = "pilots"
template = "{PARTITION}"
cpus = {CORES}
memory = "2 GB"
boot = "3s"
"""
COBALD: Final = """\
pipeline:
  - __type__: cobald.controller.linear.LinearController
    low_utilisation: 0.5
    high_allocation: 0.9
    rate: 2
    interval: 1
  - __type__: cobald.decorator.limiter.Limiter
    minimum: 2
  - __type__: tardis.resources.poolfactory.create_composite_pool
    configuration: tardis.yml
"""
TARDIS: Final = f"""\
Plugins: {{{{}}}}
BatchSystem:
  adapter: HTCondor
  ratios:
    cpu_ratio: Real(TotalSlotCpus-Cpus)/TotalSlotCpus
    memory_ratio: Real(TotalSlotCpus-Cpus)/TotalSlotCpus
  max_age: 0.02
Sites:
  - name: Cluster
    adapter: Slurm
    quota: {MOST * CORES}
    drone_heartbeat_interval: 1
Cluster:
  bulk_delay: 0.2
  MachineTypes:
    - pilot
  MachineTypeConfiguration:
    pilot:
      Walltime: 30
      Partition: {PARTITION}
      StartupCommand: {{startup}}
  MachineMetaData:
    pilot:
      Cores: {CORES}
      Memory: 2
      Disk: 4
"""
DRONE: Final = """\
#!/bin/sh
export PATH=/usr/local/bin:/usr/bin:/bin
umask 077
home=$(mktemp -d /tmp/kettle-drone.XXXXXX) || exit 1
export KETTLE_HOME="$home/pool"
mkdir "$KETTLE_HOME"
cat >"$KETTLE_HOME/kettle.toml" <<END
[startd]
num_cpus = {cores}
memory = 2048
update_interval = 1.0
attributes = {{ TardisDroneUuid = "$TardisDroneUuid" }}
END
{program} worker join {address} --token-file {token} --home "$KETTLE_HOME" --name "d$SLURM_JOB_ID" || exit 1
{program} run master &
master=$!
trap 'kill -TERM $master' TERM
while kill -0 $master 2>/dev/null; do wait $master; done
rm -rf "$home"
"""


@asynccontextmanager
async def empty_pool(place: Path, cluster: SlurmCluster) -> AsyncGenerator[ThrowawayPool]:
    """A pool without machines, whose own scaler has pilots of Slurm to give."""
    pilots = {"kind": "slurm", "configuration": str(cluster.configuration), "program": PROGRAM}
    settings: dict[str, Any] = {
        "master": {"daemon_list": SERVICES},
        "scaler": {"renew_interval": 1.0},
        "provisioner": {"providers": {"pilots": pilots}},
    }
    async with throwaway_pool(place, settings=settings) as running:
        yield running


@asynccontextmanager
async def tardis(
    python: str, pool: ThrowawayPool, place: Path, cluster: SlurmCluster
) -> AsyncGenerator[Process]:
    """COBalD's daemon, which drives a pool through the commands of HTCondor."""
    commands = launchers.install(place / "commands")
    said = await pool.kettle("worker", "token", "create", "--max-uses", "500", "--lifetime", "1h")
    assert said.status == 0, said
    (token := place / "token").write_text(said.out.split()[0])
    token.chmod(0o600)
    address = f"http://127.0.0.1:{(pool.home / 'iam' / 'port').read_text().strip()}"
    (drone := place / "drone.sh").write_text(
        DRONE.format(cores=CORES, program=PROGRAM, address=address, token=token)
    )
    drone.chmod(0o755)
    (place / "tardis.yml").write_text(TARDIS.format(startup=drone))
    (place / "cobald.yml").write_text(COBALD)
    environment = {
        **pool.environ,
        "KETTLE_HOME": str(pool.home),
        "SLURM_CONF": str(cluster.configuration),
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
    }
    with (place / "cobald.log").open("wb") as log:
        daemon = await asyncio.create_subprocess_exec(
            python, "-m", "cobald.daemon", "cobald.yml", cwd=place, env=environment, stdout=log, stderr=log
        )
    try:
        yield daemon
    finally:
        with suppress(ProcessLookupError):
            daemon.send_signal(signal.SIGINT)
        await daemon.wait()


class Pilots:
    """Who has pilots that run, looked at again and again."""

    def __init__(self, cluster: SlurmCluster) -> None:
        self._cluster = cluster
        self.core_seconds = 0.0
        self.most = 0
        self.first = 0.0

    async def look(self) -> int:
        """How many there are that have not ended."""
        words = ("squeue", "--noheader", "--me", "--format=%T")
        states = (await asyncio.to_thread(self._cluster.run, *words)).split()
        running = states.count("RUNNING")
        self.most = max(self.most, running)
        self.first = self.first or (time.monotonic() if running else 0.0)
        return len(states)

    async def watch(self) -> None:
        """Add up; never returns."""
        at = time.monotonic()
        while True:
            there = await self.look()
            now = time.monotonic()
            self.core_seconds += there * CORES * (now - at)
            at = now
            await asyncio.sleep(_LOOK_S)


async def race(
    pool: ThrowawayPool, cluster: SlurmCluster, work: Path, count: int, seconds: int
) -> dict[str, float]:
    """The jobs, and what is there half a minute after they have ended."""
    pilots, began = Pilots(cluster), time.monotonic()
    watching = asyncio.create_task(pilots.watch())
    try:
        number = (await pool.client.submit(JOBS.format(count=count, seconds=seconds), cwd=work)).cluster
        first = 0.0
        async with asyncio.timeout(WITHIN_S):
            async for progress in pool.client.watch(select(number)):
                if progress.done and not first:
                    first = time.monotonic()
                if progress.done == count:
                    assert not progress.bad()
                    break
        done = time.monotonic()
        await asyncio.sleep(AFTER_S)
        left = await pilots.look()
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    return {
        "first_pilot_s": pilots.first - began,
        "first_job_s": first - began,
        "all_jobs_s": done - began,
        "most_pilots": pilots.most,
        "pilots_left": left,
        "provided_for_each_used": pilots.core_seconds / (count * seconds),
    }


async def by_tardis(
    python: str, place: Path, cluster: SlurmCluster, given: argparse.Namespace
) -> dict[str, float]:
    """One round with COBalD/TARDIS."""
    async with empty_pool(place, cluster) as pool:
        (work := place / "work").mkdir()
        async with tardis(python, pool, work, cluster):
            return await race(pool, cluster, work, given.jobs, given.seconds)


async def by_kettle(place: Path, cluster: SlurmCluster, given: argparse.Namespace) -> dict[str, float]:
    """One round with Kettle's scaler."""
    async with empty_pool(place, cluster) as pool:
        (work := place / "work").mkdir()
        await pool.client.worker_pools.apply(read_pool(POOL, "race.toml"))
        return await race(pool, cluster, work, given.jobs, given.seconds)


async def rounds(given: argparse.Namespace) -> dict[str, Any]:
    """Both, by turns."""
    found: dict[str, list[dict[str, float]]] = {"kettle": [], "tardis": []}
    with slurm() as cluster:
        for number in range(given.rounds):
            for name, seen in found.items():
                say(f"round {number + 1}: {name}")
                with tempfile.TemporaryDirectory(prefix="kettle-bench-race-") as directory:
                    place = Path(directory)
                    if name == "kettle":
                        seen.append(await by_kettle(place, cluster, given))
                    else:
                        seen.append(await by_tardis(given.python, place, cluster, given))
                await asyncio.to_thread(cluster.end_jobs)
    sides = {
        name: {key: summary((each[key] for each in seen), 2) for key in seen[0]}
        for name, seen in found.items()
    }
    return {"jobs": given.jobs, "seconds_of_a_job": given.seconds, **sides}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="of the environment that has cobald-tardis")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--seconds", type=int, default=4, help="of a job")
    given = parser.parse_args()
    if why := no_slurm():
        parser.exit(1, f"{why}\n")
    # A shell starts what it has in the background with this signal ignored, and COBalD would never hear that it is to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(json.dumps(asyncio.run(rounds(given)), indent=2))


if __name__ == "__main__":
    main()
