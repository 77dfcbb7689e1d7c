"""Asking a service that is busy."""

import asyncio
from itertools import pairwise

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import RefusedError, Served
from kettle.client.connections.retry import ask_with_retry, pause_for
from kettle.client.errors import PoolUnreachableError
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, user
from kettle_wire.subjects import Subjects


class Request(msgspec.Struct, frozen=True):
    id: str


CALLERS = tuple(Caller)
ASK = Endpoint("test", "ask", Request, Request, callers=CALLERS, repeat=Repeat.HARMLESS)


class Busy:
    """A service that refuses a number of times."""

    def __init__(self, times: int, retry_after_ms: int) -> None:
        self.times = times
        self.retry_after_ms = retry_after_ms
        self.asked: list[tuple[str, float]] = []

    async def answer(self, request: Request, _caller: Identity) -> Request:
        self.asked.append((request.id, asyncio.get_running_loop().time()))
        if len(self.asked) <= self.times:
            raise RefusedError("busy", "the queue is full", retry_after_ms=self.retry_after_ms)
        return request


async def served(busy: Busy) -> MemoryBus:
    bus = MemoryBus(MemoryServer(), subjects=Subjects("t"), identity=user("ada"))
    await bus.serve("test", "a", [Served(ASK, busy.answer)], version="1.0.0")
    return bus


async def test_the_same_command_comes_again_when_it_was_told() -> None:
    """Not before, and under the same id."""
    busy = Busy(3, 40)
    assert Request("x") == await ask_with_retry(await served(busy), ASK, "a", Request("x"))
    times = [at for _, at in busy.asked]
    assert ["x"] * 4 == [id_ for id_, _ in busy.asked]
    assert all(later - earlier >= 0.039 for earlier, later in pairwise(times))


async def test_a_person_is_told_of_a_long_wait_once() -> None:
    """With the reason; of a short one he is not."""
    for times, expected in ((2, 1), (0, 0)):
        notes: list[str] = []
        await ask_with_retry(await served(Busy(times, 1_000)), ASK, "a", Request("x"), waiting=notes.append)
        assert [True] * expected == ["the queue is full" in note for note in notes]


async def test_patience_ends() -> None:
    """Nobody waits for a time that lies beyond his patience."""
    busy = Busy(99, 5_000)
    with pytest.raises(PoolUnreachableError, match="the queue is full"):
        await ask_with_retry(await served(busy), ASK, "a", Request("x"), patience=1.0)
    assert 1 == len(busy.asked)


def test_a_crowd_does_not_come_back_together() -> None:
    """Pauses differ, and none is shorter than what was said."""
    pauses = {pause_for(100, 0.02) for _ in range(100)}
    assert len(pauses) > 50
    assert min(pauses) >= 0.1
    assert max(pauses) <= 0.15
