"""
Files that jobs name on the access point: only regular ones are read, and none that belongs to the pool itself.

The shadow has the rights of its account, and those are all that a job of the account's owner needs; the pool's
credentials and records lie in a directory of the same account, and no job has any business there.
"""

import errno
import os
import pwd
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class OwnFileError(PermissionError):
    """A job names a file of the pool."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "it lies in the pool's own directory")


def account() -> str:
    """The login name of the account that this process acts as, or its number if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


class FileAccess:
    """Where jobs have no business."""

    def __init__(self, home: Path, *, spools: Sequence[Path] = (), own: Path | None = None) -> None:
        """
        `spools`: where jobs' own files lie in the pool's directory; they may be read there.  `own`: the directory of one
        job in it, with which that may do what it likes.
        """
        self._home = os.path.realpath(home)
        self._spools = tuple(f"{os.path.realpath(spool)}/" for spool in spools)
        self._own = f"{os.path.realpath(own)}/" if own is not None else None

    def of_job(self, own: Path, readable: Path) -> "FileAccess":
        """
        Access for a job that has a directory of its own there, and something that may be read beside it.
        """
        return FileAccess(Path(self._home), spools=[*map(Path, self._spools), readable], own=own)

    def refuse_own(self, path: Path, *, but_spool: bool = False) -> None:
        """
        Raises OwnFileError if a path leads, all links followed, into the pool's own directory; OSError if it is none.
        """
        try:
            real = os.path.realpath(path)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from error
        if but_spool and real.startswith(self._spools):
            return
        self._refuse(real)

    def refuse_own_place(self, place: int) -> None:
        """Check an open file in the same way, no matter where its name leads meanwhile."""
        self._refuse(str(Path(f"/proc/self/fd/{place}").readlink()))

    def _refuse(self, real: str) -> None:
        if self._own is not None and f"{real}/".startswith(self._own):
            return
        if f"{real}/".startswith(f"{self._home}/"):
            raise OwnFileError

    def lies_in(self, path: Path) -> bool:
        """Whether the pool's own directory is this one, or lies in it; raises OSError."""
        return f"{self._home}/".startswith(f"{os.path.realpath(path).rstrip('/')}/")

    def open_input(self, path: Path) -> int:
        """
        A descriptor of a regular file; raises OSError or, if it is not a path at all, ValueError.

        The file is checked before it is opened, because opening a device may have side effects, and again afterwards,
        because it may have been replaced meanwhile; a pipe without a writer would block without end.
        """
        _refuse_special(path.stat())
        fd = os.open(path, _FLAGS)
        try:
            _refuse_special(os.fstat(fd))
            self.refuse_own(Path(f"/proc/self/fd/{fd}"), but_spool=True)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _refuse_special(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
