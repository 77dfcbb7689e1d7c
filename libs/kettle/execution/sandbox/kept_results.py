"""
Results that do not fit into the report: where they wait in the sandbox until they are fetched by their names.

One that is a plain file at its own name stays as it is.  Of any other there is a copy in a directory of ours: what a link leads
to, and what comes back under a name that is something else's in the sandbox.  Nothing that the job made is replaced.
"""

import hashlib
import os
import posixpath
import shutil
from contextlib import suppress
from typing import Final

from kettle.execution.sandbox.safe_open import open_beneath

DIRECTORY: Final = ".kept_results"
"""Where the copies are; no part of what a job has made."""
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def keep(sandbox: str, path: str, name: str, fd: int) -> None:
    """
    Have the file that is open, and was opened by `path`, where it is found by its name.  With the job's rights, and while no
    process of the job lives.

    Raises OSError: there is no room for a copy, or the job has put something else into the place of our directory.
    """
    copy = _copy_of(name)
    if os.path.realpath(path) == posixpath.join(os.path.realpath(sandbox), name):
        with suppress(FileNotFoundError, NotADirectoryError):  # of a checkpoint before, when a link led there
            os.unlink(f"{sandbox}/{DIRECTORY}/{copy}")  # noqa: PTH108
        return
    with suppress(FileExistsError):
        os.mkdir(f"{sandbox}/{DIRECTORY}", 0o700)  # noqa: PTH102
    directory = os.open(f"{sandbox}/{DIRECTORY}", _OPEN)
    draft = f"{copy}.draft"
    try:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=directory)
        with (
            open(fd, "rb", closefd=False) as source,
            open(os.open(draft, _NEW, 0o600, dir_fd=directory), "wb") as target,  # noqa: PTH123
        ):
            shutil.copyfileobj(source, target, 1 << 20)
        os.replace(draft, copy, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with suppress(OSError):
            os.unlink(draft, dir_fd=directory)
        raise
    finally:
        os.close(directory)


def open_kept(sandbox: str, name: str) -> int:
    """
    A descriptor of a result for reading.  No link is followed, wherever it leads.

    Raises OSError: there is no such file, or a link is on the way.
    """
    try:
        return open_beneath(sandbox, f"{DIRECTORY}/{_copy_of(name)}")
    except (FileNotFoundError, NotADirectoryError):  # also of a starter that made no copies here
        return open_beneath(sandbox, name)


def read_kept(sandbox: str, name: str, offset: int, length: int) -> bytes:
    """A piece of a result.  Raises OSError as `open_kept`, and for an offset before its first byte."""
    fd = open_kept(sandbox, name)
    try:
        return os.pread(fd, max(0, length), offset)
    finally:
        os.close(fd)


def _copy_of(name: str) -> str:
    """Names are paths, and may be longer than that of a file."""
    return hashlib.sha256(name.encode()).hexdigest()
