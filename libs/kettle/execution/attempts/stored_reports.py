"""
Final reports on disk: a starter writes one before it sends anything, and it stays until it is recorded.

A report appears whole or not at all (written aside, then renamed).  It is not forced to disk: it survives
the death of every process, not of the machine; after that the attempt counts as lost, and the job runs again.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import AttemptId, StoredReport

REPORTS: Final = "reports"
DRAFTS: Final = "drafts"

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(StoredReport).decode
_DRAFT: Final = ".draft"
_NO_DRAFT: Final = -1


class Draft:
    """
    The file with which one starter writes its reports, one after the other.

    A report is a hard link to that file.  When the report is deleted, the file is used for the next one: that costs
    only a link, where creating and deleting a file costs a tenth of a millisecond, and more after many files were
    deleted.
    """

    def __init__(self) -> None:
        self._fd = _NO_DRAFT
        self._path = ""
        self._inode = 0

    def store(self, state: str, stored: StoredReport) -> None:
        """
        Put a report below `state`, where the startd keeps its own.  Raises OSError, after which nothing is there.
        """
        name = stored.id.name
        try:
            fd, data = self._opened(f"{state}/{DRAFTS}/{name}"), _encode(stored)
            _write_all(fd, data)
            os.ftruncate(
                fd, len(data)
            )  # only what is too long: a file system gives no block back, and looks for none
            os.link(self._path, f"{state}/{REPORTS}/{name}")  # noqa: PTH119, RUF100 - strings: once per job
        except OSError:  # no room, no second names here, or the startd has cleared the drafts away just now
            self.close()
            store(f"{state}/{REPORTS}", stored)

    def _opened(self, path: str) -> int:
        """The file, at its beginning: the one that we have, if its only name is the one that we gave it."""
        if self._fd != _NO_DRAFT:
            about = os.stat(self._path)  # noqa: PTH116 - once per job
            if about.st_ino == self._inode and about.st_nlink == 1:
                os.lseek(self._fd, 0, os.SEEK_SET)
                return self._fd
            self.close()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._path, self._inode = path, os.fstat(self._fd).st_ino
        return self._fd

    def close(self) -> None:
        """No more reports; those that are written stay."""
        if self._fd == _NO_DRAFT:
            return
        os.close(self._fd)
        self._fd = _NO_DRAFT
        with contextlib.suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108 - as above


def make_places(state: Path) -> None:
    """Make the directories below `state` in which reports are, and in which they are written."""
    for name in (REPORTS, DRAFTS):
        (state / name).mkdir(mode=0o700, parents=True, exist_ok=True)


def clear_drafts(state: Path) -> None:
    """Remove what starters that died have left; one that lives takes another file."""
    for left in (state / DRAFTS).iterdir():
        left.unlink(missing_ok=True)


def store(directory: str, stored: StoredReport) -> None:
    """Put a report there; the same attempt's former one is replaced."""
    path = f"{directory}/{stored.id.name}"
    fd = os.open(path + _DRAFT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, _encode(stored))
    finally:
        os.close(fd)
    os.rename(path + _DRAFT, path)  # noqa: PTH104 - strings: once per job


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def load(directory: str, attempt: AttemptId) -> StoredReport | None:
    """The final report of an attempt, if it was written."""
    try:
        return _decode((Path(directory) / attempt.name).read_bytes())
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def load_all(directory: str) -> Iterator[StoredReport]:
    """All reports that wait; drafts of starters that died writing them are removed."""
    for path in sorted(Path(directory).iterdir()):
        if path.name.endswith(_DRAFT):
            path.unlink(missing_ok=True)
            continue
        with contextlib.suppress(msgspec.MsgspecError, FileNotFoundError):
            yield _decode(path.read_bytes())


def forget(directory: str, attempt: AttemptId) -> None:
    """Remove a report that is recorded."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{directory}/{attempt.name}")  # noqa: PTH108 - once per job
