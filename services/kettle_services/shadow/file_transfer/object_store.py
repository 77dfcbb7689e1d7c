"""
Input files in the pool's object store: a file that several machines want is read and sent once, for any number of
machines.

The store is only a shortcut.  Machines read what is not in it from the shadow; they trust neither, but compare the
file's SHA-256.  What is in it only those can read who know that.
"""

import asyncio
import hashlib
import logging
import os
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError, StreamSpec
from kettle.threads.to_the_end import to_the_end
from kettle.transfer import sealed_pieces
from kettle_services.shadow.file_transfer.input_files import Source
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)

PIECE: Final = 512 * 1024
WINDOW: Final = 8
"""Pieces that are on their way at once: more of a file is never in memory."""
_HEADERS: Final = 4096
"""Bytes that a message needs beside a piece."""
_PATIENCE_S: Final = 4.0
"""How long a request waits for a file that is being sent; then the caller has to ask again."""
_AGAIN_S: Final = 60.0
"""How long a store that had no room, or was away, is left alone."""
_PIECE_DEADLINE_S: Final = 10.0
_KNOWN: Final = 10_000
"""Files that are remembered."""


class _ChangedError(Exception):
    """The file is not what it was when the job was sent to a machine."""


class _Known(msgspec.Struct):
    """A file by its SHA-256."""

    machines: set[str]
    """Who has asked for it; once there are two, no more are counted."""
    until: float = 0.0
    """It is in the store, or the store is left alone, until then; on the loop's clock."""
    piece: int = 0
    sending: asyncio.Task[int] | None = None


class Objects:
    """
    What this shadow has put into the store.  Everything in it expires `object_lifetime` seconds after it was put there,
    so that no process has to remove it.
    """

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        settings: ShadowSettings,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._settings = settings
        self._tasks = tasks
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self.sent_bytes = 0
        """Into the store."""

    async def offer(self, source: Source, machine: str) -> int | None:
        """
        How large the pieces are in which a file is in the store; 0: it is not.  None: it is on its way, ask again.
        """
        digest, size = source.file.sha256, source.file.size
        if self._settings.object_store == "never" or size < self._settings.object_bytes:
            return 0
        known = self._known.setdefault(digest, _Known(set()))
        self._known.move_to_end(digest)
        if len(known.machines) < _wanted(self._settings):
            known.machines.add(machine)
        if len(known.machines) < _wanted(self._settings):
            return 0
        now = asyncio.get_running_loop().time()
        if known.sending is None and now < known.until:
            return known.piece
        if known.sending is None:
            known.sending = self._tasks.create_task(self._put(known, source), name=f"object {digest}")
        sending = known.sending
        await asyncio.wait([sending], timeout=_PATIENCE_S)
        self._forget()
        return sending.result() if sending.done() else None

    def close(self) -> None:
        """Send nothing more; a file of which pieces are missing is read from the shadow."""
        for known in self._known.values():
            if known.sending is not None:
                known.sending.cancel()

    async def _put(self, known: _Known, source: Source) -> int:
        """Send a file, unless something is in the way, which is everybody's reason to read it from us."""
        loop = asyncio.get_running_loop()
        known.piece, lives = 0, _AGAIN_S
        piece = min(PIECE, self._bus.payload_limit - _HEADERS)
        began = loop.time()
        try:
            await self._have_stream()
            await self._send(source, piece)
            # A reader that begins to read a file must be able to finish.
            known.piece, lives = piece, self._settings.object_lifetime / 2 - (loop.time() - began)
        except (BusError, OSError, ValueError, _ChangedError) as error:
            _log.info("not put into the object store: %s", source.path, extra={"cause": str(error)})
        finally:
            known.until, known.sending = loop.time() + lives, None
        return known.piece

    async def _have_stream(self) -> None:
        await self._bus.ensure_stream(
            StreamSpec(
                name=self._subjects.object_stream,
                subjects=[self._subjects.objects_all],
                # Not as bytes: the server would set those aside, and lack them for streams that matter more.
                max_messages=(self._settings.object_store_mib << 20) // PIECE,
                remake=False,
                objects=True,
            )
        )

    async def _send(self, source: Source, piece: int) -> None:
        """The last piece comes when all others are there and the sum is right."""
        digest = source.file.sha256
        fd = await asyncio.to_thread(source.open)
        try:
            total, number = hashlib.sha256(), 0
            on_their_way: deque[asyncio.Task[int]] = deque()
            async with asyncio.TaskGroup() as sending:
                data = await to_the_end(_read, fd, piece, total.update)
                while following := await to_the_end(_read, fd, piece, total.update):
                    if len(on_their_way) == WINDOW:
                        await on_their_way.popleft()
                    on_their_way.append(sending.create_task(self._piece(digest, piece, number, data)))
                    data, number = following, number + 1
            if total.hexdigest() != digest:
                raise _ChangedError("it changed since the job was sent to a machine")
            await self._piece(digest, piece, number, data)
        except ExceptionGroup as group:
            raise BusError(str(group.exceptions[0])) from group
        finally:
            os.close(fd)

    async def _piece(self, digest: str, piece: int, number: int, data: bytes) -> int:
        subject = self._subjects.object_piece(sealed_pieces.name(digest), number)
        ttl, box = self._settings.object_lifetime, sealed_pieces.sealed(digest, number * piece, data)
        stored = await self._bus.append(subject, box, ttl=ttl, deadline=_PIECE_DEADLINE_S)
        self.sent_bytes += len(data)
        return stored

    def _forget(self) -> None:
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)


def _wanted(settings: ShadowSettings) -> int:
    """How many machines have to want a file: for one alone, the store would be a longer way."""
    return 1 if settings.object_store == "always" else 2


def _read(fd: int, length: int, count: Callable[[bytes], None]) -> bytes:
    """The next piece, whole unless the file ends; counted, and in a thread, because that takes its time."""
    data = os.read(fd, length)
    while data and len(data) < length and (more := os.read(fd, length - len(data))):
        data += more
    count(data)
    return data
