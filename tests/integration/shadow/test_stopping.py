"""Ending attempts, and ending itself."""

import asyncio

import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.ports import RefusedError
from kettle.testing.patience import PATIENCE_S
from kettle_wire.attempts import Ending
from kettle_wire.commands.attempt_reports import Attempt
from kettle_wire.commands.shadow import Stop
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

from .fakes import POOL, Side, until


async def test_a_stop_order_is_followed_once(side: Side) -> None:
    """The schedd repeats it with each exchange of lists; the worker hears it once."""
    job = side.assignment()
    stop = Stop(job=job.job, attempt=1, ending=Ending(code=1023, reason="the job was removed"))
    async with side.shadow():
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        for _ in range(5):
            await side.schedd.order(stop)
        await until(lambda: side.startd.ended)
        await side.schedd.order(stop)
        await asyncio.sleep(0.1)

    assert [Attempt(job.job, 1)] == side.startd.ended


async def test_a_stop_order_waits_for_the_activation(side: Side) -> None:
    """A worker that has not heard of an attempt would not end it, and start it then."""
    job = side.assignment()
    side.startd.refuses = lambda _: RefusedError("busy", "later")
    async with side.shadow():
        await side.schedd.hand_over(job)
        await side.schedd.order(
            Stop(job=job.job, attempt=1, ending=Ending(code=1023, reason="the job was removed"))
        )
        await until(lambda: len(side.startd.messages) > 2)
        assert [] == side.startd.ended
        side.startd.refuses = lambda _: None
        await until(lambda: [Attempt(job.job, 1)] == side.startd.ended)


async def test_a_pending_stop_ends_with_its_attempt(side: Side) -> None:
    """When the schedd forgets the attempt, nobody goes on telling a machine that does not answer."""
    job = side.assignment()
    async with side.shadow() as shadow:
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        side.startd.silent = True
        await side.schedd.order(
            Stop(job=job.job, attempt=1, ending=Ending(code=1023, reason="the job was removed"))
        )
        await until(lambda: side.startd.ended)
        side.schedd.over.add(Attempt(job.job, 1))
        side.schedd.live.clear()
        shadow.schedd_came_back()
        await until(lambda: not [task for task in asyncio.all_tasks() if task.get_name() == "stop 1.0"])


async def test_it_stops_while_nobody_answers(side: Side) -> None:
    """
    Activations, ends, confirmations and reports under way to silent machines keep nothing from stopping.
    """
    jobs = [side.assignment(proc) for proc in range(3)]
    async with asyncio.timeout(PATIENCE_S), side.shadow(call_deadline=3600.0):
        await side.schedd.hand_over(jobs[0])
        await until(lambda: side.startd.runs)
        side.startd.silent = True
        await side.schedd.order(
            Stop(job=jobs[0].job, attempt=1, ending=Ending(code=1023, reason="the job was removed"))
        )
        await side.schedd.hand_over(*jobs[1:])
        await until(lambda: side.startd.ended and len(side.startd.messages) > 1)
        side.schedd.bus.close()
        await side.startd.exited(jobs[0])
        await asyncio.sleep(0.05)

    side.schedd.bus = MemoryBus(side.server, subjects=Subjects(POOL), identity=daemon("schedd"))


async def test_it_stops_while_it_reads(side: Side) -> None:
    """A large input file that is being hashed does not keep it."""
    with (side.work / "large").open("wb") as file:
        file.truncate(1 << 40)  # without blocks, but with bytes to hash: it takes a quarter of an hour
    async with asyncio.timeout(PATIENCE_S), side.shadow():
        await side.schedd.hand_over(side.assignment(TransferInput="large"))
        await asyncio.sleep(0.2)


async def test_nothing_is_taken_over_while_it_stops(side: Side) -> None:
    """A job that is handed over too late is refused, and the schedd keeps it for the next shadow."""
    async with side.shadow() as shadow:
        shadow.close()
        with pytest.raises(RefusedError, match="asked to stop"):
            await side.schedd.hand_over(side.assignment())


def conversations() -> list[str]:
    return [name for task in asyncio.all_tasks() if (name := task.get_name()).startswith("worker ")]


async def test_nothing_is_left_of_a_machine_without_jobs(side: Side) -> None:
    """The conversation with a machine ends after the last attempt on it, and after its confirmations."""
    job, gone = side.assignment(0), side.assignment(1)
    async with side.shadow() as shadow:
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
        assert ["worker worker"] == conversations()
        report = await side.startd.exited(job)
        await until(lambda: report.key in side.startd.confirmed)
        await until(lambda: not conversations())

        side.startd.silent = True
        await side.schedd.hand_over(gone)
        await until(lambda: Attempt(gone.job, 1) in {Attempt(a.job, 1) for a in side.startd.activations})
        side.schedd.over.add(Attempt(gone.job, 1))
        side.schedd.live.clear()
        shadow.schedd_came_back()
        await until(lambda: not conversations())
