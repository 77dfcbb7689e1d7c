"""Where starters come from, also when a thousand jobs start at once."""

import asyncio
import os
import resource
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest

from kettle.execution.system.linux import children_of
from kettle.runtime import open_file_limit
from kettle.testing.patience import PATIENCE_S
from kettle_services.startd.starters.pool import ZygoteStarterPool

MANY = 400
"""More than the zygote's socket holds, which is about 280 requests."""


@pytest.fixture
async def starter_pool(directory: Path) -> AsyncGenerator[ZygoteStarterPool]:
    (directory / "execute").mkdir()
    with closing(ZygoteStarterPool(directory, directory / "execute", lifeline_fd=None)) as starter_pool:
        yield starter_pool


def asked(starter_pool: ZygoteStarterPool) -> list[socket.socket]:
    lines = [line for _ in range(MANY) if (line := starter_pool.starter()) is not None]
    assert MANY == len(lines)
    return lines


async def test_a_busy_zygote_forks_all_starters_in_their_turn(starter_pool: ZygoteStarterPool) -> None:
    os.kill(starter_pool.pid, signal.SIGSTOP)
    lines = asked(starter_pool)
    os.kill(starter_pool.pid, signal.SIGCONT)

    async with asyncio.timeout(PATIENCE_S):
        while len(children_of(starter_pool.pid)) < MANY:
            await asyncio.sleep(0.01)

    for line in lines:
        line.close()
    async with asyncio.timeout(PATIENCE_S):
        while children_of(starter_pool.pid):
            await asyncio.sleep(0.01)


async def test_who_waits_for_a_zygote_that_dies_hears_it(starter_pool: ZygoteStarterPool) -> None:
    os.kill(starter_pool.pid, signal.SIGSTOP)
    lines = asked(starter_pool)
    keeping = asyncio.create_task(starter_pool.keep())
    os.kill(starter_pool.pid, signal.SIGKILL)

    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE_S):
        for line in lines:
            line.setblocking(False)
            with line:
                assert b"" == await loop.sock_recv(line, 1)

    keeping.cancel()
    await asyncio.wait([keeping])


async def test_jobs_may_open_as_many_files_as_the_service_was_meant_to(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    monkeypatch.setattr(open_file_limit, "INHERITED", (200, most))
    with closing(ZygoteStarterPool(directory, directory / "execute", lifeline_fd=None)) as starter_pool:
        assert (200, most) == resource.prlimit(starter_pool.pid, resource.RLIMIT_NOFILE)
