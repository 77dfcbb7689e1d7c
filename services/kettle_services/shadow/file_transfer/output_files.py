"""Putting the results of jobs where their owners want them: whole or not at all."""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO, Final

from kettle.transfer.submit_side_paths import STDERR, STDOUT, destination
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.ads import Ad
from kettle_wire.worker_reports import OutputFile

PIECE: Final = 512 * 1024
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_DEVICE: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

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
            places.refuse_own(path)
            await write(path, files, fetch, mark)
            await asyncio.sleep(0)  # of very many small files, others wait for one only
        except OSError as error:
            raise OutputError(path, error) from error


async def write(path: Path, files: list[OutputFile], fetch: Fetch, mark: str) -> None:
    """
    Write the bytes of files, one after the other, as one file, which appears when it is complete. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        with os.fdopen(_device(path), "wb") as sink:
            await _copy(files, fetch, sink)
        return
    draft = path.with_name(f".{path.name}.{mark}")
    mode = files[0].mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR
    try:
        with os.fdopen(os.open(draft, _DRAFT, mode), "wb") as sink:
            await _copy(files, fetch, sink)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _device(path: Path) -> int:
    """A device is written to, not replaced; a pipe would keep us until somebody reads it."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not path.is_char_device():
        raise OSError(errno.EINVAL, "it is neither a regular file nor a character device")
    return os.open(path, _DEVICE)


async def _copy(files: list[OutputFile], fetch: Fetch, sink: BinaryIO) -> None:
    for file in files:
        if file.data is not None:
            sink.write(file.data)
            continue
        async for piece in fetch(file):
            await asyncio.to_thread(sink.write, piece)
