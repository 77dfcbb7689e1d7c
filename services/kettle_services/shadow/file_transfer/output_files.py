"""Putting the results of jobs where their owners want them: whole or not at all."""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from kettle.transfer.submit_side_paths import STDERR, STDOUT, destination
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.ads import Ad
from kettle_wire.worker_reports import OutputFile

PIECE: Final = 512 * 1024
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DEVICE: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_DEVICES: Final = "/dev/"

Fetch = Callable[[OutputFile], AsyncIterator[bytes]]
"""Reads a file that did not fit into the report, piece by piece."""


class OutputError(Exception):
    """A result cannot be written; `errno` says why."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"Transfer output files failure at the access point: writing {path} failed: {error.strerror}"
        )
        self.errno = error.errno or 0


async def place(ad: Ad, outputs: list[OutputFile], fetch: Fetch, *, places: FileAccess, mark: str) -> None:
    """
    Write the results of one attempt; `mark` keeps unfinished files of different attempts apart. Raises `OutputError`.
    """
    targets: dict[Path, list[OutputFile]] = {}
    for output in sorted(outputs, key=lambda o: (o.name == STDERR, o.name != STDOUT)):
        target = destination(ad, output.name)
        if target is not None:  # standard output and error may go to one file
            targets.setdefault(Path(target), []).append(output)
    for path, files in targets.items():
        try:
            if files[0].directory:
                places.act("make", path, partial(_make, path, places))
            else:
                await write(path, files, fetch, mark, places=places)
            await asyncio.sleep(0)  # of very many small files, others wait for one only
        except OSError as error:
            raise OutputError(path, error) from error


def _make(path: Path, places: FileAccess) -> None:
    """An empty directory of a job's results, if it is not there."""
    with places.directory(str(path), make=True) as (directory, name):
        try:
            os.mkdir(name, dir_fd=directory)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(name, dir_fd=directory).st_mode):
                raise


async def write(path: Path, files: list[OutputFile], fetch: Fetch, mark: str, *, places: FileAccess) -> None:
    """
    Write the bytes of files, one after the other, as one file, which appears when it is complete. Raises OSError.
    """
    mode = files[0].mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR
    draft = places.act("write", path, lambda: _Draft.of(path, mark, mode, places))
    try:
        with os.fdopen(draft.fd, "wb") as sink:
            await _copy(files, fetch, lambda data: places.act("", path, lambda: sink.write(data)))
            places.act("", path, sink.flush)
        places.act("complete", path, draft.complete)
    except BaseException:
        places.act("give up", path, draft.give_up)
        raise
    finally:
        draft.close()


class _Draft:
    """A file that is being written beside its place; all but `close` is done with the owner's rights."""

    def __init__(self, fd: int, directory: int = -1, name: str = "", mark: str = "") -> None:
        self.fd: Final = fd
        self._directory = directory
        """-1: it is a device, which is written to and not replaced."""
        self._name = name
        self._draft = f".{name}.{mark}"

    @classmethod
    def of(cls, path: Path, mark: str, mode: int, places: FileAccess) -> "_Draft":
        if str(path).startswith(_DEVICES) and (device := _device(str(path))) is not None:
            return cls(device)
        with places.directory(str(path), make=True, quick=True) as (directory, name):
            if (device := _device(name, directory)) is not None:
                return cls(device)
            draft = f".{name}.{mark}"
            with suppress(FileNotFoundError):  # of an earlier try, or of somebody who is not to read this one
                os.unlink(draft, dir_fd=directory)
            fd = os.open(draft, _DRAFT, mode, dir_fd=directory)
            return cls(fd, os.dup(directory), name, mark)

    def complete(self) -> None:
        """Have it in its place."""
        if self._directory >= 0:
            os.rename(self._draft, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def give_up(self) -> None:
        """Remove it."""
        if self._directory >= 0:
            with suppress(FileNotFoundError):
                os.unlink(self._draft, dir_fd=self._directory)

    def close(self) -> None:
        """Hold its directory no longer."""
        if self._directory >= 0:
            os.close(self._directory)


def _device(path: str, directory: int | None = None) -> int | None:
    """
    A device is written to, not replaced; a pipe would keep us until somebody reads it.  None: a file may be put there.
    """
    try:
        kind = os.stat(path, dir_fd=directory).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(kind):
        return None
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISCHR(kind):
        raise OSError(errno.EINVAL, "it is neither a regular file nor a character device")
    return os.open(path, _DEVICE, dir_fd=directory)


async def _copy(files: list[OutputFile], fetch: Fetch, put: Callable[[bytes], object]) -> None:
    for file in files:
        if file.data is not None:
            put(file.data)
            continue
        async for piece in fetch(file):
            await asyncio.to_thread(put, piece)
