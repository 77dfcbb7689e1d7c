"""Negotiators are told whose jobs a machine takes, as the record says it last."""

import asyncio
from types import SimpleNamespace
from typing import cast

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import BucketSpec
from kettle_services.iam.domain.joining_states import Worker
from kettle_services.iam.domain.state import Register
from kettle_services.iam.machine_owners import MachineOwners
from kettle_services.iam.record import Record
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")
TURNS = 100
"""Of the loop, in which all that waits for nothing from outside has ended."""


class SlowBus(MemoryBus):
    """The first who asks for the bucket gets it late."""

    def __init__(self, server: MemoryServer) -> None:
        super().__init__(server, subjects=SUBJECTS, identity=daemon("iam"))
        self.gate = asyncio.Event()
        self.asked = 0

    async def ensure_bucket(self, spec: BucketSpec) -> None:
        self.asked += 1
        if self.asked == 1:
            await self.gate.wait()
        await super().ensure_bucket(spec)


async def test_machines_that_join_at_once_keep_their_owners() -> None:
    """Who is told first of an older record does not end last, and take away what the other has put."""
    server, register = MemoryServer(), Register()
    bus = SlowBus(server)
    owners = MachineOwners(bus, SUBJECTS, cast("Record", SimpleNamespace(register=register)))
    register.restore("worker/n1", Worker("n1", "worker", "U", "ada", "t", 0.0, 0.0))
    first = asyncio.create_task(owners.tell())
    await asyncio.sleep(0)
    register.restore("worker/n2", Worker("n2", "worker", "U", "ada", "t", 0.0, 0.0))
    second = asyncio.create_task(owners.tell())
    for _ in range(TURNS):
        await asyncio.sleep(0)
    bus.gate.set()
    await asyncio.gather(first, second)
    found: set[str] = set()
    async for change in bus.watch(SUBJECTS.machine_owners):
        if change is None:
            break
        if change.value is not None:
            found.add(change.key)
    assert {"n1", "n2"} == found
