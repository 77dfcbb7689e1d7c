"""
Answers the bus that asks who somebody is (`kettle.auth.trust.callout`).

Questions are taken from one address after the other, so however many come from one, those from elsewhere do not wait for
them; of more than can be taken in soon the newest are refused.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from typing import Final

from kettle.auth.trust.callout import QUESTIONS, PeopleSigner, Question
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_driver import Msg
from kettle.bus.ports import BusError
from kettle.eventsourcing.log import LogUnavailableError
from kettle.http.rate_limits import network
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.people.connections import PeopleConnections
from kettle_services.iam.people.identification import Identification
from kettle_services.iam.people.told import ToldPeople

_QUEUE: Final = "iam"
_LONGEST_S: Final = 86_400.0
"""For so long a connection lasts at the most: then the credential is looked at again."""
_MOST_OF_ONE: Final = 200
"""Questions from one address that wait."""
_MOST_ADDRESSES: Final = 10_000
"""Addresses, of IPv6 networks, from which questions wait."""
_AT_ONCE: Final = 64
"""Questions in hand: most are answered at once, a few wait for the keys of an issuer."""
_MOST_REFUSALS: Final = 10_000
"""Beyond them the server says no by itself, after its two seconds."""
_REFUSED: Final = b""
"""It costs no signature. A client is never told more, and iam's record and its answers over HTTP have the reason."""

_log: Final = logging.getLogger(__name__)


class Waiting:
    """Questions that wait, by address; the addresses take turns."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[tuple[Question, str]]] = OrderedDict()
        self._more = asyncio.Event()

    def put(self, question: Question, reply: str) -> bool:
        """Whether there is room for it."""
        asker = network(question.address)
        if asker not in self._waiting and len(self._waiting) >= _MOST_ADDRESSES:
            return False
        queue = self._waiting.setdefault(asker, deque())
        if len(queue) >= _MOST_OF_ONE:
            return False
        queue.append((question, reply))
        self._more.set()
        return True

    async def take(self) -> tuple[Question, str]:
        """The next one."""
        while not self._waiting:
            self._more.clear()
            await self._more.wait()
        address, queue = self._waiting.popitem(last=False)
        found = queue.popleft()
        if queue:
            self._waiting[address] = queue
        return found


class Responder:
    """Answers, as long as `run` runs."""

    def __init__(
        self,
        connection: NatsConnection,
        signer: PeopleSigner,
        identification: Identification,
        connections: PeopleConnections,
        told: ToldPeople,
        denials: DenialRecord,
    ) -> None:
        self._told = told
        self._connection = connection
        self._signer = signer
        self._identification = identification
        self._connections = connections
        self._denials = denials
        self._waiting = Waiting()
        self._refusals: asyncio.Queue[str] = asyncio.Queue(_MOST_REFUSALS)

    async def listen(self) -> None:
        """Have the server ask us; several iams share the questions."""
        await self._connection.subscribe(QUESTIONS, self._asked, queue=_QUEUE)
        await self._connection.settle()

    async def run(self) -> None:
        """Answer; never returns."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(_AT_ONCE):
                tasks.create_task(self._answer_all(), name=f"callout-{number}")
            tasks.create_task(self._refuse_all(), name="callout-refusals")

    def _asked(self, message: Msg) -> None:
        try:
            question = Question.decode(message.data)
        except (ValueError, IndexError) as error:
            _log.error("the server asks what nobody understands: %s", error)
            return
        if not self._waiting.put(question, message.reply):
            self._refuse(message.reply)

    def _refuse(self, reply: str) -> None:
        if not self._refusals.full():
            self._refusals.put_nowait(reply)

    async def _refuse_all(self) -> None:
        while True:
            reply = await self._refusals.get()
            try:
                await self._connection.publish(reply, _REFUSED)
            except BusError as error:  # the server says no by itself
                _log.warning("a refusal did not leave: %s", error)

    async def _answer_all(self) -> None:
        while True:
            question, reply = await self._waiting.take()
            try:
                await self._answer(question, reply)
            except (BusError, LogUnavailableError, KeyError):
                _log.exception("somebody is not let in, because who it is could not be recorded or said")
                self._refuse(reply)

    async def _answer(self, question: Question, reply: str) -> None:
        try:
            found = await self._identification.identify(question.token)
            person, kind, now = found.person, found.person.kind, time.time()
        except Denied as refusal:
            await self._connection.publish(reply, _REFUSED)
            if refusal.code != Code.TOKEN_ABSENT:
                await self._denials.denied("", "connect", refusal, question.address)
            return
        ends = min(person.expires or now + _LONGEST_S, now + _LONGEST_S)
        self._connections.came(question, found, kind)
        await self._told.tell(person)
        signed = self._signer.person(question, kind, person.owner, now=int(now), expires=int(ends))
        await self._connection.publish(reply, signed)
