"""Where a backup is written until it is complete: beside its directory, by one process at a time."""

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kettle.backup.errors import BackupError

_LOCK: Final = ".lock"


@contextmanager
def stage_for(directory: Path) -> Generator[Path]:
    """
    A directory that only its owner can enter; it is gone in the end, unless `complete` has given it its name.

    What somebody who was killed has left there goes first.

    Raises:
        BackupError: another process writes a backup there, or another account has made the directory.
        OSError: it cannot be made.
    """
    stage = directory.with_name(f".{directory.name}.partial")
    try:
        stage.mkdir(mode=0o700)
    except FileExistsError:
        if stage.lstat().st_uid != os.geteuid():
            raise BackupError(
                f"{stage} belongs to another account: remove it, or name another directory"
            ) from None
    fd = os.open(stage / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(fd) or not _is(stage / _LOCK, fd):
            raise BackupError(
                f"another backup is being written to {directory}: wait for its end, or name another directory"
            )
        try:
            stage.chmod(0o700)
            for left in stage.iterdir():
                if left.name != _LOCK:
                    left.unlink()
            yield stage
        finally:
            if _is(stage / _LOCK, fd):
                shutil.rmtree(stage, ignore_errors=True)
    finally:
        os.close(fd)


def complete(stage: Path, directory: Path) -> None:
    """Give what was written its name; raises OSError."""
    stage.rename(directory)
    (directory / _LOCK).unlink()


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system of a server that knows no locks: nobody can be told from anybody there
    return True


def _is(path: Path, fd: int) -> bool:
    """Whether it is the name of an open file; who had it before may have given it another one."""
    try:
        return path.stat().st_ino == os.fstat(fd).st_ino
    except FileNotFoundError:
        return False
