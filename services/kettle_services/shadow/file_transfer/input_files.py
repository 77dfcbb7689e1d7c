"""
Reading the input files of jobs: small ones go along in the activation, large ones are offered by their hash.

What a job names is bounded in number and bytes, and is read in a thread unless it is a few small files: whatever one
job names, the others do not wait for it.
"""

import asyncio
import hashlib
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kettle.transfer.directory_walk import walk
from kettle.transfer.exclusions import Exclusions
from kettle.transfer.file_lists import is_inside
from kettle.transfer.submit_side_paths import TransferPath, excluded, inputs
from kettle_services.shadow.domain.transfer_checks import limit
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.ads import Ad
from kettle_wire.codes import HoldCode
from kettle_wire.commands.startd import InputFile

MAX_FILES: Final = 10_000
"""Files and directories of one job."""
_EXECUTABLE: Final = 0o755
_PIECE: Final = 1 << 20
_FEW: Final = 8
_THREADS: Final = 4
_ENTRY: Final = 200
"""Bytes of a cache entry beside its data, about."""

Key = tuple[str, int, int, int]
Known = tuple[str, bytes | None]
Wanted = tuple[TransferPath, FileAccess]
"""What goes along, and with whose rights it is read."""


class InputError(Exception):
    """
    An input file cannot be read; `code` is the HoldReasonCode, `errno` the system's error, if there is one.
    """

    def __init__(
        self, path: Path, why: str, *, errno: int = 0, code: int = HoldCode.TransferInputError
    ) -> None:
        super().__init__(
            f"Transfer input files failure at the access point: reading {path} failed: {why or 'unknown error'}"
        )
        self.errno = errno
        self.code = code


class Source(msgspec.Struct, frozen=True):
    """An input file as described to the worker, the place from which it is read, and with whose rights."""

    file: InputFile
    path: Path
    places: FileAccess

    def open(self) -> int:
        """A descriptor of it.  Blocks on the disk; raises OSError or ValueError."""
        return self.places.act("read", self.path, lambda: self.places.open_input(self.path))


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one job may have; bytes."""

    inline: int
    """Larger files do not travel inside the activation."""
    inline_total: int
    """Nor do further ones when those that do have so much."""
    total: int


class Inputs:
    """Reads input files; one that has not changed since it was read for another job is not read again."""

    def __init__(self, places: FileAccess, limits: Limits, *, cache_bytes: int) -> None:
        self._places = places
        self._limits = limits
        self._cache = Cache(cache_bytes)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="inputs")

    async def gather(
        self,
        ad: Ad,
        saved: Sequence[TransferPath] = (),
        *,
        sent: Sequence[TransferPath] | None = None,
        places: FileAccess | None = None,
    ) -> list[Source]:
        """
        All input files of a job whose lists make sense, then what it saved; raises `InputError`.

        `sent`: those that its submitter sent here, in place of those that its ad names; `places`: where and with whose
        rights its own files are read.  What was sent or saved here is read with ours.
        """
        own = places or self._places
        named = (
            [(each, own) for each in inputs(ad)] if sent is None else [(each, self._places) for each in sent]
        )
        wanted = [*named, *((each, self._places) for each in saved)]
        total = limit(ad, "MaxTransferInputMB", self._limits.total)
        limits = msgspec.structs.replace(self._limits, total=total)
        reading = _Reading(limits, self._cache, excluded(ad))
        if self._quick(wanted):
            return reading.run(wanted)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, partial(reading.run, wanted))
        finally:
            reading.given_up.set()  # a thread cannot be cancelled; it looks at this after each piece

    def _quick(self, wanted: Sequence[Wanted]) -> bool:
        """Whether reading them takes no longer than handing them to a thread."""
        return len(wanted) <= _FEW and all(
            places.act("", "", partial(self._is_quick, each)) for each, places in wanted
        )

    def _is_quick(self, wanted: TransferPath) -> bool:
        try:
            status = os.stat(wanted.path)  # noqa: PTH116 - a pure path
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(status.st_mode) and (
            status.st_size <= self._limits.inline or _key(Path(wanted.path), status) in self._cache
        )

    def piece(self, source: Source, offset: int, length: int) -> bytes:
        """Bytes of an input file. Blocks on the disk; raises OSError or ValueError."""
        if offset < 0 or length < 0:
            raise ValueError("there is nothing before the beginning of a file")
        fd = source.open()
        try:
            return os.pread(fd, min(length, _PIECE), min(offset, os.fstat(fd).st_size))
        finally:
            os.close(fd)

    def close(self) -> None:
        """Read nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Cache:
    """Hashes, and the bytes of small files, by path and state; used from several threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._known: OrderedDict[Key, Known] = OrderedDict()
        self._lock = threading.Lock()
        self._reading: dict[Key, threading.Lock] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def get(self, key: Key) -> Known | None:
        """What was read."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    @contextmanager
    def turn(self, key: Key) -> Generator[None]:
        """The turn to read a file; who waited for it finds what was read."""
        with self._lock:
            turn = self._reading.setdefault(key, threading.Lock())
        try:
            with turn:
                yield
        finally:
            with self._lock:
                self._reading.pop(key, None)

    def keep(self, key: Key, known: Known) -> None:
        """Remember; the least recently used are forgotten."""
        with self._lock:
            if key in self._known:
                return
            self._known[key] = known
            self._size += len(known[1] or b"") + _ENTRY
            while self._size > self._limit:
                _, (_, data) = self._known.popitem(last=False)
                self._size -= len(data or b"") + _ENTRY


class _Reading:
    """The input files of one job, read one after the other."""

    def __init__(self, limits: Limits, cache: Cache, but: Exclusions) -> None:
        self.given_up = threading.Event()
        self._but = but
        self._limits = limits
        self._cache = cache
        self._found = 0
        self._bytes = 0
        self._inline = 0

    def run(self, wanted: Sequence[Wanted]) -> list[Source]:
        """All is counted before the first byte is read. Raises InputError."""
        found = [
            (places, places.act("look for", one.path, partial(self._find, one, places)))
            for one, places in wanted
        ]
        sources: dict[str, Source] = {}
        for places, files in found:
            for path, name, one in files:
                if name in sources and sources[name].path == path:
                    continue  # the program is listed among its files, too: it stays one
                with _named(path):
                    sources[name] = self._source(path, name, one, places)
        return list(sources.values())

    def _find(self, wanted: TransferPath, places: FileAccess) -> list[tuple[Path, str, TransferPath]]:
        found: list[tuple[Path, str, TransferPath]] = []
        with _named(Path(wanted.path)):
            for path, name in walk(wanted, self._but, places.listed, empty=True):
                self._found += 1
                if self._found > MAX_FILES:
                    raise InputError(path, f"the job has more than {MAX_FILES} input files and directories")
                if self.given_up.is_set():
                    raise InputError(path, "nobody waits for it")
                if name is not None:
                    if not name.endswith("/"):
                        self._weigh(path)
                    found.append((path, name, wanted))
        return found

    def _weigh(self, path: Path) -> None:
        self._bytes += path.stat().st_size
        if self._bytes > self._limits.total:
            mib = self._limits.total >> 20
            why = f"the input files of the job have more than {mib} MiB together"
            raise InputError(path, why, code=HoldCode.MaxTransferInputSizeExceeded)

    def _source(self, path: Path, name: str, wanted: TransferPath, places: FileAccess) -> Source:
        if not is_inside(name.rstrip("/")):
            raise ValueError(f"{name!r} is no name of a file inside a sandbox")
        if name.endswith("/"):  # an empty directory
            file = InputFile(name=name.rstrip("/"), mode=0o755, size=0, sha256="", data=b"", directory=True)
            return Source(file, path, places)
        fd = places.act("read", path, lambda: places.open_input(path))
        try:
            status = os.fstat(fd)
            key = _key(path, status)
            known = self._cache.get(key) or self._read_once(key, path, fd, status.st_size)
        finally:
            os.close(fd)
        digest, data = known
        self._inline += len(data or b"")
        if self._inline > self._limits.inline_total:
            data = None
        mode = _EXECUTABLE if wanted.executable else wanted.mode or stat.S_IMODE(status.st_mode) & 0o777
        size, saved = status.st_size, wanted.saved
        file = InputFile(name=name, mode=mode, size=size, sha256=digest, data=data, saved=saved)
        return Source(file, path, places)

    def _read_once(self, key: Key, path: Path, fd: int, size: int) -> Known:
        """Of many jobs that want a new large file at once, one reads it and the others wait for that."""
        if size <= self._limits.inline:
            small = self._read(path, fd, size)
            self._cache.keep(key, small)
            return small
        with self._cache.turn(key):
            known = self._cache.get(key)
            if known is None:
                known = self._read(path, fd, size)
                self._cache.keep(key, known)
            return known

    def _read(self, path: Path, fd: int, size: int) -> Known:
        digest, data, left = hashlib.sha256(), bytearray(), size
        while left:
            if self.given_up.is_set():
                raise InputError(path, "nobody waits for it")
            piece = os.read(fd, min(left, _PIECE))
            if not piece:
                raise ValueError("it has fewer bytes than its size says")
            digest.update(piece)
            left -= len(piece)
            if size <= self._limits.inline:
                data += piece
        if not size and os.read(fd, 1):
            raise ValueError("its size is not known before it is read")
        return digest.hexdigest(), bytes(data) if size <= self._limits.inline else None


@contextmanager
def _named(path: Path) -> Generator[None]:
    """The system's error about a path."""
    try:
        yield
    except OSError as error:
        named = Path(error.filename) if isinstance(error.filename, str) else path
        raise InputError(named, error.strerror or str(error), errno=error.errno or 0) from error
    except ValueError as error:
        raise InputError(path, str(error)) from error


def _key(path: Path, status: os.stat_result) -> Key:
    return str(path), status.st_mtime_ns, status.st_ino, status.st_size
