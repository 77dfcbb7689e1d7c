"""Bugs that the fault harness has found, each as the shortest way to see it."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusUnavailableError, NoResponderError, ReplyTimeoutError, StreamSpec
from kettle.embedded import EmbeddedNats
from kettle.testing.chaos import disk
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING
from kettle.testing.throwaway_pool import throwaway_pool
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    if why := disk.why_not():
        pytest.skip(why)
    with ExitStack() as stack:
        yield stack.enter_context(disk.small_disk(tmp_path / "small", mib=512, mode=0o700))


@pytest.mark.breaks_servers
async def test_a_service_that_ends_on_a_full_disk(tmp_path: Path, template: Path, small: Path) -> None:
    """
    The master outlives a state file that cannot be written, keeps its services, and writes it when there is room.

    It ended with the error of the write, and killed the whole pool: a crash where a clean stop was promised.
    """
    async with throwaway_pool(
        tmp_path, home=small, cpus=2, template=template, settings={"master": {"disk_interval": 600.0}}
    ) as pool:
        master = pool.state.pid
        killed = pool.pid("negotiator")
        async with disk.full(small), asyncio.timeout(PATIENCE_S):
            pool.kill("negotiator")
            while Path(f"/proc/{killed}").exists():  # until the master has taken note of its end
                await asyncio.sleep(0.01)
        await pool.restarted("negotiator", after=killed, within_s=PATIENCE_S)
        assert master == pool.state.pid


async def test_a_server_that_could_not_write_for_a_moment(small: Path) -> None:
    """
    NATS tells of a store that takes nothing any more, and is well again after it was started again.

    It refuses without end what it failed to store once: reports of workers went nowhere, and no job ended any more. The
    master starts it again when it tells so.
    """
    nats = EmbeddedNats(small, credentials=small / "credentials", permissions=EVERYTHING, name="test")
    subjects = Subjects("test")
    async with nats, connected(nats, subjects) as bus:
        await bus.ensure_stream(StreamSpec(name=subjects.work_stream, subjects=[subjects.work_all]))
        await bus.append(subjects.work("a", "b"), b"x")
        assert not nats.restart_reason()
        async with disk.full(small):
            assert "no space left on device" in await until_refused(nats, bus, subjects.work("a", "b"))
        with pytest.raises(ReplyTimeoutError):  # there is room, and nothing is stored
            await bus.append(subjects.work("a", "b"), b"x", deadline=1.0)
        nats.restart_reason()  # what it may have said of that
        assert not nats.restart_reason()
        await nats.stop()
        await nats.start()
        async with asyncio.timeout(PATIENCE_S):
            await until_stored(bus, subjects.work("a", "b"))
        assert not nats.restart_reason()


async def until_refused(nats: EmbeddedNats, bus: NatsBus, subject: str) -> str:
    """
    Store until the server says that it cannot; what it says. One that is slow for a moment is none that fails.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await bus.append(subject, b"x" * 4096, deadline=1.0)
            except ReplyTimeoutError:
                if reason := nats.restart_reason():
                    return reason


async def until_stored(bus: NatsBus, subject: str) -> None:
    """Try until the server is back."""
    while True:
        with suppress(BusUnavailableError, ReplyTimeoutError, NoResponderError):
            await bus.append(subject, b"x", deadline=1.0)
            return


@asynccontextmanager
async def connected(nats: EmbeddedNats, subjects: Subjects) -> AsyncGenerator[NatsBus]:
    async with NatsBus.connect(
        nats.url, subjects=subjects, identity=daemon("gateway"), credentials=str(nats.credentials("test"))
    ) as bus:
        yield bus
