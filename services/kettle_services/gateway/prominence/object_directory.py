"""
Objects of people and jobs, in a directory of the gateway.

Each is a file whose name is made of the object's: no name leads anywhere else. What comes is written aside and takes its place at once
when all of it is there and is what was announced.  With a bucket its bytes go on to that one, and the file is an entry that says
where they are; documents stay here.
"""

import asyncio
import hashlib
import logging
import os
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote

import msgspec

from kettle.auth.private_files import private_directory
from kettle.prominence.addresses import MARK, Area, Place, file_name
from kettle_services.gateway.prominence.application import refused
from kettle_services.gateway.prominence.bucket import Bucket
from kettle_services.gateway.prominence.bucket_entries import SUFFIX, BucketEntries, read_entry

_log: Final = logging.getLogger(__name__)
MOST: Final = 10_000
"""Objects of one owner in one area."""
_AT_ONCE: Final = 1 << 20
"""Bytes that are written by one call of a thread."""
_TRANSIENT: Final[tuple[Area, ...]] = ("scratch", "snapshots", "documents")
_LOOK_S: Final = 3600.0
_NO_BUCKET: Final = (
    "this is in a bucket that the gateway does not use any more (prominence_bucket of [gateway])"
)


class Stored(msgspec.Struct, frozen=True):
    """An object."""

    name: str
    size: int
    changed: float
    """Seconds since the epoch."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be kept, in bytes."""

    largest: int
    """Of one object."""
    all_of_one: int
    """Of one owner in one area."""
    kept: float
    """Seconds for which what jobs have sent is kept."""


class ObjectDirectory:
    """Keeps them; nobody else writes there while this process lives."""

    def __init__(self, path: Path, limits: Limits, bucket: Bucket | None = None) -> None:
        self._path = private_directory(path)
        self._entries = None if bucket is None else BucketEntries(path / "leaving", bucket)
        self._incoming = private_directory(path / "incoming")
        self._limits = limits
        self._coming: Counter[tuple[Area, str]] = Counter()
        """Bytes of objects that are not all there yet, by area and owner."""
        for left in self._incoming.iterdir():
            left.unlink()

    async def put(self, place: Place, data: AsyncIterator[bytes], *, size: int | None, sha256: str) -> None:
        """
        Keep an object, in the place of the one before. `size`: what was announced of it; `sha256`: what it has to be, empty: anything.

        Raises RequestRefused: it is too large, or not what was announced.
        """
        if size is not None and size > self._limits.largest:
            raise refused(f"an object has {self._limits.largest:,} bytes at most, and this one has {size:,}")
        target = self._file(place)
        used = await asyncio.to_thread(self._used, place)
        whose = place.area, place.owner
        draft = self._incoming / secrets.token_hex(16)
        counted = 0
        try:
            with draft.open("xb") as file:
                seen = hashlib.sha256()
                async for piece in _pieces(data):
                    counted += len(piece)
                    self._coming[whose] += len(piece)
                    self._require_room(whose, used, counted)
                    await asyncio.to_thread(file.write, piece)
                    await asyncio.to_thread(seen.update, piece)
                if size is not None and counted != size:
                    raise refused(f"the object has {counted:,} bytes, and {size:,} were announced")
                if sha256 and seen.hexdigest() != sha256:
                    raise refused(
                        f"the SHA-256 of what came is {seen.hexdigest()}, and not the one that was announced"
                    )
                # Others may have come to their end meanwhile, which counted as coming before.
                self._require_room(whose, await asyncio.to_thread(self._used, place), counted)
                if self._entries is None or place.area == "documents":
                    await asyncio.to_thread(_settled, file, draft, target)
                    await self._gone(_entry(target))
                else:
                    file.flush()
                    await self._entries.put(place.area, draft, counted, _entry(target))
                    target.unlink(missing_ok=True)
        finally:
            self._coming[whose] -= counted
            if not self._coming[whose]:
                del self._coming[whose]
            draft.unlink(missing_ok=True)

    def _require_room(self, whose: tuple[Area, str], used: int, size: int) -> None:
        if size > self._limits.largest:
            raise refused(f"an object has {self._limits.largest:,} bytes at most, and this one has more")
        if used + self._coming[whose] > self._limits.all_of_one:
            raise refused(
                f"the {whose[0]} of {whose[1]} would have more than {self._limits.all_of_one:,} bytes: remove some"
            )

    def _used(self, place: Place) -> int:
        there = list(self._listed(place.area, place.owner))
        path = self._file(place)
        if len(there) >= MOST and not (path.exists() or _entry(path).exists()):
            raise refused(
                f"{place.owner} has {MOST:,} objects in {place.area}, which is the most: remove some"
            )
        return sum(each.size for each in there)

    async def list(self, area: Area, owner: str) -> list[Stored]:
        """All of an owner, by name."""
        return await asyncio.to_thread(lambda: sorted(self._listed(area, owner), key=lambda each: each.name))

    async def where(self, place: Place) -> Path | str | None:
        """
        The file that an object is, or the address in a bucket where it is for some minutes; None: there is none.

        Raises RequestRefused: it is in a bucket, and this gateway has none any more.
        """
        path = self._file(place)
        entry = await asyncio.to_thread(read_entry, _entry(path))
        if entry is None:
            return path if await asyncio.to_thread(path.is_file) else None
        if self._entries is None:
            raise refused(_NO_BUCKET, 503)
        return self._entries.address(entry)

    async def find(self, place: Place) -> Stored | None:
        """What is known of an object; None: there is none."""
        path = self._file(place)
        entry = await asyncio.to_thread(_stored, _entry(path), place.name)
        return entry or await asyncio.to_thread(_stored, path, place.name)

    async def remove(self, place: Place) -> bool:
        """Keep it no longer; whether it was there."""
        return await self._gone(self._file(place)) | await self._gone(_entry(self._file(place)))

    async def keep_house(self) -> None:
        """Clean from time to time; never returns."""
        while True:
            await self.clean()
            await asyncio.sleep(_LOOK_S)

    async def clean(self) -> None:
        """
        Remove what jobs have sent long ago, and from the bucket what could not be removed when it was given up.
        """
        for path in await asyncio.to_thread(self._old, time.time() - self._limits.kept):
            await self._gone(path)
        if self._entries is not None:
            await self._entries.clear()

    async def _gone(self, path: Path) -> bool:
        """Remove a file, and what it says is in a bucket; whether it was there."""
        if path.suffix == SUFFIX and self._entries is not None:
            return await self._entries.remove(path)
        try:
            await asyncio.to_thread(path.unlink)
        except FileNotFoundError:
            return False
        if path.suffix == SUFFIX:
            _log.warning("%s named an object of a bucket that is not used any more: it stays there", path)
        return True

    def _old(self, before: float) -> Sequence[Path]:
        """Files of what jobs sent before a time."""
        every = [path for area in _TRANSIENT for path in (self._path / area).glob("*/*")]
        return [path for path in every if (found := _stored(path, path.name)) and found.changed < before]

    def _listed(self, area: Area, owner: str) -> Iterator[Stored]:
        directory = self._path / area / _named(owner)
        if not directory.is_dir():
            return
        names = {path.name for path in directory.iterdir() if not path.name.startswith(".")}
        for name in names:
            # Between two steps of an exchange both the file and the entry are there.
            if name.endswith(SUFFIX) or f"{name}{SUFFIX}" not in names:
                stored = _stored(directory / name, unquote(name.removeprefix(MARK).removesuffix(SUFFIX)))
                if stored is not None:
                    yield stored

    def _file(self, place: Place) -> Path:
        """Raises RequestRefused: the name is too long."""
        return self._path / place.area / _named(place.owner) / _named(place.name)


def _named(name: str) -> str:
    try:
        return file_name(name)
    except ValueError as error:
        raise refused(str(error)) from error


def _stored(path: Path, name: str) -> Stored | None:
    try:
        found = path.stat()
        entry = read_entry(path) if path.suffix == SUFFIX else None
    except FileNotFoundError:
        return None
    return Stored(name, found.st_size if entry is None else entry.size, found.st_mtime)


def _entry(path: Path) -> Path:
    """Where the entry is of an object of which the file would be there."""
    return path.with_name(f"{path.name}{SUFFIX}")


async def _pieces(data: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Joined, so many bytes at a time that a thread is worth it."""
    held = bytearray()
    async for each in data:
        held += each
        if len(held) >= _AT_ONCE:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _settled(file: IO[bytes], draft: Path, target: Path) -> None:
    """On the disk before anybody is told, and before it takes the place of another."""
    file.flush()
    os.fsync(file.fileno())
    private_directory(target.parent)
    draft.replace(target)
