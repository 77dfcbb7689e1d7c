"""From a command's arrival to its reply, over a log in memory whose commits are let through by the test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import (
    PER_TURN,
    Alike,
    CommandPipeline,
    Decision,
    DecisionOfMany,
    Recording,
)
from kettle.eventsourcing.shard import Shard
from kettle.testing.gated_log import GatedLog
from kettle.testing.served import Endpoints
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.events import JobReleased
from kettle_wire.identity import Identity, user

ADA, EVE = user("ada"), user("eve")


class Name(msgspec.Struct, frozen=True):
    id: CommandId
    text: str = ""


class Named(msgspec.Struct, frozen=True):
    text: str
    position: Position


class Names(msgspec.Struct, frozen=True):
    names: list[Name]
    alike: list[list[str]] = []


class NamesAlike(msgspec.Struct, frozen=True):
    """Commands whose text is their id."""

    ids: list[str]

    def one(self, place: int) -> Name:
        return Name(self.ids[place], self.ids[place])

    def some(self, places: Sequence[int]) -> "NamesAlike":
        return NamesAlike([self.ids[place] for place in places])


class Answers(msgspec.Struct, frozen=True):
    texts: list[str]


def answers(found: list[Named | RefusedError]) -> Answers:
    return Answers([str(each) if isinstance(each, RefusedError) else each.text for each in found])


NAME = Endpoint("test", "name", Name, Named, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER)
OTHER = Endpoint("test", "other", Name, Named, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER)
STATE = Endpoint("test", "state", Name, Named, callers=(Caller.USER,), repeat=Repeat.HARMLESS)
MANY = Endpoint("test", "many", Names, Answers, callers=(Caller.USER,), repeat=Repeat.HARMLESS)
ASK = Endpoint("test", "ask", Name, Named, callers=(Caller.USER,), repeat=Repeat.QUERY)


class Recorder:
    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    def record(
        self, changes: Recording, *, command: str = "", reply: Callable[[int], bytes] | None = None
    ) -> asyncio.Future[int]:
        return self.shard.record(changes, now_us=1, command=command, reply=reply)


class Service:
    """Commands that record what they are told, or do what a test has them do."""

    def __init__(self, log: GatedLog, shard: Shard) -> None:
        self.log, self.shard = log, shard
        self.decided: list[str] = []
        self.together: list[list[str]] = []
        self.effects: list[str] = []
        self.refusal: RefusedError | None = None
        self.refused = ""
        """What is refused; empty: all."""
        self.full = False
        self.hold = asyncio.Event()
        self.hold.set()
        pipeline = CommandPipeline(Recorder(shard), require_room=self._require_room)
        self.asked = Endpoints(
            [
                pipeline.command(NAME, self.name),
                pipeline.command(OTHER, self.name, remember=60.0),
                pipeline.command(STATE, self.name),
                pipeline.query(ASK, self.ask),
                pipeline.many(
                    MANY,
                    NAME,
                    self.name,
                    parts=lambda request: request.names,
                    answer=answers,
                    alike=Alike(
                        lambda request: [*map(NamesAlike, request.alike)],
                        self.name_alike,
                        lambda changes, commands, replies: shard.record_together(
                            changes, commands, replies, now_us=1
                        ),
                    ),
                ),
            ]
        )

    def _require_room(self) -> None:
        if self.full:
            raise RefusedError("busy", "not now")

    async def name(self, request: Name, caller: Identity) -> Decision[Named]:
        self.decided.append(request.text)
        await self.hold.wait()
        if self.refusal is not None and self.refused in {"", request.text}:
            raise self.refusal
        return Decision(
            lambda position: Named(f"{request.text} of {caller.name}", position),
            [("job/1.0", JobReleased(reason=request.text))],
            effect=lambda: self.effects.append(request.text),
        )

    async def name_alike(self, request: NamesAlike, caller: Identity) -> DecisionOfMany[Named] | None:
        await self.hold.wait()
        if self.refusal is not None:
            return None
        self.together.append(request.ids)
        return DecisionOfMany(
            lambda position: [Named(f"{text} of {caller.name}", position) for text in request.ids],
            [("job/1.0", JobReleased(reason=" ".join(request.ids)))],
        )

    async def ask(self, request: Name, caller: Identity) -> Named:
        return Named(request.text, Position("s", self.shard.frame))

    async def frames(self) -> int:
        return len([frame async for frame in self.log.read("s")])


@pytest_asyncio.fixture
async def service() -> AsyncIterator[Service]:
    log = GatedLog()
    async with Shard.own(log, "s", owner="me") as shard:
        committer = asyncio.create_task(shard.run())
        yield Service(log, shard)
        committer.cancel()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_nothing_leaves_before_the_commit(service: Service) -> None:
    """
    Neither the reply, nor an effect, nor the answer to a query that may have seen what is not committed.
    """
    service.log.gate.clear()
    command = asyncio.create_task(service.asked.ask(NAME, Name("1", "x"), ADA))
    await turns()
    query = asyncio.create_task(service.asked.ask(ASK, Name("2"), ADA))
    await turns()
    assert ([False, False], []) == ([command.done(), query.done()], service.effects)
    service.log.gate.set()
    assert Named("x of ada", Position("s", 1)) == await command
    await query
    assert ["x"] == service.effects


async def test_a_repeat_gets_the_first_answer(service: Service) -> None:
    """
    While the first is decided, while it is committed, and afterwards; another caller's id is another command.
    """
    service.hold.clear()
    first = [asyncio.create_task(service.asked.ask(NAME, Name("1", text), ADA)) for text in ("x", "y")]
    await turns()
    service.log.gate.clear()
    service.hold.set()
    await turns()
    first.append(asyncio.create_task(service.asked.ask(NAME, Name("1", "z"), ADA)))
    await turns()
    service.log.gate.set()
    assert {"x of ada"} == {(await task).text for task in first}
    assert "x of ada" == (await service.asked.ask(NAME, Name("1", "late"), ADA)).text
    assert (["x"], ["x"], 1) == (service.decided, service.effects, await service.frames())
    assert "e of eve" == (await service.asked.ask(NAME, Name("1", "e"), EVE)).text
    assert "o of ada" == (await service.asked.ask(OTHER, Name("1", "o"), ADA)).text
    assert 3 == await service.frames()


async def test_a_caller_that_goes_away_stops_nothing(service: Service) -> None:
    """What it asked is carried out once, and answered when it asks again."""
    service.log.gate.clear()
    gone = asyncio.create_task(service.asked.ask(NAME, Name("1", "x"), ADA))
    await turns()
    gone.cancel()
    await turns()
    service.log.gate.set()
    assert "x of ada" == (await service.asked.ask(NAME, Name("1", "x"), ADA)).text
    assert (["x"], 1) == (service.decided, await service.frames())


async def test_a_refusal_is_forgotten_unless_it_is_to_be_remembered(service: Service) -> None:
    """A repeat is decided again; where the refused command may have had effects, it is told the same."""
    service.refusal = RefusedError("refused", "no")
    for endpoint in (NAME, OTHER):
        with pytest.raises(RefusedError, match="no"):
            await service.asked.ask(endpoint, Name("1", "x"), ADA)
    service.refusal = None
    assert "x of ada" == (await service.asked.ask(NAME, Name("1", "x"), ADA)).text
    with pytest.raises(RefusedError, match="no"):
        await service.asked.ask(OTHER, Name("1", "x"), ADA)
    assert 1 == await service.frames()


def many(*texts: str) -> Names:
    return Names([Name(text, text) for text in texts])


async def test_many_commands_in_one_are_each_what_they_are_alone(service: Service) -> None:
    """
    Each is known by its own id, however it comes again; what is refused is refused alone; and they share their commits.
    """
    texts = [f"{number}" for number in range(3 * PER_TURN)]
    assert "1 of ada" == (await service.asked.ask(NAME, Name("1", "1"), ADA)).text
    service.refusal, service.refused = RefusedError("unacceptable", "no"), "2"
    found = await service.asked.ask(MANY, many(*texts), ADA)
    assert ["0 of ada", "1 of ada", "no", "3 of ada"] == found.texts[:4]
    assert await service.frames() < PER_TURN
    service.refusal = None
    assert ["2 of ada", "3 of ada"] == (await service.asked.ask(MANY, many("2", "3"), ADA)).texts
    assert "3 of ada" == (await service.asked.ask(NAME, Name("3", "other"), ADA)).text
    assert sorted([*texts, "2"]) == sorted(service.decided)


async def test_commands_that_are_alike_are_decided_as_one(service: Service) -> None:
    """
    One event; and each keeps its id: those that come again, alone, in other company or to the next owner, get their first answer.
    """
    texts = (await service.asked.ask(MANY, Names([], [["a", "b", "c"]]), ADA)).texts
    assert (["a of ada", "b of ada", "c of ada"], [["a", "b", "c"]], 1) == (
        texts,
        service.together,
        await service.frames(),
    )
    again = await service.asked.ask(MANY, Names([Name("x", "x")], [["c", "d", "e", "d"], ["a"], ["e"]]), ADA)
    assert ["x", "c", "d", "e", "d", "a", "e"] == [text.removesuffix(" of ada") for text in again.texts]
    assert [["d", "e"]] == service.together[1:]
    assert "b of ada" == (await service.asked.ask(NAME, Name("b", "other"), ADA)).text
    assert ["x"] == service.decided
    assert "b of eve" == (await service.asked.ask(NAME, Name("b", "b"), EVE)).text
    async with Shard.own(service.log, "s", owner="next") as shard:
        known = [shard.answer(f"{ADA.token}:name:{text}") is not None for text in "abcdef"]
    assert [True, True, True, True, True, False] == known


async def test_those_that_are_alike_and_under_way_are_decided_once(service: Service) -> None:
    """However they come again meanwhile."""
    service.hold.clear()
    first = asyncio.create_task(service.asked.ask(MANY, Names([], [["a", "b"]]), ADA))
    await turns()
    second = asyncio.create_task(service.asked.ask(MANY, Names([], [["b", "a"]]), ADA))
    third = asyncio.create_task(service.asked.ask(NAME, Name("a", "other"), ADA))
    await turns()
    service.hold.set()
    assert ["b of ada", "a of ada"] == (await second).texts
    assert ("a of ada", ["a of ada", "b of ada"]) == ((await third).text, (await first).texts)
    assert ([["a", "b"]], [], 1) == (service.together, service.decided, await service.frames())


async def test_where_one_may_be_refused_each_is_decided_alone(service: Service) -> None:
    """What is refused is refused alone, and its id is free."""
    service.refusal, service.refused = RefusedError("unacceptable", "no"), "b"
    found = await service.asked.ask(MANY, Names([], [["a", "b", "c"]]), ADA)
    assert (["a of ada", "no", "c of ada"], []) == (found.texts, service.together)
    service.refusal = None
    assert ["b of ada", "a of ada"] == (await service.asked.ask(MANY, Names([], [["b", "a"]]), ADA)).texts
    assert ["a", "b", "c", "b"] == service.decided


async def test_a_refusal_that_may_pass_is_one_of_all(service: Service) -> None:
    """Who asks again gets the first answer to what was recorded."""
    service.refusal, service.refused = RefusedError("busy", "not now"), "b"
    with pytest.raises(RefusedError, match="not now"):
        await service.asked.ask(MANY, many("a", "b"), ADA)
    service.refusal = None
    assert ["a of ada", "b of ada"] == (await service.asked.ask(MANY, many("a", "b"), ADA)).texts
    assert ["a", "b", "b"] == service.decided
    service.full = True
    with pytest.raises(RefusedError, match="not now"):
        await service.asked.ask(MANY, many("a", "c"), ADA)


async def test_only_commands_with_an_id_are_refused_for_want_of_room(service: Service) -> None:
    """What daemons report has to be recorded, and repeats of what is answered need no room."""
    await service.asked.ask(NAME, Name("1", "x"), ADA)
    service.full = True
    with pytest.raises(RefusedError, match="not now"):
        await service.asked.ask(NAME, Name("2", "y"), ADA)
    assert "x of ada" == (await service.asked.ask(NAME, Name("1", "x"), ADA)).text
    await service.asked.ask(STATE, Name("3", "z"), ADA)
    await service.asked.ask(ASK, Name("4"), ADA)
    assert ["x", "z"] == service.decided


async def test_who_has_lost_its_shard_is_not_there_any_more(service: Service) -> None:
    """The caller asks again, and finds the successor."""
    await service.log.take("s", owner="other")
    for endpoint in (NAME, STATE):
        with pytest.raises(RefusedError) as refused:
            await service.asked.ask(endpoint, Name("1", "x"), ADA)
        assert "unavailable" == refused.value.code
    assert [] == service.effects


async def test_a_command_is_served_as_it_is_declared(service: Service) -> None:
    """What changes something is no query, and the other way round."""
    pipeline = CommandPipeline(Recorder(service.shard))
    with pytest.raises(TypeError, match="query"):
        pipeline.command(ASK, service.name)
    with pytest.raises(TypeError, match="command"):
        pipeline.query(NAME, service.ask)
