"""
Appending to a submitter's log file, which many jobs and many programs share.

An event is there as a whole or not at all: one write to the end of the file, under the lock that HTCondor's programs
take too.  Calls block on the disk: use a thread.
"""

import fcntl
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kettle.userlog.framing import ENDS

_MODE: Final = 0o644
_END: Final = re.compile(rf"^(?:{'|'.join(re.escape(end) for end in ENDS.values())})\n", re.MULTILINE)


class UserLogError(Exception):
    """A log file cannot be appended to; nothing of the event was left in it."""

    def __init__(self, path: Path, reason: str, *, errno: int = 0) -> None:
        super().__init__(f"cannot write the job event log {path}: {reason}")
        self.path = path
        self.errno = errno


class Appender:
    """Appends events to files. A missing file is made, a missing directory is an error."""

    def __init__(self, *, fsync: bool = False) -> None:
        self._fsync = fsync

    def append(self, path: Path, text: str, *, owner: str = "") -> None:
        """Add `text`, one or more whole events, to a file of `owner`'s. Raises UserLogError."""
        del owner  # who is somebody else's appender decides what that means
        data = text.encode()
        with self._opened(path, os.O_WRONLY | os.O_APPEND, make=True) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                if path != Path(os.devnull):
                    raise UserLogError(path, "it is not a regular file")
                return
            fcntl.lockf(fd, fcntl.LOCK_EX)  # closing unlocks
            size = os.fstat(fd).st_size
            try:
                written = os.write(fd, data)
            except OSError:
                os.ftruncate(fd, size)
                raise
            if written != len(data):
                os.ftruncate(fd, size)
                raise UserLogError(path, f"no room for more than {written} of {len(data)} bytes")
            if self._fsync:
                os.fsync(fd)

    def tail(self, path: Path, *, owner: str = "", limit: int = 32 << 20) -> str:
        """The last `limit` bytes of a file, beginning with a whole event; empty if there is no file."""
        del owner
        try:
            with self._opened(path, os.O_RDONLY) as fd:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return ""
                start = max(0, os.fstat(fd).st_size - limit)
                data = bytearray()
                while piece := os.pread(fd, 1 << 20, start + len(data)):
                    data += piece
        except UserLogError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return ""
            raise
        text = data.decode(errors="replace")
        if not start:
            return text
        end = _END.search(text)
        return text[end.end() :] if end else ""

    @contextmanager
    def _opened(self, path: Path, flags: int, *, make: bool = False) -> Generator[int, None, None]:
        # Non-blocking: a named pipe that nobody reads must not stop the log of everybody else.
        flags |= os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            fd = self._made(path, flags) if make and not path.exists() else self.open(path, flags)
            try:
                yield fd
            finally:
                os.close(fd)
        except OSError as error:
            raise UserLogError(path, error.strerror or str(error), errno=error.errno or 0) from error

    def _made(self, path: Path, flags: int) -> int:
        fd = self.open(path, flags | os.O_CREAT, _MODE)
        if os.fstat(fd).st_size == 0:
            os.fchmod(fd, _MODE)  # a service's own umask is stricter than what other readers of a log expect
        return fd

    def open(self, path: Path, flags: int, mode: int = _MODE) -> int:
        """How files are opened.  Raises OSError."""
        return os.open(path, flags, mode)
