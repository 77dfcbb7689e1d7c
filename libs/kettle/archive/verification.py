"""Checks all archives against their manifests and the table log.archive."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from kettle.archive.errors import DamagedArchiveError
from kettle.archive.manifest import NAME, directory_of, read_manifest
from kettle.archive.reader import FileArchives
from kettle.archive.report import Problem, Verification
from kettle.storage.archived_pieces import Piece, piece_of
from kettle.storage.database import Database
from kettle.storage.queries import QUERIES


async def verify(
    database: Database,
    directory: Path,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Verification:
    """
    Hash every file that the log relies on, and compare the manifests with the database.

    Args:
        database: the database with the log.
        directory: the archive directory.
        progress: called with the bytes that were hashed and those of all files.

    A file that was found equal to what was written holds the events that were in the database then: their hash was
    compared before they were dropped.
    """
    rows = await database.run(lambda c: c.fetch(QUERIES["archived_everywhere"]))
    pieces = [piece_of(row) for row in rows]
    total = sum(file.bytes for piece in pieces for file in (piece.events, piece.streams))
    found = Verification(pieces=len(pieces))
    archives = FileArchives(directory)
    before: Piece | None = None
    for piece in pieces:
        for sentence in _entry(directory, piece, before):
            found.problems.append(
                Problem(shard=piece.shard, file=f"{directory_of(piece.shard)}/{NAME}", sentence=sentence)
            )
        for file in (piece.events, piece.streams):
            try:
                await asyncio.to_thread(archives.verified, piece, file)
            except DamagedArchiveError as error:
                found.problems.append(Problem(shard=piece.shard, file=file.path, sentence=str(error)))
            found.files += 1
            found.bytes += file.bytes
            progress(found.bytes, total)
        before = piece
    return found


def _entry(directory: Path, piece: Piece, before: Piece | None) -> list[str]:
    """What is wrong with what the manifest and the database say about a piece."""
    problems: list[str] = []
    follows = before.last_position + 1 if before is not None and before.shard == piece.shard else 1
    if piece.first_position != follows:
        problems.append(f"{piece} does not begin at position {follows}")
    try:
        entry = read_manifest(directory, piece.shard).piece(piece.piece)
    except DamagedArchiveError as error:
        return [*problems, str(error)]
    if entry != piece:
        what = "does not name" if entry is None else "says something else than the database about"
        problems.append(f"the manifest {what} {piece}; the database is right")
    return problems
