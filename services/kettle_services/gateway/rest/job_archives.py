"""The files that a job has left as one archive, of which any part can be read."""

import bisect
import hashlib
import tarfile
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.client.errors import CommandRefusedError
from kettle_services.gateway.rest.job_files import JobSource, OpenFile
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.rest.files import JobFile

BLOCK: Final = 512
"""Bytes of which an archive has a whole number."""


def header_of(file: JobFile, size: int) -> bytes:
    """What stands in an archive before a file."""
    entry = tarfile.TarInfo(file.path)
    entry.size = size
    entry.mtime = int(file.changed.timestamp()) if file.changed else 0
    return entry.tobuf(tarfile.PAX_FORMAT)


class _Stretch(msgspec.Struct, frozen=True):
    """A part of the archive: bytes that are here, or a file."""

    begins: int
    length: int
    data: bytes = b""
    path: str = ""


class LeftArchive:
    """A source whose only file is the archive of all files of another one that do not change."""

    running = False

    def __init__(self, source: JobSource, files: Sequence[JobFile]) -> None:
        self._source: Final = source
        self._stretches: Final = list(_laid_out(files))
        self._begins: Final = [each.begins for each in self._stretches]
        last = self._stretches[-1]
        self._size: Final = last.begins + last.length
        seen = hashlib.blake2b(digest_size=12)
        for file in files:
            seen.update(f"{file.path}\0{file.size}\0{file.changed}\0".encode())
        self._etag: Final = f'"{seen.hexdigest()}"'
        self._etags: dict[str, str] = {}
        self.ad: Ad = source.ad

    async def open(self, name: str, offset: int, length: int) -> OpenFile:
        """See `JobSource.open`."""
        del name
        first = max(0, self._size + offset) if offset < 0 else offset
        end = min(first + length, self._size)
        parts: list[bytes] = []
        at = first
        while at < end:
            data = await self._read(at, end - at)
            parts.append(data)
            at += len(data)
        return OpenFile(self._size, self._etag, first, b"".join(parts))

    async def list(self, after: str) -> tuple[list[JobFile], bool]:
        """See `JobSource.list`."""
        return await self._source.list(after)

    async def _read(self, at: int, length: int) -> bytes:
        """
        Some bytes from a place on, one at least.

        Raises CommandRefusedError: a file is not what it was when the list was made.
        """
        stretch = self._stretches[bisect.bisect_right(self._begins, at) - 1]
        inside = at - stretch.begins
        length = min(length, stretch.length - inside)
        if stretch.data:
            return stretch.data[inside : inside + length]
        opened = await self._source.open(stretch.path, inside, length)
        known = self._etags.setdefault(stretch.path, opened.etag)
        if opened.size != stretch.length or opened.etag != known or not opened.data:
            raise CommandRefusedError(
                RefusalCode.CHANGED, f"the file {stretch.path} changed while it was read"
            )
        return opened.data


def _laid_out(files: Sequence[JobFile]) -> Iterator[_Stretch]:
    at = 0
    for file in files:
        header = header_of(file, file.size)
        yield _Stretch(at, len(header), header)
        at += len(header)
        if file.size:
            yield _Stretch(at, file.size, path=file.path)
            at += file.size
        if padding := -file.size % BLOCK:
            yield _Stretch(at, padding, bytes(padding))
            at += padding
    yield _Stretch(at, 2 * BLOCK, bytes(2 * BLOCK))
