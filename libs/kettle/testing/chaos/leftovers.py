"""The end of a run: all jobs are let go, and then nothing of them may be left."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.client import Client, ClientError
from kettle.testing.chaos.invariants import InvariantResult, verdict
from kettle.testing.chaos.process_signals import memory_kib, open_files
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.commands.schedd import Select

_LOOK_S: Final = 0.2
_FILES_MORE: Final = 24


class Holdings(msgspec.Struct, frozen=True):
    """What a service has: open files, KiB of memory."""

    files: int
    memory: int


def holdings(pool: ThrowawayPool) -> dict[str, Holdings]:
    """What each service and server has now."""
    return {each.name: Holdings(open_files(each.pid), memory_kib(each.pid)) for each in pool.state.daemons}


async def settle(client: Client, probe: int, *, bound_s: float) -> str:
    """
    Let every job come to its end; what is left when none has left the queue for as long as the bound, or nothing.
    """
    loop = asyncio.get_running_loop()
    await client.remove(Select(clusters=[probe]), "the run is over")
    jobs: list[Ad] = []
    fewest = sys.maxsize
    try:
        async with asyncio.timeout(bound_s) as bound:
            while jobs := await _queue(client):
                if len(jobs) < fewest:  # a slow machine is not a pool that has stopped
                    fewest = len(jobs)
                    bound.reschedule(loop.time() + bound_s)
                if all(ad.get("JobStatus") == JobStatus.HELD for ad in jobs):
                    await client.release(
                        Select(constraint=f"JobStatus == {JobStatus.HELD}"), "the fault is over"
                    )
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        return "\n".join([f"{len(jobs)} jobs did not end:", *[str(dict(ad)) for ad in jobs[:5]]])
    return ""


async def reported(pool: ThrowawayPool, *, bound_s: float) -> None:
    """Wait until iam has recorded the deeds that services keep for it, or for as long as the bound."""
    try:
        async with asyncio.timeout(bound_s):
            while any(path.stat().st_size for path in (pool.home / "deeds").glob("*.jsonl")):
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        return  # what is missing is found in the record


async def _queue(client: Client) -> list[Ad]:
    return await client.jobs(projection=("ClusterId", "ProcId", "JobStatus", "HoldReason", "HoldReasonCode"))


async def idle(pool: ThrowawayPool, *, bound_s: float) -> InvariantResult:
    """Every slot is free, no job's process or directory is left, every service serves."""
    found = ["nobody has looked"]
    try:
        async with asyncio.timeout(bound_s):
            while found := await _busy(pool):
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        pass
    return verdict(f"all is idle again within {bound_s:g} s", 1, found)


async def _busy(pool: ThrowawayPool) -> list[str]:
    try:
        machines = await pool.client.ads("Machine")
    except ClientError as error:
        return [str(error)]
    found = [] if machines else ["no machine is there"]
    found += [
        f"{ad.get('Name')} has {ad.get('Cpus')} of {ad.get('TotalCpus')} cores free"
        for ad in machines
        if ad.get("Cpus") != ad.get("TotalCpus")
    ]
    found += [
        f"{each.name} is {each.status}"
        for each in pool.state.daemons
        if each.status not in {"running", "standby"}
    ]
    return found + [f"{path} is left" for path in pool.sandboxes] + _strangers(pool)


def _strangers(pool: ThrowawayPool) -> list[str]:
    """
    Processes beyond one master, its zygote, the services, and the one starter that waits for the next job.
    """
    ours = {pool.state.pid, *(each.pid for each in pool.state.daemons)}
    others = [line for line in pool.processes() if int(line.split()[0]) not in ours]
    kept = [
        line
        for module in ("kettle_services.master.zygote", "kettle_services.starter")
        for line in [line for line in others if module in line][:1]
    ]
    return [f"process {line}" for line in others if line not in kept]


def nothing_grew(before: Mapping[str, Holdings], after: Mapping[str, Holdings]) -> InvariantResult:
    """No service has many more files open than it had."""
    problems = [
        f"{name} had {before[name].files} files open and has {now.files}"
        for name, now in after.items()
        if name in before and now.files > before[name].files + _FILES_MORE
    ]
    return verdict(f"no service has more than {_FILES_MORE} files more open", len(after), problems)
