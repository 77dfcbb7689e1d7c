"""
Input files: fetched from the shadow by their hash, checked, and kept for the next job that wants the same.
"""

import asyncio
import hashlib
import logging
import os
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.execution.attempt import Input
from kettle.wire.commands.shadow import FETCH_INPUT, FetchInput
from kettle.wire.commands.startd import Activation, InputFile

_log: Final = logging.getLogger(__name__)

TRANSFER_INPUT_ERROR: Final = 13
PIECE_BYTES: Final = 512 * 1024
WINDOW: Final = 4
"""Pieces that are asked for at once."""
_NOT_NOW: Final = frozenset({"busy", "unavailable"})
_PIECE_DEADLINE_S: Final = 10.0
_RETRY_S: Final = 0.2
_LAST_RETRY_S: Final = 5.0


class InputError(Exception):
    """
    An input file cannot be had; `errno` says why as far as that is known.
    """

    def __init__(self, name: str, why: str, errno: int = 0) -> None:
        super().__init__(f"Transfer input files failure at the execution point: {name}: {why}")
        self.errno = errno


class NotYetError(InputError):
    """
    The shadow lets others go first; nothing of the file was read.
    """


class InputCache:
    """
    Files by their SHA-256, the least recently used ones removed; what a starter is about to copy stays.
    """

    def __init__(self, directory: Path, bus: Bus, *, limit_bytes: int, patience: float) -> None:
        """
        `patience` in seconds: how long a shadow may not know a file that it announced.
        """
        self._directory = directory
        self._bus = bus
        self._limit = limit_bytes
        self._patience = patience
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._pins: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}

    def restore(self) -> None:
        """
        Take up what a former startd left; unfinished files go.
        """
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for path in sorted(self._directory.iterdir(), key=lambda path: path.stat().st_mtime):
            if path.suffix:
                path.unlink()
            else:
                self._sizes[path.name] = path.stat().st_size
        self._shrink()

    @asynccontextmanager
    async def gathered(self, activation: Activation) -> AsyncGenerator[list[Input]]:
        """
        All input files of a job; while the context lasts, none of them leaves the cache.

        Raises:
            InputError: one of them cannot be had.
        """
        wanted = [file for file in activation.inputs if file.data is None]
        for file in wanted:
            self._pins[file.sha256] += 1
        try:
            await self._have_all(activation, wanted)
            yield [self.input(file) for file in activation.inputs]
        finally:
            for file in wanted:
                self._pins[file.sha256] -= 1
            self._shrink()

    async def _have_all(self, activation: Activation, wanted: list[InputFile]) -> None:
        try:
            async with asyncio.TaskGroup() as fetching:
                for file in wanted:
                    fetching.create_task(self._have(activation, file))
        except ExceptionGroup as group:
            raise _first(group) from None

    def input(self, file: InputFile) -> Input:
        """
        A file as a starter is told of it.
        """
        path = "" if file.data is not None else str(self._directory / file.sha256)
        return Input(
            name=file.name, mode=file.mode, data=file.data, path=path, sha256=file.sha256, saved=file.saved
        )

    async def _have(self, activation: Activation, file: InputFile) -> None:
        digest = file.sha256
        if len(digest) != 64 or not digest.isalnum():
            raise InputError(file.name, f"{digest!r} is no SHA-256")
        pause = _RETRY_S
        while not await self._had(activation, file):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_RETRY_S)

    async def _had(self, activation: Activation, file: InputFile) -> bool:
        """
        Whether the file is there now; if not, another job that wants it may try, whose turn it may be.
        """
        digest = file.sha256
        async with self._locks.setdefault(digest, asyncio.Lock()):  # a second job waits for the first
            if digest not in self._sizes:
                try:
                    await self._fetch(activation, file)
                except NotYetError:
                    return False
                self._sizes[digest] = file.size
            self._sizes.move_to_end(digest)
        self._locks.pop(digest, None)
        return True

    async def _fetch(self, activation: Activation, file: InputFile) -> None:
        draft = self._directory / f"{file.sha256}.{activation.job}-{activation.attempt}"
        try:
            with draft.open("wb") as sink:
                digest = await self._copy(activation, file, sink.fileno())
            if digest != file.sha256:
                raise InputError(file.name, "it changed since the job was sent to this machine")
            draft.rename(self._directory / file.sha256)
        except OSError as error:
            raise InputError(file.name, error.strerror or "", error.errno or 0) from error
        except ExceptionGroup as group:
            raise _first(group) from None
        finally:
            draft.unlink(missing_ok=True)

    async def _copy(self, activation: Activation, file: InputFile, fd: int) -> str:
        """
        Write the file to `fd` in order, a few pieces ahead; returns its hash.
        """
        digest = hashlib.sha256()
        window: deque[asyncio.Task[bytes]] = deque()
        async with asyncio.TaskGroup() as group:
            for offset in range(0, file.size, PIECE_BYTES):
                window.append(group.create_task(self._piece(activation, file, offset)))
                if len(window) == WINDOW:
                    await asyncio.to_thread(_store, fd, await window.popleft(), digest.update)
            for task in window:
                await asyncio.to_thread(_store, fd, await task, digest.update)
        return digest.hexdigest()

    async def _piece(self, activation: Activation, file: InputFile, offset: int) -> bytes:
        request = FetchInput(
            key=activation.key,
            job=activation.job,
            attempt=activation.attempt,
            name=file.name,
            offset=offset,
            length=min(PIECE_BYTES, file.size - offset),
        )
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._patience, _RETRY_S
        while True:
            try:
                piece = await self._bus.call(
                    FETCH_INPUT, activation.shadow, request, deadline=_PIECE_DEADLINE_S
                )
            except RefusedError as refusal:
                # A shadow that was restarted learns of its jobs again; nothing else makes an unknown file known.
                # One that has too much in hand, or lets others go first, gives no answer: it is asked until it does.
                unknown = refusal.code == "not_found" and loop.time() <= until
                if refusal.code in _NOT_NOW and not offset:
                    raise NotYetError(file.name, str(refusal)) from refusal
                if not unknown and refusal.code not in _NOT_NOW:
                    raise InputError(file.name, str(refusal)) from refusal
            except BusError as error:
                _log.info("input waits", extra={"file": file.name, "cause": str(error)})
            else:
                if len(piece.data) != request.length:
                    raise InputError(file.name, "it became shorter since the job was sent to this machine")
                return piece.data
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_RETRY_S)

    def _shrink(self) -> None:
        excess = sum(self._sizes.values()) - self._limit
        for digest in [digest for digest in self._sizes if not self._pins[digest]]:
            if excess <= 0:
                break
            (self._directory / digest).unlink(missing_ok=True)
            excess -= self._sizes.pop(digest)


def _first(group: ExceptionGroup[Exception]) -> InputError:
    """
    One of the failures that happened side by side: one sentence is enough for the person who reads it.
    """
    found, other = group.split(InputError)
    if other is not None or found is None:
        raise group
    leaf: InputError | ExceptionGroup[InputError] = found
    while isinstance(leaf, ExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf


def _store(fd: int, data: bytes, update: Callable[[bytes], None]) -> None:
    """
    Write and hash; in a thread, because a piece takes longer than the event loop may be held.
    """
    update(data)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
