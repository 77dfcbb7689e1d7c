"""Who is elected, and who stays it, over a real server and between real processes."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.nats import NatsBus
from kettle.embedded import EmbeddedNats
from kettle.runtime import OwnerSettings
from kettle.runtime.leader_election import Candidacy
from kettle.runtime.process_identity import gone, presence
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING, server_directory
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

LEASE_S = 9.0


@pytest_asyncio.fixture
async def settings() -> AsyncIterator[OwnerSettings]:
    with server_directory() as directory:
        keys = directory / "keys"
        async with EmbeddedNats(directory / "nats", credentials=keys, permissions=EVERYTHING) as nats:
            yield OwnerSettings(
                pool="personal",
                nats_url=nats.url,
                nats_credentials=str(nats.credentials("test")),
                owner_lease=LEASE_S,
            )


async def is_elected(candidacy: Candidacy, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await candidacy.elected()
    except TimeoutError:
        return False
    return True


async def renewed(settings: OwnerSettings, times: int) -> None:
    """Wait until the lease was renewed so often."""
    subjects = Subjects(settings.pool)
    async with (
        asyncio.timeout(PATIENCE_S),
        NatsBus.connect(
            settings.nats_url,
            subjects=subjects,
            identity=daemon("test"),
            credentials=settings.nats_credentials,
        ) as bus,
        aclosing(bus.watch(subjects.leases)) as changes,
    ):
        while await anext(changes) is not None:
            pass
        for _ in range(times):
            await anext(changes)


async def test_who_thinks_hard_stays_elected(settings: OwnerSettings) -> None:
    """A service whose loop does not turn has its lease renewed all the same."""
    async with (
        Candidacy.enter(settings, "test", "shard") as first,
        AsyncExitStack() as stack,
    ):
        assert await is_elected(first, PATIENCE_S)
        second = await stack.enter_async_context(Candidacy.enter(settings, "test", "shard"))
        watching = threading.Thread(target=lambda: asyncio.run(renewed(settings, 2)))
        watching.start()
        watching.join()  # this loop does nothing meanwhile, which is the point of it
        assert not await is_elected(second, 0.5)


async def test_the_next_one_is_elected_as_soon_as_the_first_has_gone(settings: OwnerSettings) -> None:
    """A lease that is given back is not waited for."""
    long = OwnerSettings(
        pool=settings.pool,
        nats_url=settings.nats_url,
        nats_credentials=settings.nats_credentials,
        owner_lease=600.0,
    )
    async with AsyncExitStack() as stack:
        async with Candidacy.enter(long, "test", "shard") as first:
            assert await is_elected(first, PATIENCE_S)
            second = await stack.enter_async_context(Candidacy.enter(long, "test", "shard"))
            assert not await is_elected(second, 0.3)
        assert await is_elected(second, PATIENCE_S)


async def test_the_death_of_a_process_is_seen_at_once() -> None:
    """
    A process that knows how another describes itself learns of its end when it has ended, and not before.
    """
    code = "from kettle.runtime.process_identity import presence; print(presence(), flush=True); input()"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    text = (await process.stdout.readline()).decode()
    ended = asyncio.create_task(gone(text))
    try:
        assert set() == (await asyncio.wait({ended}, timeout=0.3))[0]
    finally:
        process.send_signal(signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        await ended
        await process.wait()
        await gone(text)


@pytest.mark.parametrize("changed", [{"boot": "another"}, {"namespace": 1}])
async def test_nothing_is_proven_of_a_process_elsewhere(changed: dict[str, str | int]) -> None:
    """On another machine, or where its number means another process, nobody can say that it is over."""
    described = msgspec.json.encode({**msgspec.json.decode(presence()), "pid": 2**22 + 1, **changed}).decode()
    for text in (described, "no description"):
        waiting = asyncio.create_task(gone(text))
        assert set() == (await asyncio.wait({waiting}, timeout=0.2))[0]
        waiting.cancel()


async def test_a_number_that_was_given_again_is_another_process() -> None:
    """A process with this id but another start time means that the described process has ended."""
    other = msgspec.json.encode({**msgspec.json.decode(presence()), "started": 1}).decode()
    async with asyncio.timeout(PATIENCE_S):
        await gone(other)
