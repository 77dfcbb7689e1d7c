"""
Requests of the program of one attempt to its submit side: its ad and its log through the schedd, its owner's files
here.

Its updates are recorded permanently, so they are limited; while one record is being committed the next collects.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, assert_never

import msgspec

from kettle.accounts.lookup import StrangerError
from kettle.classad import ClassAd, ClassAdError, parse, unparse
from kettle.jobs import chirp_updates
from kettle.transfer.submit_side_paths import text
from kettle_services.shadow.chirp.remote_files import FileWish, RemoteFiles
from kettle_services.shadow.domain.rate_limit import Allowance
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.files.disk_threads import FileWork
from kettle_wire.ads import Ad, Scalar
from kettle_wire.codes import Universe
from kettle_wire.commands.attempt_reports import Told
from kettle_wire.commands.chirp import (
    Chirped,
    CloseFile,
    GetAttribute,
    Note,
    OnFile,
    OnPath,
    OpenFile,
    ReadFile,
    SeekFile,
    SetAttribute,
    Trouble,
    Wish,
    WriteFile,
)

Access = Callable[[], Awaitable[FileAccess]]
"""What the job may do with files; raises StrangerError."""
Record = Callable[[Told], asyncio.Future[None]]
"""Has it recorded; done when it is."""

_log: Final = logging.getLogger(__name__)
_ID_BYTES: Final = 8
_MOST_IN_HAND: Final = 4
"""Requests of one job at once; its machine waits for each answer, and asks again only after a long wait."""
_UNDEFINED: Final = b"UNDEFINED"
_KIB: Final = 1024


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a job may have recorded: pieces, each a message with a KiB of text."""

    at_once: int
    hourly: int
    delayed: tuple[str, ...] = ("Chirp*",)
    """Names of attributes, with `*`, that it may set without hurry, whatever its machine allows."""
    directories: tuple[str, ...] = ()
    """Below which it may use files (LIMIT_DIRECTORY_ACCESS), beside its own limits; none: everywhere."""


class Chirping:
    """Answers one job; `record` is where what it says of itself goes."""

    def __init__(self, ad: Ad, access: Access, terms: Terms, work: FileWork, record: Record) -> None:
        self._ad = dict(ad)
        self._record = record
        self._wants_proxy = ad.get("WantIOProxy") is True
        self._allowance = Allowance(terms.at_once, terms.hourly, time.monotonic())
        self._there = ad.get("JobUniverse") == Universe.GRID
        """It is at a batch system."""
        batch = chirp_updates.OF_BATCH_SYSTEMS if self._there else ()
        self._prefixes = [prefix.lower() for prefix in (*terms.delayed, *batch)]
        self._access = access
        self._directories = terms.directories
        self._files: RemoteFiles | None = None
        self._work = work
        self._in_hand = 0
        self._turn = asyncio.Lock()
        self._closed = False
        self._added: set[str] = set()
        """Attributes, in lower case, that the ad did not have."""
        self._attributes: Ad = {}
        self._delayed: Ad = {}
        """
        Set without hurry, the newest values; they wait for room in the allowance, or for the end of the attempt.
        """
        self._notes: list[str] = []
        self._telling: asyncio.Task[None] | None = None

    async def grant(self, wish: Wish) -> Chirped:
        """The answer to a request; no input of a job makes it fail, or ends the handling of other jobs."""
        if not self._wants_proxy:
            return Chirped(Trouble.NOT_AUTHORIZED)
        if self._in_hand >= _MOST_IN_HAND:
            return Chirped(Trouble.TRY_AGAIN)
        self._in_hand += 1
        try:
            return await self._answer(wish)
        except Exception:  # noqa: BLE001 - what a job asks fails for this job alone
            _log.exception("a job's wish failed", extra={"wish": type(wish).__name__})
            return Chirped(Trouble.UNKNOWN)
        finally:
            self._in_hand -= 1

    async def _answer(self, wish: Wish) -> Chirped:
        match wish:
            case GetAttribute(name=name):
                return self._attribute(name)
            case SetAttribute(name=name, expression=expression):
                return await self._set(name, expression)
            case Note(text=note):
                return await self._note(note)
            case OpenFile() | CloseFile() | ReadFile() | WriteFile() | SeekFile() | OnFile() | OnPath():
                return await self._on_files(wish)
            case _:
                assert_never(wish)

    def collect(self, told: dict[str, str], *, last: bool = False) -> None:
        """
        Have what was set without hurry recorded, where it differs from the ad. What makes no sense is left out.

        The machine says it, and it is believed no more than the job: what has no room waits, and at the end of the
        attempt, `last`, the newest values are recorded without.
        """
        allowed = {
            name: text
            for name, text in islice(told.items(), chirp_updates.MOST_ATTRIBUTES)
            if self._is_delayed(name)
        }
        found = {name: value for name, text in allowed.items() if (value := _parsed(text)) is not None}
        spelled = chirp_updates.spelled(
            chirp_updates.sayable(found, there=self._there), self._ad | self._attributes | self._delayed
        )
        for name, value in spelled.items():
            if (self._ad | self._attributes).get(name) == value:
                self._delayed.pop(name, None)
            elif (
                name in self._delayed or len(self._delayed) < chirp_updates.MOST_ATTRIBUTES
            ) and self._may_add(name):
                self._delayed[name] = value
        self._take_delayed(last=last)
        self._tell()

    def _is_delayed(self, name: str) -> bool:
        return any(fnmatchcase(name.lower(), prefix) for prefix in self._prefixes)

    def _take_delayed(self, *, last: bool) -> None:
        message = 1.0
        for name, value in list(self._delayed.items()):
            size = len(value if isinstance(value, str) else getattr(value, "expr", ""))
            if not last:
                if len(self._attributes) >= chirp_updates.MOST_ATTRIBUTES:
                    return
                if not self._allowance.take(message + size / _KIB, time.monotonic()):
                    return
            self._attributes[name] = value
            del self._delayed[name]
            message = 0.0

    async def settled(self) -> None:
        """Wait until all updates are recorded."""
        while self._telling is not None and not self._telling.done():
            await asyncio.shield(self._telling)

    def close(self) -> None:
        """The attempt is over, or somebody else's: nothing stays open."""
        self._closed = True
        if self._telling is not None:
            self._telling.cancel()
        if self._files is not None and not self._turn.locked():
            self._files.close()

    async def _on_files(self, wish: FileWish) -> Chirped:
        async with self._turn:
            if self._files is None:
                try:
                    places = await self._access()
                except StrangerError:
                    return Chirped(Trouble.NOT_AUTHORIZED)
                self._files = await self._work.do(partial(self._limited, places))
            if self._closed:
                return Chirped(Trouble.BAD_FD)
            answer = await self._work.do(partial(self._files.carry_out, wish))
        if self._closed:
            self._files.close()
        return answer

    def _limited(self, places: FileAccess) -> RemoteFiles:
        """The files that the administrator and the submitter let the program use."""
        iwd = text(self._ad, "Iwd", "/")
        submitters = text(self._ad, "LimitDirectoryAccess").replace(",", " ").split()
        groups = [[Path(iwd, each) for each in group] for group in (self._directories, submitters)]
        limited = places.act("", iwd, lambda: places.limited_to(*groups))
        return RemoteFiles(iwd, limited, self._work.room)

    def _attribute(self, name: str) -> Chirped:
        found = ClassAd.from_wire(self._ad | self._attributes).get(name)
        data = _UNDEFINED if found is None else unparse(found).encode()
        return Chirped(len(data), data)

    async def _set(self, name: str, expression: str) -> Chirped:
        value = _parsed(expression)
        if value is None:
            return Chirped(Trouble.INVALID_REQUEST)
        if chirp_updates.refusal(name):
            return Chirped(Trouble.NOT_AUTHORIZED)
        if not chirp_updates.sayable({name: value}):
            return Chirped(Trouble.TOO_BIG)
        (spelled,) = chirp_updates.spelled({name: value}, self._ad | self._attributes | self._delayed)
        if not self._may_add(spelled) or not self._has_room(expression):
            return Chirped(Trouble.TRY_AGAIN)
        self._attributes[spelled] = value
        self._delayed.pop(spelled, None)
        self._tell()
        await self.settled()
        return Chirped()

    async def _note(self, note: str) -> Chirped:
        if not self._has_room(note):
            return Chirped(Trouble.TRY_AGAIN)
        self._notes += chirp_updates.lines([note])
        self._tell()
        await self.settled()
        return Chirped()

    def _has_room(self, said: str) -> bool:
        if (
            len(self._notes) >= chirp_updates.MOST_NOTES
            or len(self._attributes) >= chirp_updates.MOST_ATTRIBUTES
        ):
            return False
        return self._allowance.take(1.0 + len(said) / _KIB, time.monotonic())

    def _may_add(self, name: str) -> bool:
        folded = name.lower()
        if name in self._ad or folded in self._added:
            return True
        if len(self._added) >= chirp_updates.MOST_ATTRIBUTES:
            return False
        self._added.add(folded)
        return True

    def _tell(self) -> None:
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell_all())

    async def _tell_all(self) -> None:
        while self._attributes or self._notes:
            attributes = dict(islice(self._attributes.items(), chirp_updates.MOST_ATTRIBUTES))
            told = Told(id=os.urandom(_ID_BYTES).hex(), attributes=attributes, notes=self._notes)
            self._attributes = {n: v for n, v in self._attributes.items() if n not in attributes}
            self._notes = []
            self._ad |= told.attributes
            await self._record(told)


def _parsed(expression: str) -> Scalar | None:
    """The value of an attribute as it travels; None: it is no expression."""
    try:
        return ClassAd({"It": parse(expression)}).to_wire()["It"]
    except ClassAdError:
        return None
