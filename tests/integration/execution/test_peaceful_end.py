"""A machine that is to be empty is so when the results of its jobs are where they belong."""

import asyncio
from contextlib import aclosing

import msgspec

from kettle.bus.memory import MemoryBus
from kettle.testing.patience import PATIENCE_S
from kettle.testing.submit_side import SubmitSide, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.wiring import running
from kettle_wire.identity import daemon
from kettle_wire.subjects import machine_key


async def unconfirmed(submitter: SubmitSide, count: int) -> None:
    """Wait until the machine says that so many results of its jobs have not been recorded."""
    name = machine_key(submitter.startd, f"slot1@{submitter.startd}")
    async with aclosing(submitter.schedd.watch(submitter.subjects.ads)) as changes:
        async for change in changes:
            if change is not None and change.key == name and change.value is not None:
                ad = msgspec.msgpack.decode(change.value)
                if ad.get("UnconfirmedReports") == count:
                    return


async def test_a_peaceful_end_waits_until_results_have_arrived(
    pool: WorkerPool, settings: StartdSettings
) -> None:
    """The machine says in its ads what is still to be fetched from it; while it is in use it does not."""
    submitter = pool.submitter
    bus = MemoryBus(pool.server, subjects=submitter.subjects, identity=daemon("startd"))
    async with asyncio.timeout(PATIENCE_S), running(bus, settings) as startd:
        activation = await submitter.start(script("head -c 700000 /dev/zero > big"))
        await submitter.final(activation)
        finishing = asyncio.create_task(startd.finish(asyncio.Event()))
        await unconfirmed(submitter, 1)
        for _ in range(100):
            await asyncio.sleep(0)  # all that can happen by itself does
        assert not finishing.done()
        assert 1 == len(list(pool.execute.glob("dir_*")))
        await submitter.settle()
        await finishing
        await unconfirmed(submitter, 0)
        await startd.drain()
    bus.close()
