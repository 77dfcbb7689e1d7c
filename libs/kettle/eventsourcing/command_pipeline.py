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
from functools import partial
from typing import Any, Final, Generic, Protocol, Self, TypeVar

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

Req_co = TypeVar("Req_co", bound=msgspec.Struct, covariant=True)

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


class DecisionOfMany(msgspec.Struct, Generic[Rep], frozen=True):
    """What commands come to that were decided as one."""

    replies: Callable[[Position], list[Rep]]
    """Their answers, in their order, as `Decision.reply` gives one."""
    changes: Recording


Decide = Callable[[Req, Identity], Awaitable[Decision[Rep]]]
"""Decides one command of one caller; raises RefusedError to refuse it."""


class AlikeCommands(Protocol[Req_co]):
    """Commands of one kind that have most in common."""

    @property
    def ids(self) -> list[str]:
        """The id of each."""
        ...

    def one(self, place: int) -> Req_co:
        """One of them, as it would be alone."""
        ...

    def some(self, places: Sequence[int]) -> Self:
        """Some of them, by their places."""
        ...


Group = TypeVar("Group", bound=AlikeCommands[Any])


class Alike(msgspec.Struct, Generic[Many, Group, Rep], frozen=True):
    """How commands are decided that are alike."""

    parts: Callable[[Many], Sequence[Group]]
    """What a command that carries many has of them."""
    decide: Callable[[Group, Identity], Awaitable[DecisionOfMany[Rep] | None]]
    """What they come to, decided as one; None: each is to be decided alone."""
    record: Callable[[Recording, Sequence[str], Callable[[int], Sequence[bytes]]], asyncio.Future[int]]
    """Fold, record and commit, as `Shard.record_together` does."""


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
        alike: Alike[Many, Any, Rep] | None = None,
    ) -> Served[Many, ManyRep]:
        """
        A command that carries many of `one`: each is decided as if it had come alone, and all are committed together. Those that are
        `alike` come after the others, and may be decided as one.

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
                if alike is not None:
                    for group in alike.parts(request):
                        waiting += self._answers(one, decide, alike, group, caller)
                found = await asyncio.gather(*waiting, return_exceptions=True)
                return answer([_outcome(each) for each in found])

        return Served(endpoint, all_of, self._administrators)

    def _answers(
        self,
        endpoint: Endpoint[Req, Rep],
        decide: Decide[Req, Rep],
        alike: Alike[Any, Any, Rep],
        group: AlikeCommands[Req],
        caller: Identity,
    ) -> list[asyncio.Future[Rep]]:
        """
        The answers that commands have got, or that are on their way; those that are new are decided as one.
        """
        commands = [f"{caller.token}:{endpoint.verb}:{each}" for each in group.ids]
        answers = [self._recorder.shard.answer(command) for command in commands]
        new: dict[str, int] = {}
        for place, command in enumerate(commands):
            if answers[place] is None and command not in self._under_way:
                new.setdefault(command, place)
        if new:
            some = group.some(list(new.values()))
            work = asyncio.create_task(self._carry_out_alike(decide, alike, some, caller, list(new)))
            for place, command in enumerate(new):
                part = self._under_way[command] = asyncio.create_task(_part_of(work, place))
                part.add_done_callback(partial(self._answered, command))
        return [
            asyncio.shield(self._under_way[command])
            if first is None
            else asyncio.ensure_future(_decoded(endpoint, first))
            for command, first in zip(commands, answers, strict=True)
        ]

    async def _carry_out_alike(
        self,
        decide: Decide[Req, Rep],
        alike: Alike[Any, Any, Rep],
        group: AlikeCommands[Req],
        caller: Identity,
        commands: list[str],
    ) -> Sequence[Rep | BaseException]:
        """Decide as one, or each alone; record, act."""
        async with self._around():
            decision = await alike.decide(group, caller) if len(commands) > 1 else None
            if decision is not None:
                return await self._record_many(decision, alike, commands)
        each = (
            self._carry_out(decide, group.one(place), caller, command)
            for place, command in enumerate(commands)
        )
        return await asyncio.gather(*each, return_exceptions=True)

    async def _record_many(
        self, decision: DecisionOfMany[Rep], alike: Alike[Any, Any, Rep], commands: Sequence[str]
    ) -> Sequence[Rep]:
        name, stored = self._recorder.shard.name, list[Rep]()

        def replies(frame: int) -> list[bytes]:
            stored.extend(decision.replies(Position(name, frame)))
            return [*map(_encode, stored)]

        await alike.record(decision.changes, commands, replies)
        return stored

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

    def _answered(self, command: str, _part: asyncio.Task[Any]) -> None:
        self._forget(command, 0.0)

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


async def _part_of(work: asyncio.Task[Sequence[Rep | BaseException]], place: int) -> Rep:
    """What became of one of commands that were carried out together."""
    found = (await asyncio.shield(work))[place]
    if isinstance(found, BaseException):
        raise found
    return found


async def _decoded(endpoint: Endpoint[Any, Rep], answer: Awaitable[bytes]) -> Rep:
    """The first answer to a command that is repeated."""
    return endpoint.decode_reply(await answer)


def _outcome(found: Rep | BaseException) -> Rep | RefusedError:
    """What became of one of many; what is no refusal for good is raised."""
    if isinstance(found, BaseException) and (not isinstance(found, RefusedError) or retryable(found)):
        raise found
    return found
