"""
Final reports on disk: a starter puts one there before it says a word, and it stays until somebody has recorded it.

A report appears whole or not at all (written aside, then renamed).  It is not forced to the disk's surface: it survives
the death of every process, not of the machine; after that the attempt counts as lost, and the job runs again.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.attempt import AttemptId, StoredReport

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(StoredReport).decode
_DRAFT: Final = ".draft"


def store(directory: str, stored: StoredReport) -> None:
    """
    Put a report there; the same attempt's former one is replaced.
    """
    path = f"{directory}/{stored.id.name}"
    fd = os.open(path + _DRAFT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(_encode(stored))
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
    os.rename(path + _DRAFT, path)  # noqa: PTH104 - strings: once per job


def load(directory: str, attempt: AttemptId) -> StoredReport | None:
    """
    The final report of an attempt, if it was written.
    """
    try:
        return _decode((Path(directory) / attempt.name).read_bytes())
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def load_all(directory: str) -> Iterator[StoredReport]:
    """
    All reports that wait; drafts of starters that died writing them are removed.
    """
    for path in sorted(Path(directory).iterdir()):
        if path.name.endswith(_DRAFT):
            path.unlink(missing_ok=True)
            continue
        with contextlib.suppress(msgspec.MsgspecError, FileNotFoundError):
            yield _decode(path.read_bytes())


def forget(directory: str, attempt: AttemptId) -> None:
    """
    Remove a report that is recorded.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{directory}/{attempt.name}")  # noqa: PTH108 - once per job
