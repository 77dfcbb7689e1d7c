"""
What a job leaves outside of its sandbox: the next job in the account of its slot must not find it.

Files below directories that everybody may write to, and segments, semaphores and queues of System V, belong to an
account and outlive its processes.
The account of a slot has one job at a time, so all that belongs to it is that job's.
"""

import ctypes
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from kettle.execution.attempts.job_spec import Account, Isolation
from kettle.execution.sandbox.directory import remove_any_tree

SHARED_DIRECTORIES: Final = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")  # noqa: S108 - we only remove there
_OF_SHARED_MEMORY: Final = ("/dev/shm", "/dev/mqueue")  # noqa: S108 - as above
_NOTHING: Final = Isolation()
_SETTLED_NS: Final = 1_000_000_000
"""The kernel's clock of files is coarse: two changes in quick succession may have one time."""
_REMOVE: Final = 0
"""IPC_RMID."""
_libc: Final = ctypes.CDLL(None, use_errno=True)


class AccountRemains:
    """
    What is to be removed for an account.

    It is made when the job begins: a directory to which nobody has written since then needs no look at its end.
    """

    def __init__(
        self, account: Account, directories: Sequence[str] = SHARED_DIRECTORIES, *, begins: bool = True
    ) -> None:
        """`begins`: the job does; else it has run, and each directory is looked at."""
        self._uid = account.uid
        self._directories = directories
        settled = time.time_ns() - _SETTLED_NS
        self._written = {path: _settled(path, settled) if begins else None for path in directories}

    def remove(self, hidden: Isolation = _NOTHING) -> None:
        """
        Remove all of it, but where the account had something of its own instead: nothing of it is there.

        Raises OSError for what cannot be removed, after all else is.
        """
        if not hidden.shared_memory:
            _remove_system_v(self._uid)
        failures: list[OSError] = []
        for path in self._directories:
            if path in hidden.directories or (hidden.shared_memory and path in _OF_SHARED_MEMORY):
                continue
            then = self._written[path]
            if then is None or _written(path) != then:
                failures += _remove_files(path, self._uid)
        if failures:
            raise failures[0]


def remains_of(account: Account | None) -> AccountRemains | None:
    """
    What is to be removed after the job that begins; None: not all that belongs to its account is the job's.
    """
    return None if account is None or account.home else AccountRemains(account)


def _settled(path: str, before: int) -> int | None:
    """When it was last written to, if that is so long ago that another time would differ."""
    written = _written(path)
    return written if written is not None and written < before else None


def _written(path: str) -> int | None:
    """When something was last created or removed in a directory; None: there is none."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - hot
    except OSError:
        return None


def _remove_files(path: str, uid: int) -> list[OSError]:
    """Remove what belongs to the account in a directory; what could not be removed, as errors."""
    failures: list[OSError] = []
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        with os.scandir(directory) as entries:
            own = list(owned(entries, uid))
        for name, is_directory in own:
            try:
                if is_directory:
                    remove_any_tree(name, where=directory)
                else:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=directory)
            except OSError as error:
                failures.append(error)
    finally:
        os.close(directory)
    return failures


def owned(entries: Iterable[os.DirEntry[str]], uid: int) -> Iterator[tuple[str, bool]]:
    """
    The names of those entries that belong to an account, and whether each is a directory.

    Everybody removes files there at any time: an entry that is gone is skipped, else it would hide the account's.
    """
    for entry in entries:
        with suppress(FileNotFoundError):
            if entry.stat(follow_symlinks=False).st_uid == uid:
                yield entry.name, entry.is_dir(follow_symlinks=False)


def _remove_system_v(uid: int) -> None:
    """Remove the account's shared memory, semaphores and message queues."""
    for found in _owned("shm", b"shmid", uid):
        _libc.shmctl(found, _REMOVE, None)
    for found in _owned("sem", b"semid", uid):
        _libc.semctl(found, 0, _REMOVE)
    for found in _owned("msg", b"msqid", uid):
        _libc.msgctl(found, _REMOVE, None)


def _owned(kind: str, number: bytes, uid: int) -> list[int]:
    """The numbers of what belongs to the account, or was created by it."""
    with suppress(FileNotFoundError), open(f"/proc/sysvipc/{kind}", "rb") as file:  # noqa: PTH123 - hot
        heading = file.readline().split()
        columns = [heading.index(name) for name in (number, b"uid", b"cuid")]
        rows = [[int(row[column]) for column in columns] for row in map(bytes.split, file)]
        return [found for found, *owners in rows if uid in owners]
    return []
