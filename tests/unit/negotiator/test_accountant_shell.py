"""The accountant's record: what is visible of it, and when."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from kettle.eventsourcing.memory import MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.working_set import Checkpointer
from kettle.testing.gated_log import GatedLog
from kettle.testing.served import Endpoints
from kettle_services.negotiator.accountant import Accounts
from kettle_services.negotiator.domain.accountant import Accountant
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.principals import Principal
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.commands.negotiator import QUERY_PRIORITIES, SET_PRINCIPAL, QueryPriorities, SetPrincipal
from kettle_wire.identity import Identity

from .test_cycle import slot

ROOT = Identity("user", "root")


class Office:
    """Accounts with all that they need."""

    def __init__(self, log: GatedLog, shard: Shard) -> None:
        self.log, self.pool, self.accountant = log, Pool(), Accountant()
        checkpointer = Checkpointer(MemoryWorkingSet(log), "s", epoch=shard.tenure.epoch, frame=0)
        self.accounts = Accounts(shard, checkpointer, self.accountant, self.pool, administrators=["root"])
        self.asked = Endpoints(self.accounts.served())


@pytest_asyncio.fixture
async def office() -> AsyncIterator[Office]:
    log = GatedLog()
    async with Shard.own(log, "s", owner="me") as shard:
        committer = asyncio.create_task(shard.run())
        yield Office(log, shard)
        committer.cancel()


def factor(value: float, id_: str = "1") -> SetPrincipal:
    return SetPrincipal(id=id_, name="ada", setting="factor", value=value)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_nobody_sees_what_is_not_committed(office: Office) -> None:
    """
    Neither a query nor a cycle is answered by a command that might still be lost: both wait for its commit.
    """
    office.log.gate.clear()
    setting = asyncio.create_task(office.asked.ask(SET_PRINCIPAL, factor(10.0), ROOT))
    await turns()
    asked = asyncio.create_task(office.asked.ask(QUERY_PRIORITIES, QueryPriorities(names=["ada"]), ROOT))
    cycle = asyncio.create_task(office.accounts.standings(1.0, ["ada"]))
    await turns()
    assert [False, False, False] == [task.done() for task in (setting, asked, cycle)]
    assert {} == office.accountant.principals

    office.log.gate.set()
    (shown,) = (await asked).submitters
    assert (10.0, 10.0) == (shown.factor, (await cycle)["ada"].factor)
    assert 1 == (await setting).submitters


async def test_a_command_whose_caller_went_away_is_carried_out_once(office: Office) -> None:
    """Its repeat gets the first answer, and the next command is decided by what it has changed."""
    office.log.gate.clear()
    setting = asyncio.create_task(office.asked.ask(SET_PRINCIPAL, factor(10.0), ROOT))
    await turns()
    setting.cancel()
    office.log.gate.set()
    assert 1 == (await office.asked.ask(SET_PRINCIPAL, factor(10.0), ROOT)).submitters
    assert Principal(factor=10.0) == office.accountant.principals["ada"]
    assert [1] == [len(frame.entries) async for frame in office.log.read("s")]


async def test_only_names_that_a_schedd_knows_are_charged(office: Office) -> None:
    """
    A startd cannot make submitters up; one who was in use when that was recorded is charged while its schedd is away.
    """
    for name in ("ada", "bob", "eve"):
        office.pool.slot(name, slot(name, 8, State="Claimed", PartitionableSlot=False, AccountingGroup=name))
    office.pool.submitter("k", SubmitterAd(name="ada", schedd="ap", idle=0, running=1, held=0, requests=[]))
    office.accountant.restore({"bob": Principal(slots=1.0, weight=8.0), "eve": Principal()})
    office.accounts.observe()

    assert {"ada", "bob"} == {event.principal for event in office.accountant.charge(2e9)}
