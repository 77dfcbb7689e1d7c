"""Reading the input files of jobs: small ones go along in the activation, large ones are offered by their hash."""

import asyncio
import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kettle.shadow.domain.files import Wanted, inputs
from kettle.wire.ads import Ad
from kettle.wire.commands.startd import InputFile

TRANSFER_INPUT_ERROR: Final = 13
_EXECUTABLE: Final = 0o755
_PIECE: Final = 1 << 20


class InputError(Exception):
    """An input file cannot be read; `errno` says why."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"Transfer input files failure at the access point: reading {path} failed: {error.strerror}"
        )
        self.errno = error.errno or 0


class Source(msgspec.Struct, frozen=True):
    """An input file as the worker is told of it, and where it is read from."""

    file: InputFile
    path: Path


class Inputs:
    """Reads input files; one that has not changed since it was read for another job is not read again."""

    def __init__(self, *, inline_bytes: int, cache_bytes: int) -> None:
        self._inline = inline_bytes
        self._limit = cache_bytes
        self._cached: OrderedDict[tuple[str, int, int, int], tuple[str, bytes | None]] = OrderedDict()
        self._size = 0

    async def gather(self, ad: Ad) -> list[Source]:
        """All input files of a job; raises `InputError`."""
        sources: dict[str, Source] = {}
        for wanted in inputs(ad):
            for path, name in _walk(wanted):
                sources[name] = await self._source(path, name, executable=wanted.executable)
        return list(sources.values())

    async def _source(self, path: Path, name: str, *, executable: bool) -> Source:
        try:
            status = path.stat()
            key = (str(path), status.st_mtime_ns, status.st_ino, status.st_size)
            known = self._cached.get(key)
            if known is None:
                known = await self._read(path, status.st_size)
                self._keep(key, known)
        except OSError as error:
            raise InputError(path, error) from error
        digest, data = known
        mode = _EXECUTABLE if executable else stat.S_IMODE(status.st_mode) & 0o777
        return Source(InputFile(name=name, mode=mode, size=status.st_size, sha256=digest, data=data), path)

    async def _read(self, path: Path, size: int) -> tuple[str, bytes | None]:
        if size <= self._inline:
            data = path.read_bytes()
            return hashlib.sha256(data).hexdigest(), data
        return await asyncio.to_thread(_digest, path), None

    def _keep(self, key: tuple[str, int, int, int], known: tuple[str, bytes | None]) -> None:
        self._cached[key] = known
        self._size += len(known[1] or b"") + 200
        while self._size > self._limit:
            _, (_, data) = self._cached.popitem(last=False)
            self._size -= len(data or b"") + 200


def _walk(wanted: Wanted) -> Iterator[tuple[Path, str]]:
    root = Path(wanted.path)
    if not root.is_dir():
        yield root, wanted.name
        return
    prefix = "" if wanted.contents else f"{wanted.name}/"
    for directory, _, names in os.walk(root):
        below = Path(directory).relative_to(root)
        for name in names:
            yield Path(directory, name), prefix + str(below / name)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_piece(path: Path, offset: int, length: int) -> bytes:
    """Bytes of an input file."""
    with path.open("rb") as file:
        return os.pread(file.fileno(), min(length, _PIECE), offset)
