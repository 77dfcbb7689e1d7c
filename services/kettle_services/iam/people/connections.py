"""
The connections of people who came with a token, and their end as soon as such a token would not be accepted any more.

What is remembered is bounded, and lost with the process.  So is nobody's right to be refused: a connection of which nothing is
known is ended when anything changes, and its client comes again at once and is asked who he is.
"""

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Collection
from typing import Final

import msgspec

from kettle.auth.trust.callout import Question, connections_of, end_at, goodbyes
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_driver import Msg
from kettle.runtime.policy_in_force import PolicyInForce
from kettle_services.iam.domain.persons import Person
from kettle_services.iam.domain.refusals import Denied
from kettle_services.iam.domain.sessions import parents_of
from kettle_services.iam.people.identification import Identification, Identified
from kettle_services.iam.people.told import ToldPeople
from kettle_services.iam.record import Record

_MOST: Final = 100_000
"""Connections that are remembered."""
_AT_ONCE: Final = 50
"""Connections that are looked at before others have their turn."""
_LOOK_S: Final = 0.5
"""Between two looks at the files of rules."""
_PAGE: Final = 1024
_ANSWERS_S: Final = 0.2
"""For so long servers may take to say which connections they have."""
_NKEY: Final = re.compile("U[A-Z2-7]{55}")
"""A public key, which stands for the name of those who came with a credential of their own."""

_log: Final = logging.getLogger(__name__)

Place = tuple[str, int]
"""A server's id, and a connection's number there."""


class _Connection(msgspec.Struct, frozen=True):
    cid: int
    authorized_user: str = ""


class _Connections(msgspec.Struct, frozen=True):
    server_id: str
    total: int = 0
    connections: list[_Connection] = []


class _Listed(msgspec.Struct, frozen=True):
    data: _Connections


class _Left(msgspec.Struct, frozen=True):
    server: "_Id"
    client: "_Number"


class _Id(msgspec.Struct, frozen=True):
    id: str


class _Number(msgspec.Struct, frozen=True):
    id: int


_listed: Final = msgspec.json.Decoder(_Listed).decode
_left: Final = msgspec.json.Decoder(_Left).decode


class PeopleConnections:
    """Knows them, and ends them."""

    def __init__(
        self,
        connection: NatsConnection,
        account: str,
        identification: Identification,
        policy: PolicyInForce,
        record: Record,
        told: ToldPeople,
    ) -> None:
        """`account`: the public key of the account of people."""
        self._connection = connection
        self._account = account
        self._told = told
        self._identification = identification
        self._policy = policy
        self._changes = record.changes
        self._known: OrderedDict[Place, tuple[Identified, str]] = OrderedDict()
        self._showed: dict[str, set[Place]] = {}
        """The places of those that are known, by the ids of the tokens that their right comes of."""
        self._all_known = False
        """Whether a connection with a token of which nothing is remembered cannot be."""
        self._withdrawn: set[str] = set()
        """Tokens that were withdrawn since connections were looked at."""
        record.changes.on_withdrawal(self._withdrawn.add)

    def came(self, question: Question, found: Identified, kind: str) -> None:
        """Somebody is let in."""
        place = question.server, question.connection
        self._forget(place)
        self._known[place] = found, kind
        for token in _tokens(found):
            self._showed.setdefault(token, set()).add(place)
        if len(self._known) > _MOST:
            self._forget(next(iter(self._known)))
            self._all_known = False

    def _forget(self, place: Place) -> bool:
        """Whether it was known."""
        known = self._known.pop(place, None)
        if known is None:
            return False
        for token in _tokens(known[0]):
            places = self._showed[token]
            places.discard(place)
            if not places:
                del self._showed[token]
        return True

    def _forget_all(self) -> None:
        self._known.clear()
        self._showed.clear()
        self._all_known = False

    async def listen(self) -> None:
        """
        Have servers say whose connection has ended; of what ended while they could not, nothing is remembered.
        """
        self._connection.watch(back=self._forget_all)
        await self._connection.subscribe(goodbyes(self._account), self._gone)
        await self._connection.settle()

    def _gone(self, message: Msg) -> None:
        left = _left(message.data)
        self._forget((left.server.id, left.client.id))

    async def run(self, *, changed: bool) -> None:
        """
        End connections when what let them in is withdrawn; never returns.  `changed`: something has, while nobody ran.
        """
        seen = self._changes.count
        while True:
            if changed or (self._withdrawn and not self._all_known):
                changed = not await self._review()
            elif self._withdrawn:
                await self._review_withdrawn()
            if self._withdrawn and not changed:
                continue
            changed |= await self._changes.after(seen, within=_LOOK_S)
            seen = self._changes.count
            changed |= self._policy.changed()

    async def _review_withdrawn(self) -> None:
        """End the connections of who has shown tokens that were withdrawn."""
        withdrawn, gone = self._withdrawn.copy(), set[str]()
        self._withdrawn -= withdrawn
        places = {place for token in withdrawn for place in self._showed.get(token, ())}
        for place in places:
            gone.add(self._known[place][0].person.owner)
            self._forget(place)
        kept = {found.person.owner: found.person for found, _ in self._known.values()} if gone else {}
        for place in places:
            await self._end(place)
        for owner in gone:
            if owner in kept:
                await self._told.tell(kept[owner])
            else:
                await self._told.forget(owner)

    async def _review(self) -> bool:
        """Look at all connections; whether servers have said which there are."""
        self._withdrawn.clear()
        kept: dict[str, Person] = {}
        gone: set[str] = set()
        for at, (place, (found, kind)) in enumerate(list(self._known.items())):
            owner, now = found.person.owner, self._again(found, kind)
            if now is not None:
                kept[owner] = now.person
            elif self._forget(place):
                gone.add(owner)
                await self._end(place)
            if at % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        for owner in gone.difference(kept):
            await self._told.forget(owner)
        for person in kept.values():
            await self._told.tell(person)
        open_ = await self._open()
        if open_ is None:
            return False
        unknown = {
            (server, number)
            for server, numbers in open_.items()
            for number in numbers
            if (server, number) not in self._known
        }
        self._all_known = True
        for place in unknown:
            await self._end(place)
        return True

    def _again(self, found: Identified, kind: str) -> Identified | None:
        """Who it is by what is in force now; None: he would not be let in as he was then."""
        try:
            now = self._identification.again(found)
            same = (now.person.owner, now.person.kind) == (found.person.owner, kind)
        except Denied:
            return None
        return now if same else None

    async def _end(self, place: Place) -> None:
        server, number = place
        # A server does nothing for who does not ask for an answer, whether anybody hears that or not.
        asked = msgspec.json.encode({"cid": number})
        await self._connection.publish(end_at(server), asked, reply=self._connection.new_inbox())
        _log.info(
            "ended a connection whose credential is not accepted any more", extra={"connection": number}
        )

    async def _open(self) -> dict[str, set[int]] | None:
        """All connections of people with a token, by server; None: no server says which there are."""
        found: dict[str, set[int]] = {}
        offset, more = 0, True
        while more:
            more = False
            pages = await self._pages(offset)
            if not pages:
                return None
            for page in pages:
                of_tokens = {
                    each.cid for each in page.connections if not _NKEY.fullmatch(each.authorized_user)
                }
                found.setdefault(page.server_id, set()).update(of_tokens)
                more |= page.total > offset + _PAGE
            offset += _PAGE
        return found

    async def _pages(self, offset: int) -> Collection[_Connections]:
        pages: list[_Connections] = []

        def note(message: Msg) -> None:
            pages.append(_listed(message.data).data)

        inbox = self._connection.new_inbox()
        listening = await self._connection.subscribe(inbox, note)
        try:
            asked = msgspec.json.encode({"auth": True, "limit": _PAGE, "offset": offset})
            await self._connection.publish(connections_of(self._account), asked, reply=inbox)
            await asyncio.sleep(_ANSWERS_S)
        finally:
            await listening.unsubscribe()
        return pages


def _tokens(found: Identified) -> set[str]:
    """The ids of the token that was shown, and of those from which it was made."""
    principal = found.principal
    return {each for each in (principal.id, *parents_of(principal.claims)) if each}
