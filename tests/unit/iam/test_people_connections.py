"""Which connections of people are looked at when something is withdrawn."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import msgspec

from kettle.auth.mapping.principals import Principal
from kettle.auth.trust.callout import Question
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_driver import Msg
from kettle.runtime.policy_in_force import PolicyInForce
from kettle.testing.patience import PATIENCE_S
from kettle_services.iam.domain.persons import Person
from kettle_services.iam.people.connections import PeopleConnections
from kettle_services.iam.people.identification import Identification, Identified
from kettle_services.iam.people.told import ToldPeople
from kettle_services.iam.record import Changes, Record
from kettle_wire.commands.iam import Right


class Listening:
    async def unsubscribe(self) -> None:
        pass


class Server:
    """A server with the connections 1 to 4, which says so or not."""

    def __init__(self) -> None:
        self.answers = True
        self.looks = 0
        self.ended: list[int] = []
        self._note: Callable[[Any], None] = lambda _: None

    def new_inbox(self) -> str:
        return "inbox"

    async def subscribe(self, _subject: str, note: Callable[[Any], None]) -> Listening:
        self._note = note
        return Listening()

    async def publish(self, subject: str, data: bytes, *, reply: str) -> None:
        assert reply
        if subject.endswith("KICK"):
            self.ended.append(msgspec.json.decode(data)["cid"])
            return
        self.looks += 1
        if self.answers:
            there = [{"cid": number, "authorized_user": "x" * 56} for number in range(1, 5)]
            page = {"data": {"server_id": "S", "total": 4, "connections": there}}
            self._note(Msg(cast("Any", None), subject="inbox", data=msgspec.json.encode(page)))


class Everybody:
    """Is accepted as before."""

    def again(self, found: Identified) -> Identified:
        return found

    def changed(self) -> bool:
        return False

    async def tell(self, _person: Person) -> None:
        pass

    async def forget(self, _owner: str) -> None:
        pass


class Recorded:
    def __init__(self) -> None:
        self.changes = Changes()


@asynccontextmanager
async def looking(server: Server, changes: Recorded, *, changed: bool = False) -> AsyncGenerator[None]:
    """
    Somebody has come by the tokens t1, t2 and t3, and t3 was made from t0; of connection 4 nobody knows.
    """
    everybody = Everybody()
    connections = PeopleConnections(
        cast("NatsConnection", server),
        "A",
        cast("Identification", everybody),
        cast("PolicyInForce", everybody),
        cast("Record", changes),
        cast("ToldPeople", everybody),
    )
    for number in (1, 2, 3):
        claims: dict[str, object] = {"jti": f"t{number}", "parents": ["t0"] if number == 3 else []}
        person = Person(
            owner=f"p{number}",
            method="IDTOKENS",
            issuer="",
            subject="",
            token="",
            rights=(Right(level="WRITE", because=""),),
            expires=0.0,
        )
        principal = Principal(method="IDTOKENS", text=f"p{number}", claims=claims)
        question = Question(server="S", connection=number, key="U", address="192.0.2.1", token="")
        connections.came(question, Identified(principal=principal, person=person), "person")
    task = asyncio.create_task(connections.run(changed=changed))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_withdrawn_token_concerns_who_has_shown_it() -> None:
    """Only where some connections may be unknown are all of them looked at, and then once."""
    server, recorded = Server(), Recorded()
    async with looking(server, recorded):
        recorded.changes.withdraw("of a job")
        await until(lambda: [4] == server.ended)
        assert 1 == server.looks
        recorded.changes.withdraw("of another job")
        recorded.changes.withdraw("t2")
        await until(lambda: [4, 2] == server.ended)
        recorded.changes.withdraw("t0")
        await until(lambda: [4, 2, 3] == server.ended)
    assert 1 == server.looks


async def test_a_server_that_says_nothing_is_asked_again() -> None:
    """Nobody is taken for gone, or for known, because an answer did not come in time."""
    server, recorded = Server(), Recorded()
    server.answers = False
    async with looking(server, recorded, changed=True):
        await until(lambda: server.looks >= 2)
        assert [] == server.ended
        server.answers = True
        await until(lambda: [4] == server.ended)
