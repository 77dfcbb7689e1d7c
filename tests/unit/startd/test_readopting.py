"""A starter that comes back to the next startd is told what it may not have heard meanwhile."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from typing import Final, cast

import pytest

from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.attempts.messages import (
    Hello,
    MessageReader,
    Renew,
    ToStarter,
    decode_to_starter,
    frame,
)
from kettle.testing.patience import PATIENCE_S
from kettle_services.startd.domain.state.claim import RunningAttempt
from kettle_services.startd.starters.attempt import AttemptListener
from kettle_services.startd.starters.pool import StarterPool
from kettle_services.startd.starters.supervisor import StarterSupervisor
from kettle_wire.jobs import JobId

ATTEMPT: Final = AttemptId("c", JobId(1, 0), 1)
KNOWN: Final = RunningAttempt(job=ATTEMPT.job, attempt=1, sequence=0)
JOURNALED: Final = 100.0
RENEWED: Final = 200.0


class FakeListener:
    """Hears that a starter is there."""

    def starter_connected(self, attempt: AttemptId, pid: int, started: int) -> None:
        del attempt, pid, started


@pytest.fixture
async def starters() -> AsyncGenerator[StarterSupervisor]:
    supervisor = StarterSupervisor(cast("StarterPool", None), cast("AttemptListener", FakeListener()))
    yield supervisor
    supervisor.close()


async def return_to(starters: StarterSupervisor) -> ToStarter:
    """A starter says hello; what it is told first."""
    starter, theirs = socket.socketpair()
    with starter:
        starter.setblocking(False)
        starters.arrive(theirs)
        starter.send(frame(Hello(ATTEMPT, 1)))
        async with asyncio.timeout(PATIENCE_S):
            data = await asyncio.get_running_loop().sock_recv(starter, 65536)
    first: ToStarter = decode_to_starter(next(MessageReader().feed(data)))
    return first


@pytest.mark.parametrize(("renewals", "deadline"), [([], JOURNALED), ([RENEWED, JOURNALED], RENEWED)])
async def test_a_starter_that_comes_back_hears_how_long_its_lease_is(
    starters: StarterSupervisor, renewals: list[float], deadline: float
) -> None:
    """
    The lease may have been renewed before it came, or recorded by a startd that died before it passed that on.
    """
    starters.readopt(ATTEMPT, KNOWN, deadline=JOURNALED, patience=PATIENCE_S)
    for renewed in renewals:
        starters.renew_lease(ATTEMPT, renewed)
    assert Renew(deadline) == await return_to(starters)
