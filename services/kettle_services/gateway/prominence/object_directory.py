"""
Objects of people and jobs, in a directory of the gateway.

Each is a file whose name is made of the object's: no name leads anywhere else. What comes is written aside and takes its place at once
when all of it is there and is what was announced.
"""

import asyncio
import hashlib
import os
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote

import msgspec

from kettle.auth.private_files import private_directory
from kettle.prominence.addresses import MARK, Area, Place, file_name
from kettle_services.gateway.prominence.application import refused

MOST: Final = 10_000
"""Objects of one owner in one area."""
_AT_ONCE: Final = 1 << 20
"""Bytes that are written by one call of a thread."""
_TRANSIENT: Final[tuple[Area, ...]] = ("scratch", "snapshots", "documents")
_LOOK_S: Final = 3600.0


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

    def __init__(self, path: Path, limits: Limits) -> None:
        self._path = private_directory(path)
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
                await asyncio.to_thread(_settled, file, draft, target)
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
        if len(there) >= MOST and not self._file(place).exists():
            raise refused(
                f"{place.owner} has {MOST:,} objects in {place.area}, which is the most: remove some"
            )
        return sum(each.size for each in there)

    async def list(self, area: Area, owner: str) -> list[Stored]:
        """All of an owner, by name."""
        return await asyncio.to_thread(lambda: sorted(self._listed(area, owner), key=lambda each: each.name))

    async def file(self, place: Place) -> Path | None:
        """The file that an object is; None: there is none."""
        path = self._file(place)
        return path if await asyncio.to_thread(path.is_file) else None

    async def find(self, place: Place) -> Stored | None:
        """What is known of an object; None: there is none."""
        return await asyncio.to_thread(_stored, self._file(place), place.name)

    async def remove(self, place: Place) -> bool:
        """Keep it no longer; whether it was there."""
        try:
            await asyncio.to_thread(self._file(place).unlink)
        except FileNotFoundError:
            return False
        return True

    async def keep_house(self) -> None:
        """Remove what jobs have sent long ago; never returns."""
        while True:
            await asyncio.to_thread(self._clean, time.time() - self._limits.kept)
            await asyncio.sleep(_LOOK_S)

    def _clean(self, before: float) -> None:
        for area in _TRANSIENT:
            for path in (self._path / area).glob("*/*"):
                stored = _stored(path, path.name)
                if stored is not None and stored.changed < before:
                    path.unlink(missing_ok=True)

    def _listed(self, area: Area, owner: str) -> Iterator[Stored]:
        directory = self._path / area / _named(owner)
        if not directory.is_dir():
            return
        for path in directory.iterdir():
            stored = _stored(path, unquote(path.name.removeprefix(MARK)))
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
    except FileNotFoundError:
        return None
    return Stored(name, found.st_size, found.st_mtime)


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
