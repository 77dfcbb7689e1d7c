"""Putting the results of jobs where their owners want them: whole or not at all."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO, Final

from kettle.shadow.domain.files import STDERR, STDOUT, destination
from kettle.wire.ads import Ad
from kettle.wire.work import OutputFile

TRANSFER_OUTPUT_ERROR: Final = 12
PIECE: Final = 512 * 1024

Fetch = Callable[[OutputFile], AsyncIterator[bytes]]
"""Reads a file that did not fit into the report, piece by piece."""


class OutputError(Exception):
    """A result cannot be written; `errno` says why."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"Transfer output files failure at the access point: writing {path} failed: {error.strerror}"
        )
        self.errno = error.errno or 0


async def place(ad: Ad, outputs: list[OutputFile], fetch: Fetch, *, mark: str) -> None:
    """Write the results of one attempt; `mark` keeps unfinished files of different attempts apart. Raises `OutputError`."""
    targets: dict[Path, list[OutputFile]] = {}
    for output in sorted(outputs, key=lambda o: (o.name == STDERR, o.name != STDOUT)):
        target = destination(ad, output.name)
        if target is not None:  # standard output and error may go to one file
            targets.setdefault(Path(target), []).append(output)
    for path, files in targets.items():
        try:
            await _write(path, files, fetch, mark)
        except OSError as error:
            raise OutputError(path, error) from error


async def _write(path: Path, files: list[OutputFile], fetch: Fetch, mark: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
        with path.open("wb") as sink:
            await _copy(files, fetch, sink)
        return
    draft = path.with_name(f".{path.name}.{mark}")
    mode = files[0].mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as sink:
            await _copy(files, fetch, sink)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


async def _copy(files: list[OutputFile], fetch: Fetch, sink: BinaryIO) -> None:
    for file in files:
        if file.data is not None:
            sink.write(file.data)
            continue
        async for piece in fetch(file):
            await asyncio.to_thread(sink.write, piece)
