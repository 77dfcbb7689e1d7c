"""
Input files: fetched once, known by their SHA-256, and kept for the next job that wants the same.

A job gets a copy of its own, which shares the disk's blocks where the file system can do that: what it does to its copy
reaches nobody else's.  What lies here is counted again before it is used if anybody may have touched it.
"""

import asyncio
import hashlib
import os
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import Input
from kettle.execution.input_files.download import BACKOFF, Fetcher, InputError, NotYetError
from kettle.retry.loop import Waits
from kettle_wire.ads import Ad
from kettle_wire.commands.startd import Activation, InputFile

_PIECE: Final = 1 << 20

Mark = tuple[int, int, int, int]
"""What changes when anybody touches a file: the time of its last change cannot be set back."""


class _Kept(msgspec.Struct, frozen=True):
    """A file in the cache; `mark`: as it was when it was counted last, None: a former startd did that."""

    size: int
    mark: Mark | None = None


class InputCache:
    """Files by their SHA-256, the least recently used ones removed; what a starter is about to copy stays."""

    def __init__(self, directory: Path, fetcher: Fetcher, *, limit_bytes: int) -> None:
        self._directory = directory
        self._fetcher = fetcher
        self._limit = limit_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._pins: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}
        self._awaited: dict[int, list[asyncio.Event]] = {}
        """By size, files that are about to come from elsewhere, each with what is set when it is here."""
        self._fetched = 0
        self._hits = 0

    def restore(self) -> None:
        """Take up what a former startd left; unfinished files go."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for path in sorted(self._directory.iterdir(), key=lambda path: path.stat().st_mtime):
            if path.suffix:
                path.unlink()
            else:
                self._kept[path.name] = _Kept(path.stat().st_size)
        self._shrink()

    def ad(self) -> Ad:
        """What came and what was spared, since the startd started."""
        return {
            "InputCacheBytes": sum(kept.size for kept in self._kept.values()),
            "InputCacheFiles": len(self._kept),
            "InputCacheHits": self._hits,
            "InputFilesFetched": self._fetched,
            "InputBytesFetched": self._fetcher.bytes,
            "InputBytesFromStore": self._fetcher.stored_bytes,
        }

    def __contains__(self, digest: str) -> bool:
        return digest in self._kept

    def place(self, digest: str) -> Path:
        """Where a file is, or is to be."""
        return self._directory / digest

    def draft(self, number: int) -> Path:
        """Where a file is as long as its contents are not known."""
        return self._directory / f"{number}.kept"

    @contextmanager
    def awaited(self, size: int) -> Generator[None]:
        """While a file of this size comes from elsewhere: jobs that want one of this size wait for it."""
        here = asyncio.Event()
        self._awaited.setdefault(size, []).append(here)
        try:
            yield
        finally:
            here.set()
            self._awaited[size].remove(here)
            if not self._awaited[size]:
                del self._awaited[size]

    def add(self, digest: str, size: int) -> None:
        """A file has come into its place from elsewhere."""
        with suppress(OSError):
            self._kept[digest] = _Kept(size, _mark(self.place(digest).stat()))
            self._kept.move_to_end(digest)
            self._shrink()

    def remove(self, digest: str) -> None:
        """A file is not kept any longer; one that is about to be copied leaves with others later."""
        if digest in self._kept and not self._pins[digest]:
            del self._kept[digest]
            self.place(digest).unlink(missing_ok=True)

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
            self._pins.subtract(file.sha256 for file in wanted)
            self._pins = +self._pins
            self._shrink()

    async def _have_all(self, activation: Activation, wanted: list[InputFile]) -> None:
        try:
            async with asyncio.TaskGroup() as fetching:
                for file in wanted:
                    fetching.create_task(self._have(activation, file))
        except ExceptionGroup as group:
            raise _first(group) from None

    def input(self, file: InputFile) -> Input:
        """A file as described to a starter."""
        path = "" if file.data is not None else str(self._directory / file.sha256)
        return Input(
            name=file.name,
            mode=file.mode,
            data=file.data,
            path=path,
            sha256=file.sha256,
            saved=file.saved,
            directory=file.directory,
        )

    async def _have(self, activation: Activation, file: InputFile) -> None:
        digest = file.sha256
        if len(digest) != 64 or not digest.isalnum():
            raise InputError(file.name, f"{digest!r} is no SHA-256")
        for other in list(self._awaited.get(file.size, ())):
            await other.wait()
        waits = Waits(BACKOFF)
        while not await self._had(activation, file):
            await waits.wait()

    async def _had(self, activation: Activation, file: InputFile) -> bool:
        """Whether the file is there now; if not, another job that wants it may try, whose turn it may be."""
        digest = file.sha256
        async with self._locks.setdefault(digest, asyncio.Lock()):  # a second job waits for the first
            if await self._is_good(digest):
                self._hits += 1
            else:
                try:
                    await self._fetch(activation, file)
                except NotYetError:
                    return False
                self._fetched += 1
            self._kept.move_to_end(digest)
        self._locks.pop(digest, None)
        return True

    async def _is_good(self, digest: str) -> bool:
        """Whether a file is here and is what its name says; one that is not any more goes."""
        kept, path = self._kept.get(digest), self._directory / digest
        if kept is None:
            return False
        try:
            mark = _mark(os.stat(path))  # noqa: PTH116 - for each job
            if mark == kept.mark:
                return True
            if await asyncio.to_thread(_sum, path) == digest:
                self._kept[digest] = _Kept(mark[1], mark)
                return True
        except OSError:
            pass  # it is not there, or cannot be read: it is fetched again
        path.unlink(missing_ok=True)
        self._kept.pop(digest, None)
        return False

    async def _fetch(self, activation: Activation, file: InputFile) -> None:
        draft = self._directory / f"{file.sha256}.{activation.job}-{activation.attempt}"
        try:
            with draft.open("wb") as sink:
                await self._fetcher.fetch(activation, file, sink.fileno())
            place = draft.rename(self._directory / file.sha256)
            self._kept[file.sha256] = _Kept(file.size, _mark(place.stat()))
        except OSError as error:
            raise InputError(file.name, error.strerror or "", error.errno or 0) from error
        except ExceptionGroup as group:
            raise _first(group) from None
        finally:
            draft.unlink(missing_ok=True)

    def _shrink(self) -> None:
        excess = sum(kept.size for kept in self._kept.values()) - self._limit
        for digest in [digest for digest in self._kept if not self._pins[digest]]:
            if excess <= 0:
                break
            (self._directory / digest).unlink(missing_ok=True)
            excess -= self._kept.pop(digest).size


def _first(group: ExceptionGroup[Exception]) -> InputError:
    """One of the failures that happened side by side: one sentence is enough for the person who reads it."""
    found, other = group.split(InputError)
    if other is not None or found is None:
        raise group
    leaf: InputError | ExceptionGroup[InputError] = found
    while isinstance(leaf, ExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf


def _mark(status: os.stat_result) -> Mark:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _sum(path: Path) -> str:
    """The SHA-256 of a file.  Blocks on the disk; raises OSError."""
    total, piece = hashlib.sha256(), bytearray(_PIECE)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(piece):
            total.update(memoryview(piece)[:count])
    return total.hexdigest()
