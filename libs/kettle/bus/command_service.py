"""
Answers commands: one endpoint per verb of the NATS services API, one task per request.

The caller is who its subject says: the server lets nobody publish under another's name. Parts of large messages come to
a place of their own (see `kettle.bus.large_messages`), which is opened when there is a first one.
"""

import asyncio
import gc
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final, cast

import msgspec

from kettle.bus.callers import require_caller, require_own_queue
from kettle.bus.large_messages import CompleteRequest, PartLimits, PartStore, too_large
from kettle.bus.large_requests import PLACE, Parcel
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_driver import ERROR_CODE_HEADER, ERROR_HEADER, Msg, Request, errors, micro
from kettle.bus.ports import (
    Auditor,
    Authorize,
    BusError,
    BusUnavailableError,
    Further,
    Learn,
    RefusedError,
    Served,
    refusal_for,
)
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Caller, Endpoint, Refusal, Repeat
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects, untoken

CONCURRENT: Final = 4096
"""Requests in hand at once; more are refused with code `busy`."""
IN_HAND_BYTES: Final = 256 * 1024 * 1024
"""Bytes of them; the same."""

COLLECTED: Final = 256 * 1024
"""Bytes of a request from which on it is read without the collector."""

MOST_LIMITED: Final = 512
"""How many of them may be of endpoints that are declared `limited`."""

BUSY_MS: Final = 200
"""When to try again then."""
SENTENCE: Final = 1000
"""Characters of a refusal that stand in its header, too."""

_INBOXES: Final = ("_INBOX.", "_R_.")
"""Of those in our account, and what the server makes of those in others."""

Respond = Callable[[Parcel], Awaitable[None]]

Around = Callable[[str, Mapping[str, str]], AbstractContextManager[object]]
"""Entered around the handling of a request, with the endpoint's verb and the headers: a span, for example."""

Observe = Callable[[str, float, str], None]
"""Is told of each answer: the endpoint's verb, the seconds that it took, and the code if it was a refusal."""

_log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


class CommandService:
    """Everything that one connection answers."""

    def __init__(
        self,
        connection: NatsConnection,
        subjects: Subjects,
        around: Around | None,
        limits: PartLimits | None = None,
        *,
        sole: bool = False,
    ) -> None:
        """`sole`: nobody else answers under our name, and we may answer under no other."""
        self._connection = connection
        self._subjects = subjects
        self._around = around
        self._sole = sole
        self.authorize: Authorize | None = None
        """Decides which commands people may send; see `require_caller`."""
        self.learn: Learn | None = None
        """Brings what is known of a person up to date before he is refused."""
        self.auditor: Auditor | None = None
        """Is told of acts of administrators, and of denials."""
        self.observe: Observe | None = None
        self.further: Further | None = None
        """What is answered besides what is served."""
        self._depot = PartStore(lambda: connection.limit, limits)
        self._alone = secrets.token_hex(8)
        self._places: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_hand = 0
        self._limited = 0

    async def add(
        self, role: str, name: str, served: Sequence[Served[Any, Any]], *, version: str, shared: bool
    ) -> None:
        """
        Answer the endpoints of `role` that are meant for `name`, from when this returns; `shared`: see `Bus.serve`.
        """
        add_service = cast("Callable[..., Any]", micro.add_service)
        if self._sole:
            self._depot.place = name
        service = await add_service(
            self._connection.client,
            name=role,
            version=version,
            metadata={"name": name, "pool": self._subjects.pool},
            queue_group="shared" if shared else self._alone,  # the server gives each group a copy
        )
        for one in [*served, *(self.further(role, served) if self.further else ())]:
            await service.add_endpoint(
                name=one.endpoint.verb,
                subject=self._subjects.command(role, name, one.endpoint.verb, "*"),
                handler=self._handler(one),
            )
        await self._connection.settle()

    async def answer(self, subject: str, answer: Callable[[str, bytes], Awaitable[bytes]]) -> None:
        """See `NatsBus.answer`; what is more than can be in hand is dropped, and its sender asks again."""

        async def respond(message: Msg) -> None:
            data = await answer(message.subject, message.data)
            with suppress(errors.Error, BusError):
                await self._connection.publish(message.reply, data)

        def arrived(message: Msg) -> None:
            if not _is_question(message.reply) or len(self._tasks) >= CONCURRENT:
                return
            task = asyncio.create_task(respond(message), name=f"answer on {subject}")
            self._tasks.add(task)
            task.add_done_callback(partial(self._done, 0, False))

        await self._connection.subscribe(subject, arrived, queue="shared")
        await self._connection.settle()

    async def close(self) -> None:
        """Give up what is in hand: its callers repeat their commands."""
        self._depot.close()
        tasks = {*self._tasks, *self._places.values()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _handler(self, served: Served[Any, Any]) -> Callable[[Request], Any]:
        async def handle(request: Request) -> None:
            # nats-py shows it to nobody, and answers whatever it says
            if not _is_question(request._msg.reply):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
                return

            async def respond(parcel: Parcel) -> None:
                await request.respond(parcel.data, dict(parcel.headers) or None)

            parcel = Parcel(request.data, request.headers or {})
            await self.take(served.endpoint.role, request.subject, parcel, served, respond)

        return handle

    async def take(
        self, role: str, subject: str, parcel: Parcel, served: Served[Any, Any] | None, respond: Respond
    ) -> None:
        """
        Begin to answer a message that has come, or refuse it: one that a service is asked, or a part of one.
        """
        size = len(parcel.data)
        limited = served is not None and served.endpoint.limited
        if served is not None and size > served.endpoint.largest:
            await self._turn_away(too_large(served, size), served, respond)
            return
        if (
            len(self._tasks) >= CONCURRENT
            or self._in_hand + size > IN_HAND_BYTES
            or (limited and self._limited >= MOST_LIMITED)
        ):
            refusal = RefusedError(
                RefusalCode.BUSY,
                "the service has too many requests in hand; try again later",
                retry_after_ms=BUSY_MS,
            )
            await self._turn_away(refusal, served, respond)
            return
        name = repr(served.endpoint) if served is not None else f"part for {role}"
        task = asyncio.create_task(self._answer(role, subject, parcel, served, respond), name=name)
        self._tasks.add(task)
        self._in_hand += size
        self._limited += limited
        task.add_done_callback(partial(self._done, size, limited))

    async def _turn_away(
        self, refusal: RefusedError, served: Served[Any, Any] | None, respond: Respond
    ) -> None:
        if self.observe is not None and served is not None:
            self.observe(served.endpoint.verb, 0.0, refusal.code)
        await _send(respond, _refused(refusal))

    def _done(self, size: int, limited: bool, task: asyncio.Task[None]) -> None:  # noqa: FBT001 - a callback's
        self._tasks.discard(task)
        self._in_hand -= size
        self._limited -= limited
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)
            self._connection.fail(error)

    async def _answer(
        self, role: str, subject: str, parcel: Parcel, served: Served[Any, Any] | None, respond: Respond
    ) -> None:
        caller: Identity | None = None
        began, code = time.monotonic(), ""
        try:
            caller = _caller(subject)
            if served is not None:
                await self._admit(served, caller)
                require_own_queue(served.endpoint, _asked(subject), caller)
            received = self._depot.receive(caller.token, parcel, served)
            if isinstance(received, CompleteRequest):
                try:
                    data = await self._ask(received, parcel.headers, subject, caller)
                finally:
                    self._depot.answered(received)
                received = self._depot.reply(caller.token, data)
            if PLACE in received.headers:
                await self._open(role)
        except BusError as error:
            refusal = refusal_for(error)
            received, code = _refused(refusal), refusal.code
            if refusal is not error:
                _log.warning(
                    "not answered",
                    extra={"asked": repr(served.endpoint) if served else role, "cause": str(error)},
                )
            if caller and served and self.auditor and refusal.code == RefusalCode.DENIED:
                self.auditor.denied(served.endpoint, _asked(subject), caller, refusal)
        await _send(respond, received)
        if self.observe is not None and served is not None:
            self.observe(served.endpoint.verb, time.monotonic() - began, code)

    async def _admit(self, served: Served[Any, Any], caller: Identity) -> None:
        """
        Raise RefusedError for somebody whom the endpoint is not for, by the newest that is known of him.
        """
        if self.learn is None or caller.kind != "user":
            require_caller(served, caller, self.authorize)
            return
        await self.learn(caller.name, refused=False)
        try:
            require_caller(served, caller, self.authorize)
        except RefusedError:
            await self.learn(caller.name, refused=True)
            require_caller(served, caller, self.authorize)

    async def _ask(
        self, whole: CompleteRequest, headers: Mapping[str, str], subject: str, caller: Identity
    ) -> bytes:
        endpoint = whole.served.endpoint
        with self._around(endpoint.verb, headers) if self._around else nullcontext():
            try:
                with _uncollected(len(whole.data)):
                    request = endpoint.decode_request(whole.data)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise RefusedError(
                    RefusalCode.MALFORMED, f"{endpoint.role}.{endpoint.verb}: {error}"
                ) from error
            answer = _encode(await whole.served.handler(request, caller))
            if self.auditor is not None and is_deed(endpoint, caller):
                self.auditor.acted(endpoint, _asked(subject), caller, request)
            return answer

    async def _open(self, role: str) -> None:
        """
        Let parts come in, from when this returns; where the name is one connection's alone they come with its
        commands.
        """
        if self._sole:
            return
        if role not in self._places:
            self._places[role] = asyncio.create_task(self._subscribe(role), name=f"parts for {role}")
        try:
            await asyncio.shield(self._places[role])
        except BusUnavailableError as error:
            raise RefusedError(RefusalCode.UNAVAILABLE, f"the bus went away: {error}") from error

    async def _subscribe(self, role: str) -> None:
        async def arrived(message: Msg) -> None:
            if not _is_question(message.reply):
                return

            async def respond(parcel: Parcel) -> None:
                await self._connection.publish(message.reply, parcel.data, headers=parcel.headers)

            parcel = Parcel(message.data, message.headers or {})
            await self.take(role, message.subject, parcel, None, respond)

        subject = self._subjects.command(role, self._depot.place, "*", "*")
        await self._connection.client.subscribe(subject, cb=arrived)  # pyright: ignore[reportUnknownMemberType]
        await self._connection.settle()


def is_deed(endpoint: Endpoint[Any, Any], caller: Identity) -> bool:
    """Whether a command is one by which an administrator changes something."""
    return (
        caller.kind == "user"
        and Caller.ADMINISTRATOR in endpoint.callers
        and endpoint.repeat is not Repeat.QUERY
    )


def _asked(subject: str) -> str:
    """The name of the service that a command is for."""
    return untoken(subject.split(".")[-3])


def _is_question(reply: str) -> bool:
    """
    Whether who sent a message waits for the answer at a place for answers.

    What a service or JetStream answers to somebody who named our subject as his inbox is no command: it
    has no such place.
    """
    return reply.startswith(_INBOXES)


@contextmanager
def _uncollected(size: int) -> Generator[None]:
    """
    While very much is read that is all kept, the collector would look at it again and again and find nothing.
    """
    if size < COLLECTED or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _caller(subject: str) -> Identity:
    try:
        return Identity.from_subject(subject)
    except ValueError as error:
        raise RefusedError(RefusalCode.MALFORMED, f"{subject}: {error}") from error


def _refused(refusal: RefusedError) -> Parcel:
    # The header is cut at line ends and read by any client of the services API; the body is exact.
    body = _encode(Refusal(refusal.code, str(refusal), refusal.retry_after_ms))
    return Parcel(body, {ERROR_HEADER: str(refusal)[:SENTENCE], ERROR_CODE_HEADER: refusal.code})


async def _send(respond: Respond, parcel: Parcel) -> None:
    with suppress(errors.Error, BusError):  # who asked will ask again
        await respond(parcel)


def refusal_of(headers: Mapping[str, str] | None, data: bytes) -> RefusedError | None:
    """What a reply refuses, or None if it does not."""
    if not headers or ERROR_CODE_HEADER not in headers:
        return None
    try:
        refusal = msgspec.msgpack.decode(data, type=Refusal)
    except msgspec.MsgspecError:
        return RefusedError(headers[ERROR_CODE_HEADER], headers.get(ERROR_HEADER, ""))
    return RefusedError(refusal.code, refusal.message, retry_after_ms=refusal.retry_after)
