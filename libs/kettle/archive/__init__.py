"""
Old events: whole pieces of the log as Parquet files, written, checked by hash, dropped from the database, and read back.

    report = await archive(database, directory, older_than=moment)           what `kettle log archive` does
    found = await verify(database, directory)                                what `kettle log archive --verify` does
    await keep_archived(databases, directory, retention_days=90)             a service's loop
    log = PgLog(database, archives=FileArchives(directory))                  the whole log, wherever its events are
    with LogFiles(directory, "schedd.simulated") as files: ...               a log that never was in a database
    async for frame in archived_frames(directory, shard): ...                read back from its files alone
    log = ArchivedLog(directory)                                             the same for those who read a log

A piece that is named in the table log.archive is in files alone; one transaction puts it there and drops its table.
pyarrow (`kettle[archive]`) is imported when a file is written or read.

Errors: see `kettle.archive.errors`.
"""

from kettle.archive.archiver import archive
from kettle.archive.errors import ArchiveError, ArchiverBusyError, DamagedArchiveError
from kettle.archive.log_reader import ArchivedLog, archived_frames, archived_shards
from kettle.archive.log_writer import LogFiles
from kettle.archive.reader import FileArchives
from kettle.archive.report import (
    ArchivedPiece,
    Problem,
    Progress,
    Report,
    ShardReport,
    SlowestCursor,
    Verification,
)
from kettle.archive.retention import keep_archived
from kettle.archive.verification import verify

__all__ = [
    "ArchiveError",
    "ArchivedLog",
    "ArchivedPiece",
    "ArchiverBusyError",
    "DamagedArchiveError",
    "FileArchives",
    "LogFiles",
    "Problem",
    "Progress",
    "Report",
    "ShardReport",
    "SlowestCursor",
    "Verification",
    "archive",
    "archived_frames",
    "archived_shards",
    "keep_archived",
    "verify",
]
