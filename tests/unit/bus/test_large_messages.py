"""What a service holds of messages in parts: for whom, how much, and for how long."""

import asyncio

import msgspec
import pytest

from kettle.bus.large_messages import CompleteRequest, PartLimits, PartStore
from kettle.bus.large_requests import FETCH, LARGEST, PART_OF, PLACE, SIZE, Parcel, call_in_parts
from kettle.bus.ports import BusError, RefusedError, Served
from kettle.testing.patience import PATIENCE_S
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity

LIMIT = 10


class Text(msgspec.Struct, frozen=True):
    data: bytes


async def echo(request: Text, _caller: Identity) -> Text:
    return request


CALLERS = tuple(Caller)
ECHO = Served(Endpoint("test", "echo", Text, Text, callers=CALLERS, repeat=Repeat.HARMLESS), echo)


def depot(**limits: float) -> PartStore:
    return PartStore(lambda: LIMIT, msgspec.convert(limits, PartLimits))


def announced(at: PartStore, caller: str, size: int) -> str:
    """The number under which the parts of a request go."""
    answer = at.receive(caller, Parcel(b"", {SIZE: str(size)}), ECHO)
    assert isinstance(answer, Parcel)
    place, number = answer.headers[PLACE].split()
    assert at.place == place
    return number


def part(number: str, offset: int, data: bytes) -> Parcel:
    return Parcel(data, {PART_OF: f"{number} {offset}"})


async def test_a_request_is_complete_with_its_last_part() -> None:
    """It keeps its room until it has been answered."""
    here = depot()
    number = announced(here, "u-ada", 12)
    assert Parcel(b"") == here.receive("u-ada", part(number, 0, b"0123456789"), None)
    whole = here.receive("u-ada", part(number, 10, b"ab"), None)
    assert isinstance(whole, CompleteRequest)
    assert CompleteRequest(ECHO, b"0123456789ab", number) == whole
    assert 12 == here.held
    here.answered(whole)
    assert 0 == here.held


async def test_nobody_completes_the_request_of_another() -> None:
    """He is told what he would be told if there were none, and it is not harmed."""
    here = depot()
    number = announced(here, "u-ada", 12)
    here.receive("u-ada", part(number, 0, b"0123456789"), None)
    with pytest.raises(RefusedError) as refused:
        here.receive("u-eve", part(number, 10, b"!!"), None)
    assert "unavailable" == refused.value.code
    assert CompleteRequest(ECHO, b"0123456789ab", number) == here.receive(
        "u-ada", part(number, 10, b"ab"), None
    )


async def test_nobody_fetches_the_reply_of_another() -> None:
    """Only who asked gets the rest."""
    here = depot()
    first = here.reply("u-ada", b"0123456789abcdefghijkl")
    assert (b"0123456789", "22") == (first.data, first.headers[SIZE])
    number = first.headers[PLACE].split()[1]
    with pytest.raises(RefusedError):
        here.receive("u-eve", Parcel(b"", {FETCH: f"{number} 10"}), None)
    assert Parcel(b"abcdefghij") == here.receive("u-ada", Parcel(b"", {FETCH: f"{number} 10"}), None)
    assert 22 == here.held
    assert Parcel(b"kl") == here.receive("u-ada", Parcel(b"", {FETCH: f"{number} 20"}), None)
    assert 0 == here.held


@pytest.mark.parametrize(
    ("offset", "data"),
    [(5, b"01234"), (0, b"0123456789abc"), (0, bytes(20))],
    ids=["a gap", "one byte too many", "far too many"],
)
async def test_a_part_that_does_not_belong_ends_the_request(offset: int, data: bytes) -> None:
    """The caller has lost count; what he sent so far is worth nothing."""
    here = depot()
    number = announced(here, "u-ada", 12)
    with pytest.raises(RefusedError) as refused:
        here.receive("u-ada", part(number, offset, data), None)
    assert ("malformed", 0) == (refused.value.code, here.held)


@pytest.mark.parametrize("said", ["", "-1", "1e9", "٣", "9" * 40])
async def test_a_size_that_is_none_is_refused(said: str) -> None:
    """Whatever somebody writes into a header."""
    with pytest.raises(RefusedError) as refused:
        depot().receive("u-ada", Parcel(b"", {SIZE: said}), ECHO)
    assert "malformed" == refused.value.code


async def test_what_nobody_goes_on_with_is_dropped() -> None:
    """A request without its end, a reply that nobody fetches: both are forgotten after their time."""
    here = depot(idle=0.02)
    number = announced(here, "u-ada", 12)
    here.reply("u-ada", b"0123456789abcdefghijkl")
    async with asyncio.timeout(PATIENCE_S):
        while here.held:
            await asyncio.sleep(0.005)
    with pytest.raises(RefusedError, match="given up"):
        here.receive("u-ada", part(number, 0, b"x"), None)


async def test_who_sends_a_byte_now_and_then_is_not_waited_for_for_ever() -> None:
    """Each part may take its time, but all of them together have to keep a pace."""
    here = depot(idle=0.05, slowest=1_000_000)
    number = announced(here, "u-ada", 1_000)
    with pytest.raises(RefusedError, match="given up"):
        await asyncio.wait_for(trickle(here, number), PATIENCE_S)
    assert 0 == here.held


async def trickle(here: PartStore, number: str) -> None:
    """Send a byte every few milliseconds, far from all of them within the time."""
    for offset in range(1_000):
        here.receive("u-ada", part(number, offset, b"x"), None)
        await asyncio.sleep(0.005)


async def test_there_is_a_bound_for_each_and_for_all() -> None:
    """In bytes and in number, counted by what was announced, so that nothing fails half way."""
    here = depot(each=100, in_all=150, count=3)
    announced(here, "u-ada", 60)
    refusals: list[str] = []
    for caller, size in (("u-ada", 50), ("u-bob", 95), ("u-eve", LARGEST + 1)):
        with pytest.raises(RefusedError) as refused:
            announced(here, caller, size)
        refusals.append(refused.value.code)
    assert ["busy", "busy", "too_large"] == refusals
    for _ in range(3):
        announced(here, "u-bob", 1)
    with pytest.raises(RefusedError) as refused:
        announced(here, "u-bob", 1)
    assert refused.value.retry_after_ms > 0
    here.close()
    assert 0 == here.held


@pytest.mark.parametrize("second", [b"", b"0123456789abc"], ids=["an empty part", "more than was announced"])
async def test_a_service_that_answers_nonsense_is_found_out(second: bytes) -> None:
    """The caller neither asks endlessly nor takes more than was announced."""
    answers = iter([Parcel(b"0123456789", {SIZE: "12", PLACE: "there 1"}), Parcel(second)])

    async def carry(_place: str, _data: bytes, _headers: object) -> Parcel:
        return next(answers)

    with pytest.raises(BusError, match="do not fit"):
        await call_in_parts(carry, "a", b"", {}, limit=LIMIT)


async def test_a_small_command_is_one_message() -> None:
    """Nothing is announced and nothing is added to its headers."""
    sent: list[tuple[str, bytes, object]] = []

    async def carry(place: str, data: bytes, headers: object) -> Parcel:
        sent.append((place, data, headers))
        return Parcel(b"answer")

    assert b"answer" == await call_in_parts(carry, "a", b"0123456789", {}, limit=LIMIT)
    assert [("a", b"0123456789", {})] == sent


@pytest.mark.parametrize(
    "more",
    [{FETCH: "20"}, {FETCH: "0"}, {PART_OF: "0"}, {PART_OF: "5"}],
    ids=["end", "begin", "again", "odd"],
)
async def test_the_room_of_a_request_is_taken_until_it_is_answered(more: dict[str, str]) -> None:
    """Whatever its caller sends meanwhile, nobody holds more for him than was agreed."""
    here = depot()
    number = announced(here, "u-ada", 3)
    whole = here.receive("u-ada", part(number, 0, b"abc"), None)
    assert isinstance(whole, CompleteRequest)
    ((header, offset),) = more.items()
    with pytest.raises(RefusedError, match="given up"):
        here.receive("u-ada", Parcel(b"abc", {header: f"{number} {offset}"}), None)
    assert 3 == here.held
    here.answered(whole)
    assert 0 == here.held


async def test_an_endpoint_may_take_less() -> None:
    """What is announced for it and is larger is refused before there is room for it."""
    small = Served(
        Endpoint("test", "echo", Text, Text, callers=CALLERS, repeat=Repeat.HARMLESS, largest=11), echo
    )
    here = depot()
    with pytest.raises(RefusedError, match="11") as refused:
        here.receive("u-ada", Parcel(b"", {SIZE: "12"}), small)
    assert ("too_large", 0) == (refused.value.code, here.held)
    assert PLACE in here.receive("u-ada", Parcel(b"", {SIZE: "11"}), small).headers  # type: ignore[union-attr] # a parcel
