"""
The conversation with one startd, in which activations and confirmations share messages.

While one message is under way the next collects; so a busy machine costs few messages, and an idle one no wait.
"""

import asyncio
import logging
from functools import partial
from typing import Final

import msgspec

from kettle.bus.ports import Asks, BusError, RefusedError
from kettle_services.shadow.connections.retry import Peer
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.startd import (
    ACTIVATE,
    CONFIRM,
    Activate,
    Activated,
    Activation,
    ActivationResult,
    Confirm,
)
from kettle_wire.worker_reports import ReportKey

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode
_BATCH: Final = 64
_CONFIRMATIONS: Final = 500
_ROOM: Final = 256 * 1024
"""Bytes of a message that are left to the confirmations that travel along."""


class OversizeError(Exception):
    """An activation that no message holds; it was not sent."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the job's ad and the list of its input files have {size} bytes, and a message to a machine holds {limit}"
        )


class Waiting(msgspec.Struct, frozen=True, eq=False):
    """An activation that is to be sent, and who waits for its result."""

    activation: Activation
    size: int
    result: asyncio.Future[ActivationResult]


class StartdMessages:
    """The conversation with one startd; `users` are the attempts that may have to say something in it."""

    def __init__(self, bus: Asks, startd: str, settings: ShadowSettings) -> None:
        self._bus = bus
        self._startd = startd
        self._settings = settings
        self.peer: Final = Peer(settings)
        self.users = 0
        self._activations: list[Waiting] = []
        self._recorded: list[ReportKey] = []
        self._urgent = asyncio.Event()
        self._filled = asyncio.Event()

    async def activate(self, activation: Activation) -> ActivationResult:
        """
        Have an attempt started; waits as long as it takes the startd to answer.

        Raises OversizeError if it cannot be sent, and RefusedError if the startd does not carry it out, which is no
        proof that it did not do so when it was asked before.
        """
        size, limit = len(_encode(activation)), self._limit
        if size > limit:
            raise OversizeError(size, limit)
        result: asyncio.Future[ActivationResult] = asyncio.get_running_loop().create_future()
        self._activations.append(Waiting(activation, size, result))
        self._filled.set()
        self._urgent.set()
        return await result

    def confirm(self, report: ReportKey) -> None:
        """Let the worker forget a report, with the next message to it."""
        self._recorded.append(report)
        self._filled.set()

    def leave(self) -> None:
        """One attempt less."""
        self.users -= 1
        self._filled.set()

    @property
    def _limit(self) -> int:
        limit = self._bus.payload_limit
        return limit - min(_ROOM, limit // 2)

    @property
    def _idle(self) -> bool:
        return not (self.users or self._activations or self._recorded)

    async def run(self) -> None:
        """Send collected messages; returns when there can be no more."""
        while not self._idle:
            await self._filled.wait()
            if not self._urgent.is_set():
                await self._linger()
            batch = self._cut()
            recorded = self._recorded[:_CONFIRMATIONS]
            del self._recorded[:_CONFIRMATIONS]
            if not self._activations:
                self._urgent.clear()
                if not self._recorded:
                    self._filled.clear()
            await self._send(batch, recorded)

    def _cut(self) -> list[Waiting]:
        """What goes into the next message: as many as it holds, and at least one."""
        waiting = [each for each in self._activations if not each.result.done()]
        size = count = 0
        for each in waiting[:_BATCH]:
            size += each.size
            if count and size > self._limit:
                break
            count += 1
        self._activations = waiting[count:]
        return waiting[:count]

    async def _linger(self) -> None:
        try:
            async with asyncio.timeout(self._settings.confirm_delay):
                await self._urgent.wait()
        except TimeoutError:
            pass  # no activation came along: the confirmations go alone

    async def _send(self, batch: list[Waiting], recorded: list[ReportKey]) -> None:
        if not batch:
            if recorded:
                await self._confirm(recorded)
            return
        message = Activate(activations=[each.activation for each in batch], recorded=recorded)
        try:
            reply = await self._ask(message, batch)
        except RefusedError as refusal:
            await self._refused(batch, recorded, refusal)
            return
        if reply is None:
            self._say_again(recorded)
            return
        for each, result in zip(batch, reply.results, strict=True):
            if not each.result.done():
                each.result.set_result(result)

    async def _ask(self, message: Activate, batch: list[Waiting]) -> Activated | None:
        """The answer; None if it is no longer needed."""
        ask = partial(self._bus.call, ACTIVATE, self._startd, message, deadline=self._settings.call_deadline)
        asking = asyncio.ensure_future(self.peer.ask(f"activation on {self._startd}", ask))
        deserted = asyncio.ensure_future(asyncio.wait([each.result for each in batch]))
        try:
            await asyncio.wait({asking, deserted}, return_when=asyncio.FIRST_COMPLETED)
            reply = asking.result() if asking.done() else None
        finally:
            asking.cancel()
            deserted.cancel()
        if reply is not None and len(reply.results) != len(batch):
            raise RefusedError(
                RefusalCode.MALFORMED,
                f"{self._startd} answered {len(reply.results)} activations where {len(batch)} were asked for",
            )
        return reply

    async def _refused(self, batch: list[Waiting], recorded: list[ReportKey], refusal: RefusedError) -> None:
        """One of them may have made the others fail: each is sent alone."""
        self._say_again(recorded)
        if len(batch) > 1:
            for each in batch:
                if not each.result.done():
                    await self._send([each], [])
        elif not batch[0].result.done():
            batch[0].result.set_exception(refusal)

    def _say_again(self, recorded: list[ReportKey]) -> None:
        self._recorded = recorded + self._recorded
        self._filled.set()

    async def _confirm(self, recorded: list[ReportKey]) -> None:
        try:
            deadline = self._settings.call_deadline
            await self._bus.call(CONFIRM, self._startd, Confirm(recorded=recorded), deadline=deadline)
        except BusError as error:  # the worker will repeat its reports, and is notified again then
            _log.info("not confirmed", extra={"startd": self._startd, "cause": str(error)})
