"""
What every adapter of the bus promises: commands and streams. Buckets are in test_buckets.py.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import msgspec
import pytest

from kettle.bus.ports import (
    Batch,
    Bus,
    BusUnavailableError,
    NoResponderError,
    RefusedError,
    ReplyTimeoutError,
    Served,
    StreamSpec,
    WrongSequenceError,
)
from kettle.testing.services import eventually
from kettle.testing.worlds import World
from kettle.wire.endpoint import Endpoint
from kettle.wire.identity import Identity, daemon, user


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int


class Told(msgspec.Struct, frozen=True):
    text: str


class Loose(msgspec.Struct, frozen=True):
    number: str


ASK = Endpoint("test", "ask", Ask, Told)
WAIT = Endpoint("test", "wait", Ask, Told)
LOOSE = Endpoint("test", "ask", Loose, Told)
PATIENCE_S = 10.0


async def tell(request: Ask, caller: Identity) -> Told:
    return Told(f"{request.number} for {caller.kind} {caller.name}")


async def take(
    bus: Bus, stream: str, subject: str, count: int, *, durable: str = "d", after: int = 0
) -> list[bytes]:
    """
    Read and acknowledge until `count` messages came.
    """
    got: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        async with aclosing(bus.consume(stream, durable, subject=subject, after=after)) as batches:
            async for batch in batches:
                got += [message.data for message in batch.messages]
                await batch.ack()
                if len(got) >= count:
                    break
    return got


async def known(caller: Bus, name: str) -> None:
    """
    Until somebody answers to a name: in a cluster not every server knows of a new service at once.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await caller.call(ASK, name, Ask(0))
            except NoResponderError:
                await asyncio.sleep(0.02)
            else:
                return


async def test_a_command_is_answered_and_its_caller_is_known(world: World) -> None:
    """
    The handler sees who asks, by the subject, for names of any spelling.
    """
    service, person = await world.connect(), await world.connect(user("jöe.x@site*"))
    await service.serve("test", "näme with.dots", [Served(ASK, tell)], version="1.0.0")
    await known(person, "näme with.dots")
    assert Told("7 for user jöe.x@site*") == await person.call(ASK, "näme with.dots", Ask(7))
    assert Told("8 for daemon test") == await service.call(ASK, "näme with.dots", Ask(8))


async def test_a_refusal_arrives_with_its_code_and_sentence(world: World) -> None:
    """
    Whatever characters the sentence has.
    """

    async def refuse(_request: Ask, _caller: Identity) -> Told:
        raise RefusedError("not_now", "säg's\nspäter: 7 %")

    bus = await world.connect()
    await bus.serve("test", "a", [Served(ASK, refuse)], version="1.0.0")
    with pytest.raises(RefusedError) as refused:
        await bus.call(ASK, "a", Ask(1))
    assert ("not_now", "säg's\nspäter: 7 %") == (refused.value.code, str(refused.value))


async def test_a_malformed_request_is_refused_at_the_edge(world: World) -> None:
    """
    The handler never sees it, and the sentence says what is wrong where.
    """
    bus = await world.connect()
    await bus.serve("test", "a", [Served(ASK, tell)], version="1.0.0")
    with pytest.raises(RefusedError, match=r"Expected `int`, got `str` - at `\$.number`") as refused:
        await bus.call(LOOSE, "a", Loose("x"))
    assert "malformed" == refused.value.code


async def test_nobody_there_is_told_apart_from_no_answer_in_time(world: World) -> None:
    """
    In the first case nothing happened, in the second nobody knows.
    """

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
    """
    One that waits for a commit does not hold up the others.
    """
    all_there = asyncio.Barrier(20)

    async def meet(request: Ask, _caller: Identity) -> Told:
        await all_there.wait()
        return Told(str(request.number))

    bus, caller = await world.connect(), await world.connect()
    await bus.serve("test", "a", [Served(ASK, meet)], version="1.0.0")
    told = await asyncio.gather(*(caller.call(ASK, "a", Ask(i), deadline=PATIENCE_S) for i in range(20)))
    assert [str(i) for i in range(20)] == [t.text for t in told]


async def test_an_owner_that_stands_still_gets_no_command_from_its_successor(world: World) -> None:
    """
    Every command is answered, and at once, when one of two of a name never answers any.
    """

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
        assert f"{number} for daemon test" == told.text


async def test_those_who_share_a_name_share_the_work(world: World) -> None:
    """
    Each command is handled once.
    """
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
    """
    The service learns of it and can stop; the caller is not told that nothing happened.
    """

    async def broken(_request: Ask, _caller: Identity) -> Told:
        raise KeyError("bug")

    bus, caller = await world.connect(), await world.connect()
    await bus.serve("test", "a", [Served(ASK, broken)], version="1.0.0")
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


async def test_what_is_too_large_is_refused(world: World) -> None:
    """
    A message beyond the server's limit is refused before it is sent.
    """
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    with pytest.raises(RefusedError) as refused:
        await bus.append(subject, bytes(bus.payload_limit + 1))
    assert "too_large" == refused.value.code


def stream(world: World) -> tuple[str, str]:
    return world.subjects.event_stream("x"), world.subjects.events("x")


async def test_a_stream_counts_from_where_it_is_told(world: World) -> None:
    """
    So that the sequence can be the number of a frame.
    """
    bus = await world.connect()
    name, subject = stream(world)
    assert await bus.last_sequence(name) is None
    with pytest.raises(NoResponderError):
        await bus.append(subject, b"x")
    assert 41 == await bus.ensure_stream(StreamSpec(name=name, subjects=[subject], first_sequence=42))
    assert [42, 43] == [await bus.append(subject, b"x"), await bus.append(subject, b"x", expect_last=42)]
    assert 43 == await bus.ensure_stream(StreamSpec(name=name, subjects=[subject], first_sequence=7))
    assert 43 == await bus.last_sequence(name)


async def test_a_guarded_append_wants_the_last_sequence(world: World) -> None:
    """
    Of many that expect the same one wins, and the error says what was expected.
    """
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    outcomes = await asyncio.gather(
        *(bus.append(subject, bytes([i]), expect_last=0) for i in range(5)), return_exceptions=True
    )
    assert [1] == [o for o in outcomes if isinstance(o, int)]
    assert [0] * 4 == [o.expected for o in outcomes if isinstance(o, WrongSequenceError)]


async def test_guarded_appends_may_be_sent_at_once(world: World) -> None:
    """
    Those that are sent in order arrive in order.
    """
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    sequences = await asyncio.gather(*(bus.append(subject, b"%d" % i, expect_last=i) for i in range(200)))
    assert list(range(1, 201)) == sequences
    assert [b"%d" % i for i in range(200)] == await take(bus, name, subject, 200)


async def test_a_durable_reader_goes_on_after_what_it_acknowledged(world: World) -> None:
    """
    Across connections; what was not acknowledged comes again, in order.
    """
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    for i in range(5):
        await bus.append(subject, b"%d" % i)
    first = await world.connect()
    assert [b"1", b"2", b"3", b"4"] == await take(first, name, subject, 4, after=1)
    await bus.append(subject, b"5")
    await bus.append(subject, b"6")

    async def goes_on() -> bool:
        async with aclosing(first.consume(name, "d", subject=subject)) as batches:
            unacknowledged = await asyncio.wait_for(anext(batches), PATIENCE_S)
        return b"5" == unacknowledged.messages[0].data

    await eventually(goes_on)  # in a cluster an acknowledgement may be a moment on its way
    await world.leave(first)
    assert [b"5", b"6"] == await take(await world.connect(), name, subject, 2)


async def test_a_cancelled_reader_has_acknowledged_nothing(world: World) -> None:
    """
    Cancellation is not completion: what was in hand, committed by nobody, comes again to the next reader.
    """
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    await bus.append(subject, b"1")
    in_hand = asyncio.Event()

    async def commit() -> None:
        async with aclosing(bus.consume(name, "d", subject=subject)) as batches:
            async for batch in batches:
                in_hand.set()
                await asyncio.Event().wait()  # a transaction that does not end
                await batch.ack()

    reading = asyncio.create_task(commit())
    await asyncio.wait_for(in_hand.wait(), PATIENCE_S)
    reading.cancel()
    await asyncio.wait([reading])
    assert [b"1"] == await take(bus, name, subject, 1)


async def test_a_reader_without_a_name_leaves_nothing_behind(world: World) -> None:
    """
    It reads what follows on the given sequence, each time anew.
    """
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    for i in range(1, 6):
        await bus.append(subject, b"%d" % i)
    for _ in range(2):
        async with aclosing(bus.consume(name, "", subject=subject, after=3, ephemeral=True)) as batches:
            assert [b"4", b"5"] == await collect(batches, 2)


async def collect(
    batches: AsyncGenerator[Batch, None], count: int, *, patience: float = PATIENCE_S
) -> list[bytes]:
    got: list[bytes] = []
    async with asyncio.timeout(patience):
        while len(got) < count:
            got += [message.data for message in (await anext(batches)).messages]
    return got


async def test_only_the_wanted_subjects_are_read(world: World) -> None:
    """
    The filter is the reader's.
    """
    bus = await world.connect()
    await bus.ensure_stream(StreamSpec(name=world.subjects.work_stream, subjects=[world.subjects.work_all]))
    for schedd in ("a", "b", "a"):
        await bus.append(world.subjects.work(schedd, "host.example.org"), schedd.encode())
    assert [b"a", b"a"] == await take(bus, world.subjects.work_stream, world.subjects.work_of("a"), 2)


async def test_a_reader_waits_for_a_stream_that_comes_later(world: World) -> None:
    """
    Services may start in any order.
    """
    bus = await world.connect()
    name, subject = stream(world)
    reading = asyncio.create_task(take(bus, name, subject, 1))
    await asyncio.sleep(0.1)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    await bus.append(subject, b"x")
    assert [b"x"] == await reading


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_a_stream_that_is_made_again_is_read_from_its_beginning(world: World, ephemeral: bool) -> None:
    """
    A reader in the middle of a lost stream goes over to its successor by itself.
    """
    bus = await world.connect()
    name, subject = stream(world)
    spec = StreamSpec(name=name, subjects=[subject], remake=False)
    await bus.ensure_stream(spec)
    await bus.append(subject, b"old")
    async with aclosing(bus.consume(name, "d", subject=subject, ephemeral=ephemeral)) as batches:
        assert [b"old"] == await collect(batches, 1)
        await world.lose(name)
        await bus.ensure_stream(spec)
        await bus.append(subject, b"new")
        assert [b"new"] == await collect(batches, 1)


async def test_a_lost_stream_is_made_again_by_who_ensured_it(world: World) -> None:
    """
    A reader that misses it makes it, unless somebody refills it.
    """
    bus = await world.connect()
    name, subject = stream(world)
    await bus.ensure_stream(StreamSpec(name=name, subjects=[subject]))
    await bus.append(subject, b"old")
    async with aclosing(bus.consume(name, "d", subject=subject)) as batches:
        assert [b"old"] == await collect(batches, 1)
        await world.lose(name)
        reading = asyncio.create_task(collect(batches, 1, patience=3 * PATIENCE_S))
        async with asyncio.timeout(2 * PATIENCE_S):
            while await found(bus, name) is None:
                await asyncio.sleep(0.02)
        await stored(bus, subject, b"new")
        assert [b"new"] == await reading


async def found(bus: Bus, name: str) -> int | None:
    """
    The newest number of a stream, if there is one whose leader is known.
    """
    try:
        return await bus.last_sequence(name)
    except ReplyTimeoutError:
        return None


async def stored(bus: Bus, subject: str, data: bytes) -> None:
    """
    Append to a stream that somebody else made: in a cluster not every server knows of it at once.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await bus.append(subject, data)
            except NoResponderError:
                await asyncio.sleep(0.02)
            else:
                return


async def test_a_service_can_be_asked_as_a_daemon_and_as_a_person(world: World) -> None:
    """
    The same name as daemon and as person are two identities.
    """
    service = await world.connect()
    await service.serve("test", "a", [Served(ASK, tell)], version="1.0.0")
    told = [
        (await (await world.connect(who)).call(ASK, "a", Ask(1))).text
        for who in (daemon("alice"), user("alice"))
    ]
    assert ["1 for daemon alice", "1 for user alice"] == told


def objects(world: World, *, most: int = -1) -> StreamSpec:
    subjects = [world.subjects.objects_all]
    return StreamSpec(name=world.subjects.object_stream, subjects=subjects, objects=True, max_messages=most)


async def test_the_newest_of_each_subject_is_found(world: World) -> None:
    """
    By its subject alone; what was never stored is not, nor what is in a stream that nobody made.
    """
    bus = await world.connect()
    stream, piece = world.subjects.object_stream, world.subjects.object_piece
    assert None is await bus.newest(stream, piece("a", 0))
    await bus.ensure_stream(objects(world))
    for number, data in ((0, b"old"), (1, b"other"), (0, b"new")):
        await bus.append(piece("a", number), data, ttl=60.0)
    found = [await bus.newest(stream, piece("a", number)) for number in range(3)]

    assert [b"new", b"other", None] == found


async def test_an_object_ends_by_itself(world: World) -> None:
    """
    Nobody has to take it away; others stay.
    """
    bus = await world.connect()
    stream, piece = world.subjects.object_stream, world.subjects.object_piece
    await bus.ensure_stream(objects(world))
    await bus.append(piece("a", 0), b"short", ttl=1.0)
    await bus.append(piece("b", 0), b"long", ttl=600.0)
    await world.passes(3.0)
    found = [await bus.newest(stream, piece(name, 0)) for name in "ab"]

    assert [None, b"long"] == found


async def test_a_full_store_of_objects_refuses(world: World) -> None:
    """
    What is in it is somebody's.
    """
    bus = await world.connect()
    stream, piece = world.subjects.object_stream, world.subjects.object_piece
    await bus.ensure_stream(objects(world, most=1))
    await bus.append(piece("a", 0), b"x" * 3000, ttl=600.0)
    with pytest.raises(BusUnavailableError):
        await bus.append(piece("b", 0), b"y" * 3000, ttl=600.0)
    found = [await bus.newest(stream, piece(name, 0)) for name in "ab"]

    assert [b"x" * 3000, None] == found
