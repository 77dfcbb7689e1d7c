"""
What happens to every command of a service that owns a shard, between its arrival and its reply.

1. The bus has decoded it and admitted its caller, both by the command's declaration (`kettle.bus.callers`).
2. A repeat of a command with an id gets the first answer, or joins the one that is under way.
3. A command with an id is refused as `busy` while too much waits for its commit.  What daemons report is never refused.
4. Its handler decides, and returns a `Decision`: what is to be recorded, and the reply.
5. That is committed, together with the answer under the command's id.
6. Its effects begin, and the reply leaves.

A handler raises RefusedError to refuse; nothing of its own has been recorded then, unless it says otherwise.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from kettle.bus.ports import Handler, RefusedError, Rep, Req, Served
from kettle.bus.retryable import retryable
from kettle.eventsourcing.log import LogError
from kettle.eventsourcing.shard import Shard
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Endpoint, Position, Repeat
from kettle_wire.events import Event
from kettle_wire.identity import Identity

_encode: Final = msgspec.msgpack.Encoder().encode

Many = TypeVar("Many", bound=msgspec.Struct)
ManyRep = TypeVar("ManyRep", bound=msgspec.Struct)

PER_TURN: Final = 16
"""Commands of one that carries many, which are decided before others have a turn."""

Recording = Sequence[tuple[str, Event]]
"""Events to be recorded, each with its stream."""


class Recorder(Protocol):
    """A shard together with what is folded from it."""

    @property
    def shard(self) -> Shard:
        """The shard."""
        ...

    def record(
        self, changes: Recording, *, command: str = "", reply: Callable[[int], bytes] | None = None
    ) -> asyncio.Future[int]:
        """Fold, record and commit, as `Shard.record` does."""
        ...


class Decision(msgspec.Struct, Generic[Rep], frozen=True):
    """What a command comes to."""

    reply: Callable[[Position], Rep]
    """
    The answer, given where the changes are recorded. It is called after the commit; that of a command with an id just
    before, so that it can be stored with the changes: it does nothing then but make the answer.
    """
    changes: Recording = ()
    effect: Callable[[], None] | None = None
    """What begins after the commit."""
    confirm_owner: bool = False
    """
    Look whether the shard is still ours, even if there was nothing to commit, before anything leaves: for an answer on whose word
    the caller gives something up.
    """


Decide = Callable[[Req, Identity], Awaitable[Decision[Rep]]]
"""Decides one command of one caller; raises RefusedError to refuse it."""


class CommandPipeline:
    """Makes the commands that one owner of a shard serves out of what decides them."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        require_room: Callable[[], None] = lambda: None,
        around: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
        administrators: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """
        `require_room` raises RefusedError (`busy`) while too much waits for its commit. `around` is entered around deciding and
        committing, for an owner that decides one command after the other.
        """
        self._recorder = recorder
        self._require_room = require_room
        self._around = around
        self._administrators = administrators
        self._under_way: dict[str, asyncio.Task[Any]] = {}

    def command(
        self, endpoint: Endpoint[Req, Rep], decide: Decide[Req, Rep], *, remember: float = 0.0
    ) -> Served[Req, Rep]:
        """
        A command and how it is decided.

        `remember`: seconds for which a repeat is told of a refusal, too, because the refused command may have had effects.
        """
        if endpoint.repeat is Repeat.QUERY:
            raise TypeError(f"{endpoint} is declared to change nothing: serve it as a query")

        async def once(request: Req, caller: Identity) -> Rep:
            return await self._first_answer(endpoint, decide, request, caller, remember)

        async def each(request: Req, caller: Identity) -> Rep:
            async with self._owning():
                return await self._carry_out(decide, request, caller, "")

        handler = once if endpoint.repeat is Repeat.FIRST_ANSWER else each
        return Served(endpoint, handler, self._administrators)

    def query(self, endpoint: Endpoint[Req, Rep], answer: Handler[Req, Rep]) -> Served[Req, Rep]:
        """A query and what answers it; the answer leaves when all that it was made of is committed."""
        if endpoint.repeat is not Repeat.QUERY:
            raise TypeError(f"{endpoint} is declared to change something: serve it as a command")

        async def answered(request: Req, caller: Identity) -> Rep:
            async with self._owning():
                reply = await answer(request, caller)
                await self._recorder.shard.committed()
                return reply

        return Served(endpoint, answered, self._administrators)

    async def _first_answer(
        self,
        endpoint: Endpoint[Req, Rep],
        decide: Decide[Req, Rep],
        request: Req,
        caller: Identity,
        remember: float,
    ) -> Rep:
        async with self._owning():
            return await self._answer(endpoint, decide, request, caller, remember, self._require_room)

    def _answer(
        self,
        endpoint: Endpoint[Req, Rep],
        decide: Decide[Req, Rep],
        request: Req,
        caller: Identity,
        remember: float,
        require_room: Callable[[], None],
    ) -> asyncio.Future[Rep]:
        """The answer that a command with an id has got, or the one that is on its way."""
        id_: str = request.id  # type: ignore[attr-defined]  # the declaration of such an endpoint demands it
        command = f"{caller.token}:{endpoint.verb}:{id_}"
        if (first := self._recorder.shard.answer(command)) is not None:
            return asyncio.ensure_future(_decoded(endpoint, first))
        if command not in self._under_way:
            require_room()
            work = asyncio.create_task(self._carry_out(decide, request, caller, command))
            self._under_way[command] = work
            work.add_done_callback(lambda _: self._forget(command, remember))
        # A caller that disconnects meanwhile does not stop it, and repeats a command without an answer.
        return asyncio.shield(self._under_way[command])

    def many(
        self,
        endpoint: Endpoint[Many, ManyRep],
        one: Endpoint[Req, Rep],
        decide: Decide[Req, Rep],
        *,
        parts: Callable[[Many], Sequence[Req]],
        answer: Callable[[list[Rep | RefusedError]], ManyRep],
    ) -> Served[Many, ManyRep]:
        """
        A command that carries many of `one`: each is decided as if it had come alone, and all are committed together.

        What is refused for good is refused alone. A refusal that may pass is one of the whole command, which is then repeated: what
        is recorded by then gets its first answer.
        """

        async def all_of(request: Many, caller: Identity) -> ManyRep:
            async with self._owning():
                self._require_room()
                waiting: list[asyncio.Future[Rep]] = []
                for number, part in enumerate(parts(request), 1):
                    waiting.append(self._answer(one, decide, part, caller, 0.0, _room_for_all))
                    if number % PER_TURN == 0:
                        await asyncio.sleep(0)
                found = await asyncio.gather(*waiting, return_exceptions=True)
                return answer([_outcome(each) for each in found])

        return Served(endpoint, all_of, self._administrators)

    async def _carry_out(self, decide: Decide[Req, Rep], request: Req, caller: Identity, command: str) -> Rep:
        """Decide, record, act."""
        async with self._around():
            return await self._act_on(await decide(request, caller), command)

    async def _act_on(self, decision: Decision[Rep], command: str) -> Rep:
        shard = self._recorder.shard
        stored: list[Rep] = []

        def reply(frame: int) -> bytes:
            stored.append(decision.reply(Position(shard.name, frame)))
            return _encode(stored[-1])

        frame = await self._recorder.record(
            decision.changes, command=command, reply=reply if command else None
        )
        if decision.confirm_owner:
            await shard.look()
        if decision.effect is not None:
            decision.effect()
        return stored[-1] if stored else decision.reply(Position(shard.name, frame))

    def _forget(self, command: str, remember: float) -> None:
        task = self._under_way[command]
        if not task.cancelled():
            task.exception()  # its callers have it, if they are still there
        if remember:
            asyncio.get_running_loop().call_later(remember, self._under_way.pop, command)
        else:
            del self._under_way[command]

    @asynccontextmanager
    async def _owning(self) -> AsyncGenerator[None]:
        """A client of an owner that has just lost its shard asks the next one: a repeat does no harm."""
        try:
            yield
        except LogError as error:
            name = self._recorder.shard.name
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"this service does not own {name} any more: {error}"
            ) from error


def _room_for_all() -> None:
    """Whether there is room was asked for all commands at once."""


async def _decoded(endpoint: Endpoint[Any, Rep], answer: Awaitable[bytes]) -> Rep:
    """The first answer to a command that is repeated."""
    return endpoint.decode_reply(await answer)


def _outcome(found: Rep | BaseException) -> Rep | RefusedError:
    """What became of one of many; what is no refusal for good is raised."""
    if isinstance(found, BaseException) and (not isinstance(found, RefusedError) or retryable(found)):
        raise found
    return found
