"""Automatic archiving, which a service runs."""

import asyncio
import datetime as dt
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from kettle.archive.archiver import archive
from kettle.archive.errors import ArchiverBusyError
from kettle.archive.parquet import arrow
from kettle.eventsourcing.log import LogError
from kettle.storage.database import Database

INTERVAL_S: Final = 3600.0

_log = logging.getLogger(__name__)


async def keep_archived(
    databases: Sequence[Database], directory: Path, *, retention_days: float, interval: float = INTERVAL_S
) -> NoReturn:
    """
    Archive events older than `retention_days` in some databases, every `interval` seconds, without end.

    A projection may keep its cursor in any of them.

    Failures are logged and tried again: events that stay in the database are no reason to stop a service.

    Raises:
        ArchiveError: at once, if pyarrow is not installed.
    """
    arrow()
    while True:
        limit = dt.datetime.now(dt.UTC) - dt.timedelta(days=retention_days)
        for database in databases:
            await _archive_what_is_old(database, directory, limit, databases)
        await asyncio.sleep(interval)


async def _archive_what_is_old(
    database: Database, directory: Path, limit: dt.datetime, cursors: Sequence[Database]
) -> None:
    try:
        report = await archive(database, directory, older_than=limit, cursors=cursors)
    except ArchiverBusyError as error:
        _log.info("not archived: %s", error)
    except LogError as error:
        _log.error("not archived: %s", error)
    else:
        for shard in report.shards:
            if shard.kept in {"needed", "read"}:
                _log.warning("%s: %s", shard.shard, shard.because)
