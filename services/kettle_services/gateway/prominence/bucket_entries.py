"""
Objects whose bytes are in a bucket: what the gateway keeps of each is an entry, a small file in the place of the object's.

An object of the bucket has its name once.  Before it is written, and before an entry gives it up, a note says so; who finds a note
removes the object unless the entry names it.  So whatever happens in between, nothing is lost, and nothing stays that no entry names.
"""

import asyncio
import logging
import secrets
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import private_directory, write_private
from kettle_services.gateway.prominence.application import refused
from kettle_services.gateway.prominence.bucket import Bucket, BucketError

SUFFIX: Final = ".at"
"""Of the file of an entry: names of objects have no dot."""
_log: Final = logging.getLogger(__name__)


class Entry(msgspec.Struct, frozen=True):
    """An object."""

    name: str
    """In the bucket."""
    size: int


class _Note(msgspec.Struct, frozen=True):
    """An object of the bucket that is to be removed unless its entry names it."""

    name: str
    entry: str
    """The path of the entry's file."""


class BucketEntries:
    """Puts objects into the bucket and takes them out."""

    def __init__(self, notes: Path, bucket: Bucket) -> None:
        self._notes = private_directory(notes)
        self._bucket = bucket
        self._sending: set[str] = set()
        self._changing = asyncio.Lock()

    async def put(self, area: str, draft: Path, size: int, file: Path) -> None:
        """
        Have the bytes of a draft in the bucket, and then an entry in the file.

        Raises RequestRefused: the bucket does not take them.
        """
        name = f"{area}/{secrets.token_hex(16)}"
        self._sending.add(name)
        try:
            sent = await asyncio.to_thread(self._noted, name, file)
            await self._bucket.put(name, draft, size)
            async with self._changing:
                before = await asyncio.to_thread(self._replaced, file, Entry(name, size))
            sent.unlink()
        except BucketError as error:
            _log.warning("an object of %s was not kept: %s", area, error)
            raise refused("what you have sent cannot be kept now: try again later", 503) from error
        finally:
            self._sending.discard(name)
        if before is not None:
            await self._cleared(before)

    async def remove(self, file: Path) -> bool:
        """Give up what an entry names; whether there was one."""
        async with self._changing:
            before = await asyncio.to_thread(self._replaced, file, None)
        if before is None:
            return False
        await self._cleared(before)
        return True

    def address(self, entry: Entry) -> str:
        """Where its bytes are fetched."""
        return self._bucket.address(entry.name)

    async def clear(self) -> None:
        """Remove what was given up and could not be removed then."""
        for note in await asyncio.to_thread(lambda: list(self._notes.iterdir())):
            await self._cleared(note)

    def _replaced(self, file: Path, entry: Entry | None) -> Path | None:
        """Have this entry, or none, in the file; the note about what the one before named."""
        before = read_entry(file)
        note = None if before is None else self._noted(before.name, file)
        if entry is not None:
            private_directory(file.parent)
            write_private(file, msgspec.json.encode(entry))
        else:
            file.unlink(missing_ok=True)
        return note

    def _noted(self, name: str, file: Path) -> Path:
        note = _Note(name, str(file))
        return write_private(self._notes / secrets.token_hex(16), msgspec.json.encode(note))

    async def _cleared(self, path: Path) -> None:
        """Do what a note says; what does not go is left for the next time."""
        try:
            note = msgspec.json.decode(await asyncio.to_thread(path.read_bytes), type=_Note)
            entry = await asyncio.to_thread(read_entry, Path(note.entry))
            if note.name in self._sending:
                return
            if entry is None or entry.name != note.name:
                await self._bucket.remove(note.name)
            path.unlink(missing_ok=True)
        except FileNotFoundError:
            return  # somebody else has done it
        except (BucketError, OSError, msgspec.MsgspecError) as error:
            _log.warning("what is to leave the bucket stays for now: %s", error)


def read_entry(file: Path) -> Entry | None:
    """The entry in a file; None: there is none."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Entry)
    except FileNotFoundError:
        return None
