"""
A whole negotiation cycle through the real service: ads on the bus, matches out, the cycle on record.

A negotiator runs as a process of its own, on real servers. This script is all the startds and the one schedd: it puts
the slots' ads and secrets, then the demand, and counts the matches that it is told.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec, Served
from kettle.testing.measurements import processor_seconds, say, summary
from kettle.testing.pool_ads import jobs, machines
from kettle.testing.services import Backend, backend
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_wire import events
from kettle_wire.ads.daemon import ResourceRequest, SlotSecret, SubmitterAd
from kettle_wire.commands.schedd import MATCHED, Matched
from kettle_wire.commands.startd import Done
from kettle_wire.events import CycleNegotiated
from kettle_wire.identity import Identity
from kettle_wire.subjects import ad_key, machine_key, slot_key

SCHEDD: Final = "bench"
JOBS: Final = 100_000
USERS: Final = 50
SLOTS: Final = (10_000, 100_000)
AUTOCLUSTERS: Final = (1, 100, 1000)
TRUST_S: Final = 1.0
"""For so long the negotiator believes that what it gave will be used; then the slots are free again."""
_AT_ONCE: Final = 500
_WITHIN_S: Final = 300.0
_encode: Final = msgspec.msgpack.Encoder().encode


class Schedd:
    """Counts the jobs that matches came for."""

    def __init__(self) -> None:
        self.given = 0
        self.last = 0.0
        self._wanted = 0
        self._enough = asyncio.Event()

    async def matched(self, matched: Matched, caller: Identity) -> Done:
        """Take the matches of a cycle."""
        del caller
        self.given += sum(match.count for match in matched.matches)
        self.last = time.perf_counter()
        if self.given >= self._wanted:
            self._enough.set()
        return Done()

    async def served(self) -> None:
        """Wait until all have one."""
        async with asyncio.timeout(_WITHIN_S):
            await self._enough.wait()

    def begin(self, wanted: int) -> None:
        """Reset the counts; so many jobs want a match."""
        self.given, self._wanted = 0, wanted
        self._enough.clear()


async def together(work: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Many small things, some hundreds at a time."""
    pending = iter(work)
    while some := list(islice(pending, _AT_ONCE)):
        await asyncio.gather(*some)


@asynccontextmanager
async def negotiator(place: Backend) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The real service, as a process."""
    settings = place.settings(NegotiatorSettings, trust=TRUST_S)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KETTLE_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kettle_services.negotiator"),
        env=clean | settings.environ("negotiator"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


def demand(autoclusters: int, total: int, round_: int) -> list[SubmitterAd]:
    """
    So many idle jobs of so many autoclusters, of up to fifty users; no autocluster is that of another round.
    """
    users = min(USERS, autoclusters)
    requests: list[list[ResourceRequest]] = [[] for _ in range(users)]
    for number, ad in enumerate(jobs(autoclusters)):
        ad["RequestMemory"] = int(str(ad["RequestMemory"])) + round_
        request = ResourceRequest(
            autocluster=round_ * autoclusters + number, count=total // autoclusters, ad=ad
        )
        requests[number % users].append(request)
    return [
        SubmitterAd(
            name=f"user{user}",
            schedd=SCHEDD,
            idle=sum(request.count for request in asked),
            running=0,
            held=0,
            requests=asked,
        )
        for user, asked in enumerate(requests)
    ]


async def put_slots(bus: NatsBus, place: Backend, slots: int) -> None:
    """All machines' ads and secrets."""
    subjects = place.subjects

    def both() -> Iterable[Coroutine[Any, Any, object]]:
        for name, ad in machines(slots):
            startd = name.partition("@")[2]
            secret = SlotSecret(startd=startd, capability=f"{name}#secret")
            yield bus.put(subjects.private_ads, slot_key(startd, name), _encode(secret))
            yield bus.put(subjects.ads, machine_key(startd, name), _encode(ad))

    await together(both())


async def cycles(place: Backend) -> list[CycleNegotiated]:
    """All that were recorded."""
    return [
        event
        async for frame in place.log.read("negotiator")
        for entry in frame.entries
        if isinstance(event := events.decode(entry.data), CycleNegotiated)
    ]


async def one(
    bus: NatsBus, place: Backend, schedd: Schedd, pid: int, ads: list[SubmitterAd]
) -> dict[str, float]:
    """Demand in, all matches out; then everything as it was."""
    subjects = place.subjects
    wanted = sum(ad.idle for ad in ads)
    schedd.begin(wanted)
    before, number = processor_seconds(pid), len(await cycles(place))
    began = time.perf_counter()
    await together(
        bus.put(subjects.ads, ad_key("Submitter", f"{ad.name}@{ad.schedd}"), _encode(ad)) for ad in ads
    )
    await schedd.served()
    took = schedd.last - began
    made = (await cycles(place))[number:]
    figures = {
        "wall_s": took,
        "cpu_s": processor_seconds(pid) - before,
        "longest_cycle_s": max(event.duration for event in made),
        "cycles": float(len(made)),
        "jobs": float(schedd.given),
    }
    await together(bus.delete(subjects.ads, ad_key("Submitter", f"{ad.name}@{ad.schedd}")) for ad in ads)
    await asyncio.sleep(2 * TRUST_S)  # what was given is free again
    return figures


async def measure(
    directory: Path, slots: int, *, jobs: int, autoclusters: list[int], rounds: int
) -> dict[str, Any]:
    """All autocluster counts on one pool of so many slots."""
    report: dict[str, Any] = {}
    async with backend(directory) as place, place.bus() as bus:
        for bucket in (place.subjects.ads, place.subjects.private_ads):
            await bus.ensure_bucket(BucketSpec(name=bucket, ttl=3600.0))
        schedd = Schedd()
        await bus.serve("schedd", SCHEDD, [Served(MATCHED, schedd.matched)], version="0.1.0")
        began = time.perf_counter()
        await put_slots(bus, place, slots)
        report["ads_put_s"] = round(time.perf_counter() - began, 2)
        async with negotiator(place) as process:
            began = time.perf_counter()
            await one(bus, place, schedd, process.pid, demand(1, 100, 0))
            report["start_to_first_match_s"] = round(schedd.last - began, 2)
            turn = 0
            for number in autoclusters:
                found: list[dict[str, float]] = []
                for _ in range(rounds):
                    turn += 1
                    ads = demand(number, jobs, turn)
                    found.append(await one(bus, place, schedd, process.pid, ads))
                    say(f"  {slots} slots, {number} autoclusters: {found[-1]['wall_s']:.2f} s")
                report[f"autoclusters_{number}"] = {
                    name: summary(each[name] for each in found) for name in found[0]
                }
            status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            report["rss_mib"] = next(int(x.split()[1]) // 1024 for x in status if x.startswith("VmRSS"))
    return report


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, action="append", help="only so many; may be repeated")
    parser.add_argument("--jobs", type=int, default=JOBS, help="that wait")
    parser.add_argument("--autoclusters", type=int, nargs="+", default=AUTOCLUSTERS, help="that they are of")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    report: dict[str, Any] = {}
    for slots in arguments.slots or SLOTS:
        with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
            report[f"slots_{slots}"] = asyncio.run(
                measure(
                    Path(directory),
                    slots,
                    jobs=arguments.jobs,
                    autoclusters=arguments.autoclusters,
                    rounds=arguments.rounds,
                )
            )
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
