"""Reads archived pieces for the log. A file is hashed in full the first time that a process uses it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from kettle.archive.errors import DamagedArchiveError
from kettle.archive.manifest import sha256_of
from kettle.archive.parquet import read_events, read_stream
from kettle.storage.archived_pieces import EventRow, Piece, PieceFile

AT_ONCE: Final = 2_000
"""The number of rows that are handed on at once, so that other tasks run while they are decoded."""


class FileArchives:
    """
    See `Archives`: files below a directory, which is the same for all processes that read the log.

    Errors: ArchiveError when pyarrow is not installed, DamagedArchiveError when a file is not what it has to be.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._verified: dict[str, tuple[int, int, int]] = {}

    async def events(
        self, piece: Piece, *, after: tuple[int, int], until: int
    ) -> AsyncIterator[Sequence[EventRow]]:
        """See `Archives.events`."""
        path = await asyncio.to_thread(self.verified, piece, piece.events)
        groups = read_events(path, after=after, until=until)
        while rows := await asyncio.to_thread(next, groups, None):
            for start in range(0, len(rows), AT_ONCE):
                yield rows[start : start + AT_ONCE]

    async def stream(self, piece: Piece, stream: str) -> Sequence[EventRow]:
        """See `Archives.stream`."""

        def read() -> list[EventRow]:
            return read_stream(
                self.verified(piece, piece.events), self.verified(piece, piece.streams), stream
            )

        return await asyncio.to_thread(read)

    def verified(self, piece: Piece, file: PieceFile) -> Path:
        """
        The path of a file that has the hash that the log expects; blocks while it is hashed.

        Raises:
            DamagedArchiveError: it has not, or is not there.
        """
        path = self._directory / file.path
        try:
            status = path.stat()
            mark = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self._verified.get(file.sha256) == mark:
                return path
            found = sha256_of(path)
        except OSError as error:
            raise _missing(piece, path, file, str(error.strerror)) from error
        if found != file.sha256:
            raise _missing(piece, path, file, f"its SHA-256 is {found}")
        self._verified[file.sha256] = mark
        return path


def _missing(piece: Piece, path: Path, file: PieceFile, why: str) -> DamagedArchiveError:
    return DamagedArchiveError(
        f"{piece} is in the archive alone, and {path} cannot be used: {why}. Expected are {file.bytes} bytes with "
        f"SHA-256 {file.sha256}. Bring that file back from a copy, or set archive_directory to where the archive is."
    )
