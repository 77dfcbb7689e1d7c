"""Whose port is connected to, where somebody else has the same one at the same time or a moment later."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from kettle.published.errors import StreamRefusedError
from kettle.published.services import Service
from kettle_services.starter.published import ports
from kettle_services.starter.published.listening import Listener, listener_of
from kettle_services.starter.published.ports import JobPorts

SHARES = """\
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


class JobProcess(NamedTuple):
    """A process of the job, and where it listens."""

    pid: int
    port: int


@contextmanager
def of_the_job(monkeypatch: pytest.MonkeyPatch) -> Generator[JobProcess]:
    """A process below this one, which stands for the starter, listens; it is the job's only one."""
    with subprocess.Popen(
        [sys.executable, "-c", SHARES, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as made:
        assert made.stdout is not None

        # other tests of this process may have children of their own, of which some have ended
        def pids(_self: JobPorts) -> list[int]:
            return [made.pid]

        monkeypatch.setattr(JobPorts, "_pids", pids)
        try:
            yield JobProcess(made.pid, int(made.stdout.readline()))
        finally:
            made.kill()


async def connected(side: JobPorts, port: int) -> str:
    """The code of the refusal; empty: it was connected."""
    made: list[asyncio.BaseTransport] = []

    class Kept(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    try:
        await side.connect(Service("web", port, "tcp"), Kept)
    except StreamRefusedError as refusal:
        return refusal.code
    finally:
        for each in made:
            each.close()
    return ""


def side() -> JobPorts:
    """Of a job below this process; the process that connects is not below itself."""
    return JobPorts("", os.getpid())


async def test_a_port_that_a_stranger_shares_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would give connections to either of the two (SO_REUSEPORT)."""
    with of_the_job(monkeypatch) as (_, port):
        assert await connected(side(), port) == ""
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
            assert await connected(side(), port) == "not_of_this_job"
        assert await connected(side(), port) == ""


async def test_a_port_that_a_stranger_has_taken_meanwhile_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the look and the connection the job's process has closed it."""
    with socket.create_server(("127.0.0.1", 0)) as stranger, of_the_job(monkeypatch) as job:
        port = stranger.getsockname()[1]
        seen: list[Listener] = []

        def a_moment_ago(number: int, pids: list[int]) -> Listener:
            if not seen:
                seen.append(Listener("127.0.0.1", port, job.pid))
                return seen[0]
            return listener_of(number, pids)

        monkeypatch.setattr(ports, "listener_of", a_moment_ago)
        assert await connected(side(), port) == "not_of_this_job"
