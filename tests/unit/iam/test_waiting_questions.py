"""In which order questions of the bus about people are answered."""

from collections.abc import Callable
from typing import Any

import pytest

from kettle.auth.trust.callout import Question
from kettle_services.iam.people.heard_questions import AWAITED_S, HeardQuestions, Waiting
from kettle_services.iam.people.refusals import Refusals


def question(address: str, number: int) -> Question:
    return Question(server="S", connection=number, key="U", address=address, token="")


async def test_addresses_take_turns() -> None:
    """However many questions come from one address, one from elsewhere waits for one of them."""
    waiting = Waiting(lambda: 0.0)
    for number in range(100):
        assert waiting.put(question("flood", number), "")
    assert waiting.put(question("ada", 1000), "")
    assert waiting.put(question("bob", 1001), "")
    taken = [(await waiting.take())[0] for _ in range(102)]
    assert ["flood", "ada", "bob", "flood"] == [each.address for each in taken[:4]]
    of_flood = [each.connection for each in taken if each.address == "flood"]
    assert list(range(100)) == of_flood


async def test_only_so_many_of_one_address_wait() -> None:
    """The newest are refused at once, and those from elsewhere are not."""
    waiting = Waiting(lambda: 0.0)
    room = [waiting.put(question("flood", number), "") for number in range(300)]
    assert (True, False) == (room[0], room[-1])
    assert waiting.put(question("ada", 1), "")
    while (await waiting.take())[0].address != "ada":
        pass
    assert waiting.put(question("flood", 301), "")


async def test_networks_take_turns_and_only_so_many_wait() -> None:
    """
    Who has a network of IPv6 has all its addresses, and counts as one; beyond 10,000 askers the newest are refused.
    """
    waiting = Waiting(lambda: 0.0)
    room = [waiting.put(question(f"2001:db8::{number:x}", number), "") for number in range(300)]
    assert (True, False) == (room[0], room[-1])
    for number in range(9_999):
        assert waiting.put(question(f"10.{number >> 8}.{number & 255}.1", number), "")
    assert not waiting.put(question("192.0.2.1", 1), "")
    assert waiting.put(question("10.0.0.1", 2), "")


async def test_what_nobody_waits_for_is_forgotten() -> None:
    """
    While the record is read who comes from one machine comes again and again: at its end those are answered that wait then, and what
    was heard before takes no place, neither theirs nor in the memory.
    """
    now = 0.0
    waiting = Waiting(lambda: now)
    for round_ in range(10):
        now = round_ * (AWAITED_S + 1)
        assert all(waiting.put(question("login", 1000 * round_ + number), "") for number in range(200))
        assert waiting.put(question(f"2001:db8:{round_:x}::1", round_), "")
    assert not waiting.put(question("login", 1), "")
    taken = [(await waiting.take())[0].connection for _ in range(201)]
    assert {9, *range(9000, 9200)} == set(taken)
    assert waiting.put(question("ada", 7), "")
    now += AWAITED_S + 1
    assert waiting.put(question("bob", 8), "")
    assert 8 == (await waiting.take())[0].connection


class Server:
    """A connection to a server that asks."""

    def __init__(self) -> None:
        self.ask: Callable[[Any], None]

    async def subscribe(self, _subject: str, listener: Callable[[Any], None]) -> None:
        self.ask = listener

    async def settle(self) -> None:
        pass


class Asked:
    """A question as it comes."""

    data = b""
    reply = "there"


async def test_one_that_stands_by_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Those for whom it has no room are answered by the one in charge; once that is itself, it refuses them.
    """
    refused: list[str] = []

    def decode(_data: bytes) -> Question:
        return question("flood", 1)

    def refuse(_refusals: Refusals, _reply: str, address: str) -> None:
        refused.append(address)

    monkeypatch.setattr(Question, "decode", decode)
    monkeypatch.setattr(Refusals, "refuse", refuse)
    heard = HeardQuestions(server := Server())  # type: ignore[arg-type]
    await heard.listen()
    for _ in range(300):
        server.ask(Asked())
    assert not refused
    heard.take_charge()
    server.ask(Asked())
    assert ["flood"] == refused
