"""
Answers commands: one endpoint per verb of the NATS services API, one task per request.

The caller is who its subject says: the server lets nobody publish under another's name.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final, cast

import msgspec
import nats.errors
import nats.micro
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER, Request

from kettle.bus.connection import Connection
from kettle.bus.ports import RefusedError, Served
from kettle.wire.endpoint import Refusal
from kettle.wire.identity import Identity
from kettle.wire.subjects import Subjects

CONCURRENT: Final = 4096
"""Requests in hand at once; more are refused with code `busy`."""

Around = Callable[[str, Mapping[str, str]], AbstractContextManager[object]]
"""Entered around the handling of a request, with the endpoint's verb and the headers: a span, for example."""

_logger = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


class Service:
    """
    Everything that one connection answers.
    """

    def __init__(self, connection: Connection, subjects: Subjects, around: Around | None) -> None:
        self._connection = connection
        self._subjects = subjects
        self._around = around
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, role: str, name: str, served: Sequence[Served[Any, Any]], *, version: str) -> None:
        """
        Answer the endpoints of `role` that are meant for `name`, from when this returns.
        """
        add_service = cast("Callable[..., Any]", nats.micro.add_service)
        service = await add_service(
            self._connection.client,
            name=role,
            version=version,
            metadata={"name": name, "pool": self._subjects.pool},
        )
        for one in served:
            await service.add_endpoint(
                name=one.endpoint.verb,
                subject=self._subjects.command(role, name, one.endpoint.verb, "*"),
                handler=self._handler(one),
            )
        await self._connection.settle()

    async def close(self) -> None:
        """
        Give up what is in hand: its callers repeat their commands.
        """
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _handler(self, served: Served[Any, Any]) -> Callable[[Request], Any]:
        async def handle(request: Request) -> None:
            if len(self._tasks) >= CONCURRENT:
                await _refuse(request, "busy", "the service has too many requests in hand; try again later")
                return
            task = asyncio.create_task(self._answer(served, request), name=repr(served.endpoint))
            self._tasks.add(task)
            task.add_done_callback(self._done)

        return handle

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("%s failed", task.get_name(), exc_info=error)
            self._connection.fail(error)

    async def _answer(self, served: Served[Any, Any], request: Request) -> None:
        headers = request.headers or {}
        with self._around(served.endpoint.verb, headers) if self._around else nullcontext():
            try:
                caller = Identity.from_subject(request.subject)
                decoded = served.endpoint.decode_request(request.data)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                await _refuse(request, "malformed", f"{served.endpoint.role}.{served.endpoint.verb}: {error}")
                return
            try:
                reply = await served.handler(decoded, caller)
            except RefusedError as refusal:
                await _refuse(request, refusal.code, str(refusal))
                return
            data = _encode(reply)
            if len(data) > self._connection.client.max_payload:
                await _refuse(
                    request,
                    "too_large",
                    f"the answer has {len(data)} bytes, more than one message holds; ask for less",
                )
                return
            with suppress(nats.errors.Error):  # who asked will ask again
                await request.respond(data)


async def _refuse(request: Request, code: str, message: str) -> None:
    # The header is cut at line ends and read by any client of the services API; the body is exact.
    with suppress(nats.errors.Error):
        await request.respond_error(code, message, data=_encode(Refusal(code, message)))


def refusal_of(headers: Mapping[str, str] | None, data: bytes) -> RefusedError | None:
    """
    What a reply refuses, or None if it does not.
    """
    if not headers or ERROR_CODE_HEADER not in headers:
        return None
    try:
        refusal = msgspec.msgpack.decode(data, type=Refusal)
    except msgspec.MsgspecError:
        return RefusedError(headers[ERROR_CODE_HEADER], headers.get(ERROR_HEADER, ""))
    return RefusedError(refusal.code, refusal.message)
