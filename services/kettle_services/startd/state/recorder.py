"""
The recorder: keeps the machine and its journal consistent, also on a full disk.

While the journal cannot be written, nothing new is accepted.  Other changes are in memory only, and none of them needs
the journal for safety: a startd that died then would find older leases, claims and attempts that have already ended,
and would end all of these, but never begin one again.  When there is room, a new journal is written from memory.
"""

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kettle_services.startd.domain.state.changes import AttemptAccepted, Change, Claimed, ClaimWaiting
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.resource_spelling import as_spelt_now
from kettle_services.startd.state.journal import Journal

_log: Final = logging.getLogger(__name__)
_LOOK_S: Final = 2.0
RESERVED_BYTES: Final = 16 << 20
"""What has to be free where the startd writes and where jobs work: below it, a job could not even begin."""
_BEGINNINGS: Final = (Claimed, AttemptAccepted, ClaimWaiting)
"""
Changes that begin something.  What comes with one does not happen either: nobody makes room for who cannot come.
"""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class NotRecordedError(Exception):
    """Something new could not be recorded, and so it did not happen."""


class Recorder:
    """Writes every change down before it is true."""

    def __init__(self, machine: Machine, journal: Journal, *, places: Sequence[Path]) -> None:
        """`places` are directories that have to have room."""
        self._machine = machine
        self._journal = journal
        self._places = places
        self._behind = False

    def open(self) -> None:
        """Take up what a former startd has left."""
        for change in self._journal.load():
            if isinstance(change, Claimed):
                change = Claimed(as_spelt_now(change.claim, self._machine.facts))  # noqa: PLW2901 - the same one
            self._machine.apply(change)
        self._behind = True
        self.check_disk()

    def record(self, changes: Sequence[Change]) -> None:
        """
        Write changes down and make them true.

        Raises:
            NotRecordedError: they would begin something, and cannot be recorded.
        """
        try:
            self._record(changes)
        except OSError as error:
            self._behind = True
            self._tell(_sentence(error))
            if any(isinstance(change, _BEGINNINGS) for change in changes):
                raise NotRecordedError(self._machine.trouble) from error
        for change in changes:
            self._machine.apply(change)

    def _record(self, changes: Sequence[Change]) -> None:
        if self._behind:
            self._journal.restart([*self._machine.snapshot(), *changes])
            self._behind = False
        elif self._journal.append(changes):
            self._behind = True  # too long: the next change starts a new one

    def check_disk(self) -> bool:
        """See whether there is room, and catch up if there is; whether that changed."""
        before, trouble = self._machine.trouble, ""
        try:
            if self._behind:
                self._journal.restart(self._machine.snapshot())
                self._behind = False
            for place in self._places:
                room = os.statvfs(place)
                if room.f_bavail * room.f_frsize < RESERVED_BYTES:
                    trouble = f"the disk is full: {place} has less than {RESERVED_BYTES >> 20} MiB left"
        except OSError as error:
            trouble = _sentence(error)
        self._tell(trouble)
        return before != trouble

    def _tell(self, trouble: str) -> None:
        if trouble and not self._machine.trouble:
            _log.error("nothing new is accepted", extra={"cause": trouble})
        elif self._machine.trouble and not trouble:
            _log.warning("there is room again")
        self._machine.trouble = trouble

    async def watch(self, changed: Callable[[], None]) -> None:
        """Check repeatedly, without end; `changed` is called when the answer to new requests changes."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if self.check_disk():
                changed()

    def close(self) -> None:
        """Write no more."""
        self._journal.close()


def _sentence(error: OSError) -> str:
    what = "the disk is full" if error.errno in _FULL else "the disk cannot be written"
    return f"{what}: {error.strerror} ({error.filename or 'journal'})"
