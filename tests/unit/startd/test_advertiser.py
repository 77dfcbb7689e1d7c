"""What the pool is told of a machine."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.testing.patience import PATIENCE_S
from kettle_services.startd.advertiser import Advertiser
from kettle_services.startd.domain.slots.layout import SlotType, lay_out
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.state.changes import ClaimRemoved
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

from .hosts import claimed

SUBJECTS = Subjects("p")


def divided(*types: SlotType) -> Machine:
    total = Resources(cpus=4, memory=4096, disk=100_000)
    slots = lay_out(types, total, {})
    return Machine(Facts(name="host", total=total, detected=total, slots=slots), capability="right")


async def advertise(
    server: MemoryServer, machine: Machine, advertised_names: Path, *, withdraw: bool = False
) -> None:
    """Tell about a machine, and then die or go in order."""
    bus = MemoryBus(server, subjects=SUBJECTS, identity=daemon("startd"))
    advertiser = Advertiser(
        bus,
        SUBJECTS,
        machine,
        advertised_names=advertised_names,
        interval=300.0,
        delay=1.0,
        facts={"Machine": "elsewhere", "MyAddress": "<bus:4222>"},
        version="x",
    )
    task = asyncio.create_task(advertiser.run())
    await advertiser.told.wait()
    task.cancel()
    if withdraw:
        await advertiser.withdraw()


async def names(server: MemoryServer, bucket: str) -> set[str]:
    bus = MemoryBus(server, subjects=SUBJECTS, identity=daemon("negotiator"))
    found: set[str] = set()
    async for change in bus.watch(bucket):
        if change is None:
            break
        if change.value is not None:
            found.add(change.key)
    return found


@pytest.mark.parametrize("withdraw", [False, True])
async def test_what_a_former_startd_advertised_and_this_does_not_is_gone(
    tmp_path: Path, *, withdraw: bool
) -> None:
    """
    Slots of another layout, with the secrets that would let them be matched, and slots of claims that ended.
    """
    server = MemoryServer()
    advertised_names = tmp_path / "advertised"
    before = divided(SlotType(count=2), SlotType(partitionable=True))
    claimed(before, RequestMemory=64)
    await advertise(server, before, advertised_names)
    before.apply(ClaimRemoved("c1"))
    await advertise(server, divided(), advertised_names, withdraw=withdraw)

    ads, secrets = {"Machine.host.slot1=40host", "StartDaemon.host"}, {"host.slot1=40host"}
    expected = (set[str](), set[str]()) if withdraw else (ads, secrets)
    assert expected == (await names(server, SUBJECTS.ads), await names(server, SUBJECTS.private_ads))
    assert advertised_names.exists() is not withdraw


async def test_names_are_noted_once(tmp_path: Path) -> None:
    """The file does not grow with the number of starts."""
    server, advertised_names = MemoryServer(), tmp_path / "advertised"
    for _ in range(3):
        await advertise(server, divided(SlotType(count=2)), advertised_names)

    assert ["Machine.host.slot1=40host", "Machine.host.slot2=40host", "StartDaemon.host"] == sorted(
        advertised_names.read_text().splitlines()
    )


async def test_a_slot_is_told_of_again_whose_claim_was_over_before_anybody_heard_of_it(
    tmp_path: Path,
) -> None:
    """Else the negotiator would take what it has matched there for used, until the slot's ad is repeated."""
    server = MemoryServer()
    machine = divided(SlotType(partitionable=True))
    bus = MemoryBus(server, subjects=SUBJECTS, identity=daemon("startd"))
    advertiser = Advertiser(
        bus,
        SUBJECTS,
        machine,
        advertised_names=tmp_path / "advertised",
        interval=300.0,
        delay=1.0,
        facts={"Machine": "elsewhere", "MyAddress": "<bus:4222>"},
        version="x",
    )
    told = asyncio.create_task(advertiser.run())
    await advertiser.told.wait()
    claimed(machine, RequestMemory=64)
    advertiser.note_claim(machine.claims["c1"])
    machine.apply(ClaimRemoved("c1"))
    advertiser.now()
    watching = MemoryBus(server, subjects=SUBJECTS, identity=daemon("negotiator"))
    numbers: list[object] = []
    async with asyncio.timeout(PATIENCE_S), aclosing(watching.watch(SUBJECTS.ads, "Machine.>")) as changes:
        async for change in changes:
            if change is not None and change.value is not None:
                numbers.append(msgspec.msgpack.decode(change.value)["UpdateSequenceNumber"])
            if numbers[-1:] == [2]:
                break
    told.cancel()
    assert [1, 2] == numbers
