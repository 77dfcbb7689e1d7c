"""
What a job has in place of directories of the machine, such as `/tmp`: directories of its own, in its sandbox.

They belong to us, as the machine's do, so that a job cannot exchange what is mounted, or what is mounted inside.
Between two jobs of one starter they wait in the directory of the sandboxes: see `kettle.execution.processes.kept_namespaces`.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

PRIVATE: Final = ".private"
"""Their place in the sandbox; a name that jobs give to directories of their own, as `tmp`, would be taken from them."""

_SPARES: Final = ("private", "sandbox")
"""What is kept for the next job of a starter, with the process id of the starter behind it."""
_ANYBODY: Final = stat.S_ISVTX | 0o777
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(sandbox: str, directories: Sequence[str], *, shown: str) -> int:
    """
    Make those that are missing, and open their place; in one that would hide `shown` there is a directory for it.

    Raises OSError: also if the job has put something else there.
    """
    path = f"{sandbox}/{PRIVATE}"
    with suppress(FileExistsError):
        os.mkdir(path, 0o755)  # noqa: PTH102
    place = os.open(path, _OPEN)
    try:
        _check(place)
        for directory in directories:
            name = name_of(directory)
            try:
                os.mkdir(name, 0o755, dir_fd=place)
            except FileExistsError:
                continue
            own = f"/proc/self/fd/{place}/{name}"
            if is_below(shown, directory):
                os.makedirs(f"{own}/{posixpath.relpath(shown, directory)}", 0o755)  # noqa: PTH103
            os.chmod(own, _ANYBODY)  # noqa: PTH101
    except BaseException:
        os.close(place)
        raise
    return place


def keep(sandbox: str, place: tuple[int, int]) -> bool:
    """
    Take the directories at a place, which is a device and an inode, out of a sandbox; false: the job has moved them.
    """
    path = f"{sandbox}/{PRIVATE}"
    about = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - hot
    if (about.st_dev, about.st_ino) != place:
        return False
    os.rename(path, spare(posixpath.dirname(sandbox)))  # noqa: PTH104 - hot
    return True


def give(sandbox: str) -> None:
    """Put those that were kept into another sandbox; raises FileNotFoundError: they are gone."""
    os.rename(spare(posixpath.dirname(sandbox)), f"{sandbox}/{PRIVATE}")  # noqa: PTH104 - hot


def release(execute: str) -> None:
    """Remove those that wait for another job of this process."""
    _remove(spare(execute))


def remove_spares(execute: str) -> None:
    """Remove all that is kept, also by starters that died; one that lives makes others."""
    with suppress(FileNotFoundError):
        for name in os.listdir(execute):  # noqa: PTH208 - short
            if name.partition("_")[0] in _SPARES:
                _remove(f"{execute}/{name}")


def name_of(directory: str) -> str:
    """What the job's own one is called in their place: no two directories have one name."""
    return directory.strip("/").replace("%", "%25").replace("/", "%2F")


def is_below(path: str, directory: str) -> bool:
    """Whether a path is in the directory, or is the directory."""
    return path == directory or path.startswith(f"{directory}/")


def spare(execute: str, what: str = "private") -> str:
    """Where something is kept for the next job of this process."""
    return f"{execute}/{what}_{os.getpid()}"


def _check(place: int) -> None:
    if os.fstat(place).st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "the job has exchanged its directories")


def _remove(path: str) -> None:
    """They are empty, but for the way to the directory of the sandboxes."""
    with suppress(OSError):
        for place, _, _ in os.walk(path, topdown=False):
            os.rmdir(place)  # noqa: PTH106
