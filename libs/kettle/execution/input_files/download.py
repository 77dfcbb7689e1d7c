"""
Getting an input file: from the pool's object store if it is there, else from the shadow, piece by piece; a piece that
does not come is asked for again, so a transfer that broke goes on where it was.
"""

import asyncio
import hashlib
import logging
import os
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.bus.retryable import unless_refused
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import retry
from kettle.threads.to_the_end import to_the_end
from kettle.transfer import sealed_pieces
from kettle_wire.codes import NOT_NOW, RefusalCode
from kettle_wire.commands.shadow import FETCH_INPUT, OFFER_INPUT, FetchInput, OfferInput
from kettle_wire.commands.startd import Activation, InputFile
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)

PIECE_BYTES: Final = 512 * 1024
WINDOW: Final = 8
"""Pieces that are asked for at once."""
_LARGE: Final = 1 << 20
"""Smaller files are not looked for in the object store."""
_PIECE_DEADLINE_S: Final = 10.0
BACKOFF: Final = Backoff(first=0.2, longest=5.0)
"""Before a shadow that was silent, or let others go first, is asked again for a file."""


class InputError(Exception):
    """An input file cannot be had; `errno` says why as far as that is known."""

    def __init__(self, name: str, why: str, errno: int = 0) -> None:
        super().__init__(f"Transfer input files failure at the execution point: {name}: {why}")
        self.errno = errno


class NotYetError(InputError):
    """The shadow lets others go first, or is putting the file into the store; nothing of it was read."""


class _Part(msgspec.Struct, frozen=True):
    """A piece of a file; `number` in the store, if it is there."""

    number: int | None
    offset: int
    length: int


class Fetcher:
    """Reads input files of jobs from wherever they are, and counts what came."""

    def __init__(self, bus: Bus, subjects: Subjects, *, patience: float) -> None:
        """`patience` in seconds: how long a shadow may not know a file that it announced."""
        self._bus = bus
        self._subjects = subjects
        self._patience = patience
        self.bytes = 0
        """That came, from anywhere."""
        self.stored_bytes = 0
        """Of these, from the object store."""

    async def fetch(self, activation: Activation, file: InputFile, fd: int) -> None:
        """
        Write a file to `fd` in order, a few pieces ahead.  If the store has something else under its name, all of it is
        read from the shadow.

        Raises:
            InputError, ExceptionGroup of them: it cannot be had, or is not what was announced.
            OSError: it cannot be written.
        """
        stored = await self._offered(activation, file) if file.size >= _LARGE else 0
        if await self._copied(activation, file, fd, stored):
            return
        if stored:
            _log.warning("the object store has something else as %s", file.sha256)
            os.lseek(fd, 0, os.SEEK_SET)
            if await self._copied(activation, file, fd, 0):
                return
        raise InputError(file.name, "it changed since the job was sent to this machine")

    async def _copied(self, activation: Activation, file: InputFile, fd: int, stored: int) -> bool:
        """
        Whether what was written is the file; `stored`: the size of its pieces in the store, 0: it is not there.
        """
        piece, digest = stored or PIECE_BYTES, hashlib.sha256()
        window: deque[asyncio.Task[bytes]] = deque()
        async with asyncio.TaskGroup() as group:
            for number, offset in enumerate(range(0, file.size, piece)):
                part = _Part(number if stored else None, offset, min(piece, file.size - offset))
                window.append(group.create_task(self._piece(activation, file, part)))
                if len(window) == WINDOW:
                    await to_the_end(_store, fd, await window.popleft(), digest.update)
            for task in window:
                await to_the_end(_store, fd, await task, digest.update)
        return digest.hexdigest() == file.sha256

    async def _offered(self, activation: Activation, file: InputFile) -> int:
        """
        The size of the pieces in the store; 0: it is not there, or the shadow is of a version that knows of no store.
        """
        question = OfferInput(
            key=activation.key, job=activation.job, attempt=activation.attempt, name=file.name
        )
        try:
            offered = await self._bus.call(
                OFFER_INPUT, activation.shadow, question, deadline=_PIECE_DEADLINE_S
            )
        except RefusedError as refusal:
            if refusal.code in NOT_NOW:
                raise NotYetError(file.name, str(refusal)) from refusal
            return 0
        except BusError:
            return 0
        return max(0, offered.piece)

    async def _piece(self, activation: Activation, file: InputFile, part: "_Part") -> bytes:
        data = None
        if part.number is not None:
            data = await self._from_store(file.sha256, part.number, part)
        if data is None:
            data = await self._from_shadow(activation, file, part)
        self.bytes += len(data)
        return data

    async def _from_store(self, digest: str, number: int, part: "_Part") -> bytes | None:
        """A piece; None if it has left the store, or the store is away."""
        subject = self._subjects.object_piece(sealed_pieces.name(digest), number)
        try:
            box = await self._bus.newest(self._subjects.object_stream, subject, deadline=_PIECE_DEADLINE_S)
        except BusError as error:
            _log.info("object store not reached", extra={"cause": str(error)})
            return None
        data = sealed_pieces.opened(digest, part.offset, box) if box is not None else None
        if data is None or len(data) != part.length:
            return None
        self.stored_bytes += part.length
        return data

    async def _from_shadow(self, activation: Activation, file: InputFile, part: "_Part") -> bytes:
        request = FetchInput(
            key=activation.key,
            job=activation.job,
            attempt=activation.attempt,
            name=file.name,
            offset=part.offset,
            length=part.length,
        )
        known = Deadline(self._patience)

        def passes(error: Exception) -> bool:
            # A shadow that was restarted learns of its jobs again; nothing else makes an unknown file known.
            if isinstance(error, RefusedError) and error.code == RefusalCode.NOT_FOUND:
                return not known.passed
            # One that has too much in hand, or lets others go first, gives no answer: it is asked until it does.
            return unless_refused(error) and (bool(part.offset) or not isinstance(error, RefusedError))

        def failed(error: Exception, pause: float) -> None:
            _log.info("input waits", extra={"file": file.name, "cause": str(error), "pause_s": pause})

        try:
            piece = await retry(
                lambda: self._bus.call(FETCH_INPUT, activation.shadow, request, deadline=_PIECE_DEADLINE_S),
                BACKOFF,
                retryable=passes,
                failed=failed,
            )
        except RefusedError as refusal:
            why = NotYetError if refusal.code in NOT_NOW else InputError
            raise why(file.name, str(refusal)) from refusal
        if len(piece.data) != part.length:
            raise InputError(file.name, "it became shorter since the job was sent to this machine")
        return piece.data


def _store(fd: int, data: bytes, update: Callable[[bytes], None]) -> None:
    """Write and hash; in a thread, because a piece takes longer than the event loop may be held."""
    update(data)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
