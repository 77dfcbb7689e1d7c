"""What people's questions may take of a machine, and of one starter."""

import asyncio
import socket
from typing import cast

import msgspec
import pytest

from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.attempts.messages import (
    AccessReply,
    AccessRequest,
    Hello,
    MessageReader,
    ToStartd,
    decode_to_starter,
    frame,
)
from kettle.testing.patience import PATIENCE_S
from kettle_services.startd.starters.pool import ZygoteStarterPool
from kettle_services.startd.starters.supervisor import StarterSupervisor
from kettle_wire.commands.access import LONGEST_COMMAND, OPEN_SESSION, Access, OpenSession
from kettle_wire.jobs import JobId

ATTEMPT = AttemptId("c", JobId(1, 0), 1)
MIB = 1 << 20


class FakeListener:
    """Hears that the starter is there."""

    def __init__(self) -> None:
        self.there = asyncio.Event()

    def starter_connected(self, attempt: AttemptId, pid: int, started: int) -> None:
        del attempt, pid, started
        self.there.set()


class Machine:
    """A tenancy with the line to one starter, which is played by the test."""

    def __init__(self) -> None:
        self._listener = FakeListener()
        self.starters = StarterSupervisor(cast("ZygoteStarterPool", None), cast("object", self._listener))  # type: ignore[arg-type] # it hears no more
        self.starter, theirs = socket.socketpair()
        self.starters.expect(ATTEMPT)
        self.starters.arrive(theirs)

    async def hello(self, *, visits: bool) -> None:
        self.say(Hello(ATTEMPT, 1, visits=visits))
        async with asyncio.timeout(PATIENCE_S):
            await self._listener.there.wait()

    def say(self, message: ToStartd) -> None:
        self.starter.sendall(frame(message))

    def ask(self, body: bytes = b"") -> asyncio.Task[AccessReply | None]:
        return asyncio.create_task(self.starters.ask(ATTEMPT, "peek", body))

    def close(self) -> None:
        self.starters.close()
        self.starter.close()


async def test_a_starter_of_before_is_not_asked() -> None:
    """It would not know the word, and its job would pay for that."""
    machine = Machine()
    await machine.hello(visits=False)
    answer = await machine.ask()
    assert answer is not None
    assert ("refused", True) == (answer.code, "earlier" in answer.reason)
    machine.close()


async def test_one_starter_has_so_many_questions_in_hand() -> None:
    """One more is refused until one is answered."""
    machine = Machine()
    await machine.hello(visits=True)
    asked = [machine.ask() for _ in range(32)]
    answer = await machine.ask()
    assert answer is not None
    assert "busy" == answer.code
    first = decode_to_starter(next(MessageReader().feed(machine.starter.recv(65536))))
    assert isinstance(first, AccessRequest)
    machine.say(AccessReply(first.number, b"here"))
    async with asyncio.timeout(PATIENCE_S):
        assert AccessReply(first.number, b"here") == await asked[0]
    asked.append(machine.ask())
    await asyncio.sleep(0)
    assert not asked[-1].done()
    machine.close()
    assert [None] * 32 == await asyncio.gather(*asked[1:])


async def test_what_a_starter_does_not_read_does_not_pile_up() -> None:
    """Questions that time out leave their bytes on the way: more are refused when there are many."""
    machine = Machine()
    await machine.hello(visits=True)
    refused = 0
    for _ in range(100):
        task = machine.ask(bytes(128 * 1024))
        await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task])
        refused += any(not each.cancelled() for each in done)
    assert 80 < refused < 95
    machine.close()


def test_a_command_has_a_size() -> None:
    """Of all its words together."""
    access = Access(claim="c", job=JobId(1, 0), attempt=1, proof="p")
    for words, fits in ((["x" * 65536], True), (["x" * 65536] * 2, False), (["y"] * 1000, True)):
        body = msgspec.msgpack.encode({"access": access, "session": "s", "command": words})
        if fits:
            assert words == OPEN_SESSION.decode_request(body).command
        else:
            with pytest.raises(msgspec.ValidationError, match=str(LONGEST_COMMAND)):
                OPEN_SESSION.decode_request(body)
    with pytest.raises(ValueError, match="bytes"):
        OpenSession(access=access, session="s", command=["x" * MIB])
