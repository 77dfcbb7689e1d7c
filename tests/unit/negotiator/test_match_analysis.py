"""What the negotiator answers to `why`: the record, and the present state."""

import asyncio

import msgspec

from kettle.eventsourcing.memory import MemoryLog
from kettle.eventsourcing.shard import Shard
from kettle_services.negotiator.match_analysis import Answering
from kettle_services.negotiator.record import Record
from kettle_wire.ads import Ad, Expr
from kettle_wire.commands.negotiator import Verdict, Why
from kettle_wire.identity import Identity
from kettle_wire.subjects import slot_key

from .test_cycle import job, pool, slot, submitter

SOMEBODY = Identity("user", "bob")
QUESTION = Why(submitter="alice", schedd="ap", autocluster=1)


async def test_the_present_state_is_told_while_jobs_wait_and_follows_the_slots() -> None:
    """Nothing is on record; at first no slot is large enough, then one joins, then the jobs are gone."""
    one = pool([slot()], submitter("alice", (1, 3, job(RequestMemory=10_000))))
    async with Shard.own(MemoryLog(), "s", owner="me") as shard:
        answering = Answering(Record(shard), one)

        async def ask() -> Verdict:
            return await answering.why(QUESTION, SOMEBODY)

        first = (await ask()).analysis
        assert first is not None
        assert (1, 0, 8192.0) == (first.slots, first.able, first.remedies[0].most)
        assert first is (await ask()).analysis
        one.submitter("Submitter.alice", submitter("alice", (1, 3, job(RequestMemory=9_000))))
        one.slot(slot_key("m", "slot1@big"), slot("slot1@big", TotalSlotMemory=9_000))
        second = (await ask()).analysis
        assert second is not None
        assert (2, 1) == (second.slots, second.able)
        one.submitter("Submitter.alice", None)
        assert Verdict(cycle=None, at=0.0) == await ask()


async def test_many_questions_at_once_are_one_look() -> None:
    """Equal slots and jobs have one answer, which is the same object."""
    one = pool([slot()], submitter("alice", (1, 3, job())))
    async with Shard.own(MemoryLog(), "s", owner="me") as shard:
        answering = Answering(Record(shard), one)
        answers = await asyncio.gather(*(answering.why(QUESTION, SOMEBODY) for _ in range(5)))
    assert 1 == len({id(answer.analysis) for answer in answers})


async def test_jobs_are_tried_as_if_they_were_otherwise() -> None:
    """
    With other attributes, however they are spelled, other slots match; the jobs stay as they are, and what is no expression matches nothing.
    """
    one = pool([slot()], submitter("alice", (1, 3, job(RequestMemory=10_000))))
    async with Shard.own(MemoryLog(), "s", owner="me") as shard:
        answering = Answering(Record(shard), one)

        async def able(changes: Ad) -> int:
            question = msgspec.structs.replace(QUESTION, changes=changes)
            analysis = (await answering.why(question, SOMEBODY)).analysis
            assert analysis is not None
            return analysis.able

        assert [0, 1, 0] == [await able({}), await able({"requestmemory": 100}), await able({})]
        assert 0 == await able({"Requirements": Expr("1 +")})
