"""Pools of peers that something happens to, and what happens between a cloud and its provisioner."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.conformance.providers.fault_proxy import Answer, Asked, Fault, Forward, lost_answers

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.worker_pools import LeaseShown
from kettle_wire.events import decode, tag_of
from kettle_wire.leases import LeaseState

from .elastic_peers import Peer

POOL: Final = """\
name = "{name}"
max = {most}
idle = "2s"
waits = 0
life = "{life}"
[[offer]]
name = "small"
provider = "{provider}"
cpus = 2
memory = "1 GB"
boot = "1s"
{offer}
"""
JOBS: Final = """\
executable = /bin/sleep
arguments = {seconds}
requirements = TARGET.KettlePool == "{name}"
request_memory = 128
queue {count}
"""
LOOK_S: Final = 0.2
OVER: Final = [LeaseState.GONE, LeaseState.FAILED]


class Case:
    """A pool of a peer that something happens to."""

    def __init__(self, pool: ThrowawayPool, peer: Peer, name: str, place: Path) -> None:
        self.pool, self.peer, self.name, self.place = pool, peer, name, place
        self.applies = False

    async def said(self, *words: str) -> str:
        """What a command says, as soon as there is a scaler that answers."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status, out, _ = await self.pool.kettle("pool", *words)
                if status == 0:
                    return out
                await asyncio.sleep(LOOK_S)

    async def applied(self, *, most: int = 2, life: str = "1h", least: int = 0) -> None:
        """The pool's file."""
        text = POOL.format(
            name=self.name, most=most, life=life, provider=self.peer.name, offer=self.peer.offer
        )
        (file := self.place / f"{self.name}.toml").write_text(f"min = {least}\n{text}")
        await self.said("apply", str(file))
        self.applies = True

    async def submitted(self, count: int = 4, seconds: int = 1) -> int:
        """Jobs that only this pool's machines run; their cluster."""
        text = JOBS.format(name=self.name, count=count, seconds=seconds)
        return (await self.pool.client.submit(text, cwd=self.place)).cluster

    async def leases(self) -> list[LeaseShown]:
        """Those that are not over."""
        return (await self.pool.client.worker_pools.leases(self.name)).leases

    async def ended(self) -> list[LeaseShown]:
        """Those that are over."""
        return (await self.pool.client.worker_pools.leases(self.name, states=OVER)).leases

    async def until(self, is_so: Callable[[list[LeaseShown]], bool], *, within: float = 2.0) -> None:
        """Wait for a state of the leases; `within`: so many times the usual patience."""
        async with asyncio.timeout(within * PATIENCE_S):
            while not is_so(await self.leases()):
                await asyncio.sleep(LOOK_S)

    async def ready(self, number: int = 1) -> list[str]:
        """The handles of machines that take jobs, as soon as there are so many."""
        serving = {LeaseState.READY, LeaseState.BUSY}
        await self.until(lambda held: sum(each.state in serving for each in held) >= number)
        return [each.handle for each in await self.leases() if each.state in serving]

    async def done(self, cluster: int) -> None:
        """All jobs end well."""
        async with asyncio.timeout(4 * PATIENCE_S):
            progress = await self.pool.client.wait(select(cluster))
        assert not progress.bad()

    async def over(self) -> list[LeaseShown]:
        """All leases, when none is left and the peer has nothing of ours any more."""
        await self.until(lambda held: not held, within=3.0)
        async with asyncio.timeout(PATIENCE_S):
            while await asyncio.to_thread(self.peer.there):
                await asyncio.sleep(LOOK_S)
        return await self.ended()

    async def events(self, lease: str) -> list[str]:
        """The types of what was recorded of one."""
        told = await self.pool.client.worker_pools.timeline(lease)
        return [tag_of(decode(each.data)).partition("/")[0] for each in told.moments]


def error(status: int, code: str) -> Answer:
    body = (
        f"<Response><Errors><Error><Code>{code}</Code><Message>said so</Message></Error></Errors></Response>"
    )
    return Answer(status, {"Content-Type": "text/xml"}, body.encode())


def each_fifth(number: int = 5) -> Fault:
    """
    Of all that the cloud is asked, one answer of five is lost: counted by what is asked, so that the first answer about a machine that is
    made is always one of them.
    """
    asked_so_far = Counter[tuple[str, str]]()

    def unlucky(asked: Asked) -> bool:
        what = asked.action, asked.field("DryRun")
        asked_so_far[what] += 1
        return asked_so_far[what] % number == 1

    return lost_answers(unlucky)


async def small_pages(asked: Asked, forward: Forward) -> Answer:
    """Moto's pages have five machines, which is the fewest that EC2 knows."""
    return await forward(replace(asked, body=asked.body.replace(b"MaxResults=500", b"MaxResults=5")))


class Kept:
    """A cloud that says twice that it removes a machine, and does nothing."""

    def __init__(self) -> None:
        self.times = 0

    async def fault(self, asked: Asked, forward: Forward) -> Answer:
        if asked.action != "TerminateInstances" or self.times >= 2:
            return await forward(asked)
        self.times += 1
        return Answer(200, {"Content-Type": "text/xml"}, b"<TerminateInstancesResponse/>")


def invisible(times: int) -> Fault:
    """Lists that are late: so many of them have nothing."""
    left = times

    async def fault(asked: Asked, forward: Forward) -> Answer:
        nonlocal left
        if asked.action != "DescribeInstances" or left <= 0:
            return await forward(asked)
        left -= 1
        body = b"<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>"
        return Answer(200, {"Content-Type": "text/xml"}, body)

    return fault
