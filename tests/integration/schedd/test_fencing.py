"""Two owners of one shard: the one that was paused and overtaken writes nothing, and stops."""

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kettle.accounts.lookup import own_name
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import Servers, server_directory, servers
from kettle_wire.commands.schedd import SUBMIT, Submit
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("personal")


class Owner:
    """A schedd in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = b""

    async def ready(self) -> None:
        """Wait until it serves."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while b'"msg":"ready"' not in self.said:
                line = await self.process.stdout.readline()
                assert line, self.said.decode()
                self.said += line

    async def ended(self) -> int:
        """Wait for its end and return its exit status."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            self.said += await self.process.stdout.read()
            return await self.process.wait()


@asynccontextmanager
async def schedd(place: Servers, home: Path) -> AsyncGenerator[Owner]:
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "KETTLE_HOME": str(home),
        "KETTLE_NATS_URL": place.nats.url,
        "KETTLE_NATS_CREDENTIALS": str(place.nats.credentials("test")),
        "KETTLE_DATABASE_URL": place.postgres.dsn,
        "KETTLE_LOG_FORMAT": "json",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kettle_services.schedd",
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield Owner(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def place(template: Path) -> AsyncIterator[Servers]:
    with server_directory() as directory:
        async with servers(directory, template=template) as running:
            yield running


def one_job() -> Submit:
    return Submit(id=uuid.uuid4().hex, ad={"Cmd": "/bin/true"}, columns=[], rows=[[]])


async def test_the_paused_owner_writes_nothing_and_stops(place: Servers, tmp_path: Path) -> None:
    """
    A schedd that sleeps through its own replacement finds itself fenced as soon as it wakes: commands that it is asked
    then are recorded by its successor or not at all, and it ends.
    """
    async with (
        NatsBus.connect(
            place.nats.url,
            subjects=SUBJECTS,
            identity=user(own_name()),
            credentials=str(place.nats.credentials("test")),
        ) as bus,
        PgLog.connect(place.postgres.dsn) as log,
        schedd(place, tmp_path) as old,
    ):
        await old.ready()
        await bus.call(SUBMIT, "schedd", one_job())
        old.process.send_signal(signal.SIGSTOP)
        async with schedd(place, tmp_path) as new:
            await new.ready()
            taken = await log.tenure("schedd.schedd")
            old.process.send_signal(signal.SIGCONT)
            recorded, job = 0, one_job()
            while old.process.returncode is None and recorded < 500:
                try:
                    await bus.call(SUBMIT, "schedd", job, deadline=2.0)
                except (
                    BusError
                ):  # either of the two may be the first to answer: so it is sent again, as clients do
                    continue
                recorded, job = recorded + 1, one_job()
            status = await old.ended()
            await bus.call(SUBMIT, "schedd", job)
            epochs = [frame.epoch async for frame in log.read("schedd.schedd")]
            now = await log.tenure("schedd.schedd")

    assert status == 1
    assert b"overtaken" in old.said
    assert taken is not None
    assert now is not None
    assert taken.epoch == now.epoch
    assert [1] + [2] * (recorded + 1) == epochs
