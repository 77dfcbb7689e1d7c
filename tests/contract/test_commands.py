"""
What every adapter of the bus promises of commands and notices. Streams are in test_streams.py, buckets in
test_buckets.py.
"""

import asyncio
from contextlib import suppress

import msgspec
import pytest

from kettle.bus.ports import (
    Bus,
    BusError,
    BusUnavailableError,
    NoResponderError,
    RefusedError,
    ReplyTimeoutError,
    Served,
)
from kettle.testing.bus_adapters import World
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import eventually
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, daemon, user


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int


class Told(msgspec.Struct, frozen=True):
    text: str


class Loose(msgspec.Struct, frozen=True):
    number: str


CALLERS = tuple(Caller)
ASK = Endpoint("test", "ask", Ask, Told, callers=CALLERS, repeat=Repeat.HARMLESS)
WAIT = Endpoint("test", "wait", Ask, Told, callers=CALLERS, repeat=Repeat.HARMLESS)
LOOSE = Endpoint("test", "ask", Loose, Told, callers=CALLERS, repeat=Repeat.HARMLESS)


async def tell(request: Ask, caller: Identity) -> Told:
    return Told(f"{request.number} for {caller.kind} {caller.name}")


async def known(caller: Bus, name: str, endpoint: Endpoint[Ask, Told] = ASK) -> None:
    """Until somebody answers to a name: in a cluster not every server knows of a new service at once."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await caller.call(endpoint, name, Ask(0))
            except NoResponderError:
                await asyncio.sleep(0.02)
            else:
                return


async def test_a_command_is_answered_and_its_caller_is_known(world: World) -> None:
    """The handler sees who asks, by the subject, for names of any spelling."""
    service, person = await world.connect(), await world.connect(user("jöe.x@site*"))
    await service.serve("test", "näme with.dots", [Served(ASK, tell)], version="1.0.0")
    await known(person, "näme with.dots")
    assert Told("7 for user jöe.x@site*") == await person.call(ASK, "näme with.dots", Ask(7))
    assert Told("8 for daemon gateway") == await service.call(ASK, "näme with.dots", Ask(8))


async def test_a_refusal_arrives_with_its_code_and_sentence(world: World) -> None:
    """Whatever characters the sentence has."""

    async def refuse(_request: Ask, _caller: Identity) -> Told:
        raise RefusedError("not_now", "säg's\nspäter: 7 %")

    bus = await world.connect()
    await bus.serve("test", "a", [Served(ASK, refuse)], version="1.0.0")
    with pytest.raises(RefusedError) as refused:
        await bus.call(ASK, "a", Ask(1))
    assert ("not_now", "säg's\nspäter: 7 %") == (refused.value.code, str(refused.value))


@pytest.mark.parametrize(
    "error", [NoResponderError("no schedd"), ReplyTimeoutError("no schedd"), BusUnavailableError("no schedd")]
)
async def test_who_lacks_something_refuses_and_goes_on(world: World, error: BusError) -> None:
    """
    What a handler does not get from the bus its caller is told, who may ask again; the service still answers others.
    """

    async def pass_on(request: Ask, caller: Identity) -> Told:
        if request.number:
            raise error
        return await tell(request, caller)

    bus = await world.connect()
    await bus.serve("test", "a", [Served(ASK, pass_on)], version="1.0.0")
    await known(bus, "a")
    with pytest.raises(RefusedError, match="does not answer at the moment: no schedd") as refused:
        await bus.call(ASK, "a", Ask(1))
    assert refused.value.code == RefusalCode.UNAVAILABLE
    assert Told("0 for daemon gateway") == await bus.call(ASK, "a", Ask(0))


async def test_an_access_point_that_has_joined_is_heard_by_its_own_queue(world: World) -> None:
    """
    By no other, whatever the server of the bus lets through: its shadow has the role that the queue's own has.
    """
    sync = Endpoint("schedd", "ask", Ask, Told, callers=(Caller.SHADOW,), repeat=Repeat.HARMLESS)
    service, shadow = await world.connect(), await world.connect(daemon("shadow", "ap1"))
    for name in ("schedd", "ap1", "ap2"):
        await service.serve("schedd", name, [Served(sync, tell)], version="1.0.0")
    await known(shadow, "ap1", sync)
    for name in ("schedd", "ap2"):
        with pytest.raises(RefusedError, match="of the access point ap1") as refused:
            await shadow.call(sync, name, Ask(1))
        assert RefusalCode.DENIED == refused.value.code


async def test_a_malformed_request_is_refused_at_the_edge(world: World) -> None:
    """The handler never sees it, and the sentence says what is wrong where."""
    bus = await world.connect()
    await bus.serve("test", "a", [Served(ASK, tell)], version="1.0.0")
    with pytest.raises(RefusedError, match=r"Expected `int`, got `str` - at `\$.number`") as refused:
        await bus.call(LOOSE, "a", Loose("x"))
    assert "malformed" == refused.value.code


async def test_nobody_there_is_told_apart_from_no_answer_in_time(world: World) -> None:
    """In the first case nothing happened, in the second nobody knows."""

    async def dawdle(_request: Ask, _caller: Identity) -> Told:
        await asyncio.sleep(60)
        return Told("late")

    bus = await world.connect()
    await bus.serve("test", "a", [Served(WAIT, dawdle)], version="1.0.0")
    with pytest.raises(NoResponderError):
        await bus.call(ASK, "a", Ask(1), deadline=PATIENCE_S)
    with pytest.raises(ReplyTimeoutError):
        await bus.call(WAIT, "a", Ask(1), deadline=0.1)


async def test_commands_are_handled_side_by_side(world: World) -> None:
    """One that waits for a commit does not hold up the others."""
    all_there = asyncio.Barrier(20)

    async def meet(request: Ask, _caller: Identity) -> Told:
        await all_there.wait()
        return Told(str(request.number))

    bus, caller = await world.connect(), await world.connect()
    await bus.serve("test", "a", [Served(ASK, meet), Served(WAIT, tell)], version="1.0.0")
    await known(caller, "a", WAIT)
    told = await asyncio.gather(*(caller.call(ASK, "a", Ask(i), deadline=PATIENCE_S) for i in range(20)))
    assert [str(i) for i in range(20)] == [t.text for t in told]


async def test_an_owner_that_stands_still_gets_no_command_from_its_successor(world: World) -> None:
    """Every command is answered, and at once, when one of two of a name never answers any."""

    async def hang(_request: Ask, _caller: Identity) -> Told:
        await asyncio.Event().wait()
        return Told("never")

    old, new, caller = [await world.connect() for _ in range(3)]
    await old.serve("test", "a", [Served(ASK, hang)], version="1.0.0")
    await new.serve("test", "a", [Served(ASK, tell)], version="1.0.0")

    async def answered() -> Told | None:
        with suppress(
            ReplyTimeoutError
        ):  # other servers of a cluster hear a little later that the new one is there
            return await caller.call(ASK, "a", Ask(7), deadline=0.5)
        return None

    await eventually(answered)
    for number in range(20):
        told = await caller.call(ASK, "a", Ask(number), deadline=PATIENCE_S)
        assert f"{number} for daemon gateway" == told.text


async def test_those_who_share_a_name_share_the_work(world: World) -> None:
    """Each command is handled once."""
    seen: list[int] = []

    async def note(request: Ask, _caller: Identity) -> Told:
        seen.append(request.number)
        return Told("noted")

    buses = [await world.connect() for _ in range(3)]
    for bus in buses:
        await bus.serve("test", "a", [Served(ASK, note)], version="1.0.0", shared=True)
    for number in range(20):
        await buses[0].call(ASK, "a", Ask(number), deadline=PATIENCE_S)
    assert list(range(20)) == seen


async def test_a_handler_that_breaks_is_a_failure(world: World) -> None:
    """The service learns of it and can stop; the caller is not told that nothing happened."""

    async def broken(_request: Ask, _caller: Identity) -> Told:
        raise KeyError("bug")

    bus, caller = await world.connect(), await world.connect()
    await bus.serve("test", "a", [Served(ASK, broken), Served(WAIT, tell)], version="1.0.0")
    await known(caller, "a", WAIT)
    with pytest.raises(ReplyTimeoutError):
        await caller.call(ASK, "a", Ask(1), deadline=0.2)
    with pytest.raises(KeyError, match="bug"):
        await asyncio.wait_for(bus.failure(), PATIENCE_S)


async def test_a_notice_reaches_who_listens_now(world: World) -> None:
    """
    Wildcards are the listener's.  In a cluster it takes a moment until all servers know of a new listener.
    """
    teller, listener = await world.connect(), await world.connect()
    heard: list[tuple[str, bytes]] = []
    one = world.subjects.notice("schedd", "a")
    everything = one.removesuffix("a") + "*"
    await listener.listen(everything, lambda subject, data: heard.append((subject, data)))
    async with asyncio.timeout(PATIENCE_S):
        while not heard:
            await teller.publish(world.subjects.notice("startd", "a"), b"another kind")
            await teller.publish(one, b"now")
            await asyncio.sleep(0.05)
    assert {(one, b"now")} == set(heard)


async def test_a_service_can_be_asked_as_a_daemon_and_as_a_person(world: World) -> None:
    """One name as daemon and as person gives two identities."""
    service = await world.connect()
    await service.serve("test", "a", [Served(ASK, tell)], version="1.0.0")
    told: list[str] = []
    for who in (daemon("startd"), user("startd")):
        caller = await world.connect(who)
        await known(caller, "a")
        told.append((await caller.call(ASK, "a", Ask(1))).text)
    assert ["1 for daemon startd", "1 for user startd"] == told
