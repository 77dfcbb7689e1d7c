"""Asking a service that is busy."""

import asyncio
from itertools import pairwise
from typing import cast

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Asks, NoResponderError, RefusedError, Served
from kettle.client.connections.retry import ask_with_retry
from kettle.client.errors import CommandRefusedError, PoolUnreachableError
from kettle.testing.patience import PATIENCE_S
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, user
from kettle_wire.subjects import Subjects


class Request(msgspec.Struct, frozen=True):
    id: str


CALLERS = tuple(Caller)
ASK = Endpoint("test", "ask", Request, Request, callers=CALLERS, repeat=Repeat.HARMLESS)


class Busy:
    """A service that refuses a number of times."""

    def __init__(self, times: int, retry_after_ms: int, code: RefusalCode = RefusalCode.BUSY) -> None:
        self.times = times
        self.retry_after_ms = retry_after_ms
        self.code = code
        self.asked: list[tuple[str, float]] = []

    async def answer(self, request: Request, _caller: Identity) -> Request:
        self.asked.append((request.id, asyncio.get_running_loop().time()))
        if len(self.asked) <= self.times:
            raise RefusedError(self.code, "the queue is full", retry_after_ms=self.retry_after_ms)
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


async def test_what_is_read_too_early_is_asked_for_again() -> None:
    """A service that has not read what the caller knows to be recorded will have it a moment later."""
    late = Busy(2, 0, RefusalCode.BEHIND)
    assert Request("x") == await ask_with_retry(await served(late), ASK, "a", Request("x"))
    assert 3 == len(late.asked)


async def test_a_person_is_told_of_a_long_wait_once() -> None:
    """With the reason; of a short one he is not."""
    for times, expected in ((2, 1), (0, 0)):
        notes: list[str] = []
        await ask_with_retry(await served(Busy(times, 1_000)), ASK, "a", Request("x"), waiting=notes.append)
        assert [True] * expected == ["the queue is full" in note for note in notes]


async def test_a_refusal_of_the_bus_names_no_subjects() -> None:
    """A person is told what he is not, and not on what subject he may not publish."""

    class Forbidding:
        async def call(self, *_: object, **__: object) -> Request:
            raise RefusedError(RefusalCode.NOT_PERMITTED, "we may not publish on kettle.p.cmd.x")

    asks = cast("Asks", Forbidding())
    shown = "; you come with the token of BEARER_TOKEN: without it this account is asked for"
    for callers, token, says in (
        (
            (Caller.ADMINISTRATOR,),
            "",
            "you are not an administrator of this pool: its bus does not let you ask the test for ask",
        ),
        (
            (Caller.ADMINISTRATOR,),
            "BEARER_TOKEN",
            f"you are not an administrator of this pool: its bus does not let you ask the test for ask{shown}",
        ),
        (
            (Caller.USER,),
            "",
            "the pool's bus does not let you ask the test for ask: your key is for something else",
        ),
        (
            (Caller.USER,),
            "BEARER_TOKEN",
            f"the pool's bus does not let you ask the test for ask: your token or key is limited to less{shown}",
        ),
    ):
        endpoint = Endpoint("test", "ask", Request, Request, callers=callers, repeat=Repeat.HARMLESS)
        with pytest.raises(CommandRefusedError) as refused:
            await ask_with_retry(asks, endpoint, "a", Request("x"), token=token)
        assert says == str(refused.value)


async def test_an_iam_that_is_not_there_is_not_waited_for() -> None:
    """A pool need not have one: what to do for it is said long before the patience ends."""
    bus = MemoryBus(MemoryServer(), subjects=Subjects("t"), identity=user("ada"))
    endpoint = Endpoint("iam", "ask", Request, Request, callers=CALLERS, repeat=Repeat.HARMLESS)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(PoolUnreachableError, match=r"put iam into daemon_list of \[master\]"):
            await ask_with_retry(bus, endpoint, "iam", Request("x"), patience=3600.0)


async def test_who_came_by_token_is_told_to_name_a_queue() -> None:
    """Only he: accounts of the pool's machines have the right name in its file."""
    bus = MemoryBus(MemoryServer(), subjects=Subjects("t"), identity=user("ada"))
    for role, token, told in (
        ("schedd", "BEARER_TOKEN", True),
        ("schedd", "", False),
        ("shadow", "BEARER_TOKEN", False),
    ):
        endpoint = Endpoint(role, "ask", Request, Request, callers=CALLERS, repeat=Repeat.HARMLESS)
        with pytest.raises(PoolUnreachableError) as silent:
            await ask_with_retry(bus, endpoint, role, Request("x"), patience=0.05, token=token)
        assert told == ("name the one that you mean: --name NAME" in str(silent.value))


async def test_patience_ends() -> None:
    """Nobody waits for a time that lies beyond his patience."""
    busy = Busy(99, 5_000)
    with pytest.raises(PoolUnreachableError, match="the queue is full"):
        await ask_with_retry(await served(busy), ASK, "a", Request("x"), patience=1.0)
    assert 1 == len(busy.asked)


async def test_who_need_not_be_there_is_not_waited_for() -> None:
    """
    As the entrypoint that an access point may have: that nobody listens is an answer then, and asked once.
    """
    asked: list[str] = []

    class Nobody:
        async def call(self, _endpoint: object, name: str, _request: object, *, deadline: float) -> Request:
            asked.append(name)
            raise NoResponderError(f"no {name}, asked for {deadline:g} s")

    with pytest.raises(PoolUnreachableError, match="no a, asked for"):
        await ask_with_retry(cast("Asks", Nobody()), ASK, "a", Request("x"), absent=0.0)
    assert ["a"] == asked
