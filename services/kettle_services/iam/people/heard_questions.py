"""
What the bus asks about who comes with a token, from the first moment of this process.

Questions are heard before the shard is owned and long before they can be answered: the server asks once, and who is asked about
while nobody hears has to come again when the server's patience has ended.  So every iam hears all of them, also one that stands by:
it answers none, and has those of the last moment when it takes over.  A server takes the first answer and no other.

They are taken from one address after the other, so however many come from one, those from elsewhere do not wait for
them; of more than can be taken in soon the newest are refused.  One for whose answer nobody waits any more is forgotten: else those who
come again and again while the record is read would be in their own way, and in the memory.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import private_directory, write_private
from kettle.auth.trust.callout import QUESTIONS, RESPONDER, CalloutKeys, Question
from kettle.auth.trust.keys import TrustError
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_driver import Msg
from kettle.http.rate_limits import network
from kettle.runtime import Runtime, SettingsError
from kettle_services.iam.people.refusals import Refusals
from kettle_services.iam.settings import IamSettings
from kettle_wire.identity import Identity

FILE: Final = "people-keys.json"
_MOST_OF_ONE: Final = 200
"""Questions from one address that wait."""
_MOST_ADDRESSES: Final = 10_000
"""Addresses, of IPv6 networks, from which questions wait."""
AWAITED_S: Final = 2.5
"""For so long an answer may be awaited: a server says no by itself after two seconds, and ours sooner."""

_log: Final = logging.getLogger(__name__)


class _Heard(msgspec.Struct, frozen=True):
    """A question, the place for its answer, and when it has come."""

    question: Question
    reply: str
    at: float


class Waiting:
    """Questions that wait, by address; the addresses take turns."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: OrderedDict[str, deque[_Heard]] = OrderedDict()
        self._came: deque[tuple[float, str]] = deque()
        """When each question has come, and from where; also of some that have been taken."""
        self._more = asyncio.Event()

    def put(self, question: Question, reply: str) -> bool:
        """Whether there is room for it."""
        self._forget()
        asker, now = network(question.address), self._clock()
        if asker not in self._waiting and len(self._waiting) >= _MOST_ADDRESSES:
            return False
        queue = self._waiting.setdefault(asker, deque())
        if len(queue) >= _MOST_OF_ONE:
            return False
        queue.append(_Heard(question, reply, now))
        self._came.append((now, asker))
        self._more.set()
        return True

    async def take(self) -> tuple[Question, str]:
        """The next one."""
        while not self._there():
            self._more.clear()
            await self._more.wait()
        address, queue = self._waiting.popitem(last=False)
        found = queue.popleft()
        if queue:
            self._waiting[address] = queue
        return found.question, found.reply

    def _there(self) -> bool:
        self._forget()
        return bool(self._waiting)

    def _forget(self) -> None:
        """Those that have come so long ago that nobody waits."""
        until = self._clock() - AWAITED_S
        while self._came and self._came[0][0] < until:
            _, asker = self._came.popleft()
            queue = self._waiting.get(asker)
            while queue and queue[0].at < until:
                queue.popleft()
            if queue is not None and not queue:
                del self._waiting[asker]


class HeardQuestions:
    """Hears them, and keeps them until they are answered."""

    def __init__(self, connection: NatsConnection) -> None:
        self.connection: Final = connection
        """The one on which is answered, too."""
        self.refusals: Final = Refusals(connection)
        self._waiting = Waiting()
        self._in_charge = False
        """Whether it is this iam that answers."""

    async def listen(self) -> None:
        """Have the server ask us; it asks all iams."""
        await self.connection.subscribe(QUESTIONS, self._asked)
        await self.connection.settle()

    def take_charge(self) -> None:
        """From now on it is this iam that answers."""
        self._in_charge = True

    async def take(self) -> tuple[Question, str]:
        """The next one, and where its answer is awaited."""
        return await self._waiting.take()

    def _asked(self, message: Msg) -> None:
        try:
            question = Question.decode(message.data)
        except (ValueError, IndexError) as error:
            _log.error("the server asks what nobody understands: %s", error)
            return
        if not self._waiting.put(question, message.reply) and self._in_charge:
            self.refusals.refuse(message.reply, question.address)


def callout_keys(settings: IamSettings) -> CalloutKeys | None:
    """
    The keys that sign for people; None: the pool's bus lets nobody in by a token.

    Raises:
        SettingsError: the file holds none.
    """
    path = Path(settings.people_keys or settings.home_path / "credentials" / FILE)
    if not settings.people_keys and not path.exists():
        return None
    try:
        return CalloutKeys.decode(path.read_bytes())
    except (OSError, TrustError) as error:
        raise SettingsError(f"people_keys: {path} cannot be used: {error}") from error


async def hear(rt: Runtime, settings: IamSettings) -> HeardQuestions | None:
    """Hear what the server asks from now on; None: it lets nobody in by a token."""
    keys = callout_keys(settings)
    if keys is None:
        return None
    questions = HeardQuestions(await connected(rt, settings, RESPONDER, keys.responder))
    rt.loop(questions.refusals.run(), name="refusals")
    await questions.listen()
    return questions


async def connected(rt: Runtime, settings: IamSettings, who: Identity, credential: str) -> NatsConnection:
    """
    A connection to the bus as one of those that iam is there beside itself; `credential` as the text of a file.
    """
    directory = private_directory(settings.directory)
    path = write_private(directory / f"{who.name}.creds", credential)
    connection = await rt.enter(
        NatsConnection.open(
            settings.nats_url,
            identity=who,
            credentials=str(path),
            name=f"iam-{who.name}",
            patience=None,
            ca=settings.nats_ca,
        )
    )
    rt.loop(_failure(connection), name=who.name)
    return connection


async def _failure(connection: NatsConnection) -> None:
    await asyncio.shield(connection.failed)
