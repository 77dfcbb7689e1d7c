"""
The event log of an access point (HTCondor's EVENT_LOG): one file that only this process writes, and that is rotated
when it is full.

Each file begins with event 008, which says how many events the files before it had.  So the files themselves tell how
many events were written, and repeated events after a crash are skipped by counting, in any form.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import Final, NamedTuple

from kettle.faults import fault_point
from kettle.userlog.appender import UserLogError
from kettle.userlog.events import Generic, LogEvent
from kettle.userlog.formats import Form, Format
from kettle.userlog.framing import Blocks, UserLogFormatError
from kettle.userlog.parsing import event_of
from kettle.userlog.rendering import render
from kettle.userlog.routed_lines import LogLine
from kettle_wire.jobs import JobId

_MODE: Final = 0o644
_HEADING: Final = re.compile(
    r"Global JobLog: ctime=(\d+) id=(\S+) sequence=(\d+) size=\d+ events=\d+ offset=(\d+) event_off=(\d+) .*"
)
_BEGINNINGS: Final = (b"0", b"<c>", b"{")
_LENGTH: Final = 256
"""Characters of a heading: it is written again in its place when the file is full."""


class _Begun(NamedTuple):
    """What the heading of a file says."""

    at: int
    identity: str
    sequence: int
    offset: int
    """Bytes of the files before it."""
    before: int
    """Events in them."""


class _Found(NamedTuple):
    """A file as it is."""

    begun: _Begun | None
    """None: it has no heading, or one of another program."""
    form: Form
    heading: int
    """Bytes of the first event."""
    events: int
    """Beside the heading."""
    size: int
    """Bytes of all whole events."""


class RotatingLog:
    """
    Takes the lines of frames; a sink for `follow`.  Blocks on the disk.

    `identity` is that of the cursor: a file with another one is of another log, and is put aside.
    `known` is how many lines were in the files when the cursor was saved; there may be more by now.
    Every method raises UserLogError; what it could not write is not in the file, and comes again from the cursor.
    """

    def __init__(
        self,
        path: Path,
        written: Format,
        *,
        identity: str,
        known: int,
        max_size: int = 1_000_000,
        rotations: int = 1,
        creator: str = "kettle",
        zone: tzinfo | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`max_size` in bytes, 0: no file is ever put aside; `rotations`: so many old ones are kept."""
        self._path = path
        self._written = written
        self._identity = identity
        self._max_size = max_size
        self._rotations = rotations
        self._creator = creator
        self._zone = zone
        self._clock = clock
        self._fd = -1
        self._size = 0
        self._events = 0
        self._heading_size = 0
        self._begun = _Begun(0, identity, 0, 0, known)
        self._told = known
        self._open(known)
        self._there = self._begun.before + self._events

    def write(self, lines: Sequence[LogLine]) -> None:
        """Append the next lines, but for those that are there already."""
        fault_point("event_log.before")
        new = lines[max(0, self._there - self._told) :]
        self._told += len(lines)
        with _failing(self._path):
            for texts in self._portions([line.text for line in new]):
                if self._is_full():
                    self._put_aside()
                    self._begin()
                self._append("".join(texts).encode())
                self._events += len(texts)
        self._there = max(self._there, self._told)
        fault_point("event_log.written")

    def sync(self) -> None:
        """What was written outlives the machine's end: before a cursor says that it is there."""
        with _failing(self._path):
            os.fsync(self._fd)

    def close(self) -> None:
        """Hold the file no longer."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _portions(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """What goes into one file: a file ends with the event that fills it."""
        portion: list[str] = []
        size = self._size
        for text in texts:
            portion.append(text)
            size += len(text.encode())
            if self._max_size and size >= self._max_size:
                yield portion
                portion, size = [], 0
        if portion:
            yield portion

    def _is_full(self) -> bool:
        return bool(self._max_size and self._events and self._size >= self._max_size)

    def _open(self, known: int) -> None:
        with _failing(self._path):
            found = _look(self._path)
            if found is None:
                self._begin_after(known)
                return
            self._take(found)
            is_ours = found.begun is not None and found.begun.identity == self._identity
            if not is_ours and not self._rotations:
                raise UserLogError(self._path, "it is the log of somebody else; move it away")
            # A log that lost its end has the wrong number: the next file begins with the right one.
            is_short = self._begun.before + self._events < known
            if not is_ours or is_short or found.form is not self._written.form:
                self._put_aside()
                self._begin_after(known)

    def _take(self, found: _Found) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY)
        os.ftruncate(self._fd, found.size)  # half an event is nobody's: it comes again
        self._size, self._events, self._heading_size = found.size, found.events, found.heading
        self._begun = found.begun or self._begun

    def _begin_after(self, known: int) -> None:
        """
        Begin a file; the one that was put aside last, if it is of this log, says how many events there were.
        """
        last = _look(self._aside()[0]) if self._rotations else None
        if last is not None and last.begun is not None and last.begun.identity == self._identity:
            begun = last.begun
            self._events, self._size = last.events, last.size
            self._begun = begun._replace(before=max(begun.before, known - last.events))
        else:
            self._begun, self._events, self._size = _Begun(0, self._identity, 0, 0, known), 0, 0
        self._begin()

    def _begin(self) -> None:
        """The next file, after that of which we have just taken leave."""
        last = self._begun
        self.close()
        self._begun = _Begun(
            at=int(self._clock()),
            identity=self._identity,
            sequence=last.sequence + 1,
            offset=last.offset + self._size,
            before=last.before + self._events,
        )
        self._size = self._events = 0
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._path, flags, _MODE)
        os.ftruncate(self._fd, 0)  # half a heading
        os.fchmod(self._fd, _MODE)  # as HTCondor's: who watches an access point is not always who runs it
        heading = self._heading()
        self._append(heading)
        self._heading_size = len(heading)
        self._sync_directory()
        fault_point("event_log.begun")

    def _put_aside(self) -> None:
        """
        Give the full file its last heading and another name; interrupted, it is done again from where it stood.
        """
        heading = self._heading()
        # Of another log, or one that was written in another way, we do not touch what is there.
        if self._begun.identity == self._identity and len(heading) == self._heading_size:
            place = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.pwrite(place, heading, 0)
                os.fsync(place)
            finally:
                os.close(place)
        fault_point("event_log.full")
        names = self._aside()
        if not names:
            self._path.unlink()
            return
        free = next((index for index, name in enumerate(names) if not name.exists()), len(names) - 1)
        for index in range(free, 0, -1):
            names[index - 1].replace(names[index])
            fault_point("event_log.shifted")
        self._path.replace(names[0])
        self._sync_directory()
        fault_point("event_log.aside")

    def _aside(self) -> list[Path]:
        """The names of full files, the youngest first."""
        if self._rotations == 1:
            return [self._path.with_name(f"{self._path.name}.old")]
        return [self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._rotations + 1)]

    def _heading(self) -> bytes:
        begun = self._begun
        said = (
            f"Global JobLog: ctime={begun.at} id={begun.identity} sequence={begun.sequence} size={self._size} "
            f"events={self._events} offset={begun.offset} event_off={begun.before} max_rotation={self._rotations} "
            f"creator_name=<{self._creator}>"
        )
        event = Generic(job=JobId(0, 0), at=begun.at, info=said.ljust(_LENGTH))
        return render(event, self._zone, self._written).encode()

    def _append(self, data: bytes) -> None:
        try:
            written = os.write(self._fd, data)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        if written != len(data):
            os.ftruncate(self._fd, self._size)
            raise UserLogError(self._path, f"no room for more than {written} of {len(data)} bytes")
        self._size += written

    def _sync_directory(self) -> None:
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextmanager
def _failing(path: Path) -> Generator[None]:
    try:
        yield
    except UserLogFormatError as error:
        raise UserLogError(path, f"there is a file that is no event log: {error}") from error
    except OSError as error:
        raise UserLogError(path, error.strerror or str(error), errno=error.errno or 0) from error


def _look(path: Path) -> _Found | None:
    """What is in a file; None if there is none, or no whole event. Raises OSError, UserLogFormatError."""
    try:
        place = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    with os.fdopen(place, "rb") as file:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if os.fstat(place).st_size and not file.peek(8).startswith(_BEGINNINGS):
            raise OSError(errno.EINVAL, "there is a file that is no event log")
        return _read(file)


def _read(file: Iterable[bytes]) -> _Found | None:
    framing = Blocks()
    first: tuple[_Begun | None, int] | None = None
    size = events = 0
    for line in file:
        if not line.endswith(b"\n") or (block := framing.take(line)) is None:
            continue
        size += block.size
        if first is None:
            first = _begun(event_of(block)), block.size
            events += first[0] is None
        else:
            events += 1
    if first is None:
        return None
    return _Found(first[0], framing.form or Form.CLASSIC, first[1], events, size)


def _begun(event: LogEvent) -> _Begun | None:
    found = _HEADING.fullmatch(event.info) if isinstance(event, Generic) else None
    if found is None:
        return None
    return _Begun(int(found[1]), found[2], int(found[3]), int(found[4]), int(found[5]))
