"""
Keeps projections near the head of the log, without end. A projection that stops does not stop the others.
"""

import logging
from collections.abc import Sequence
from typing import Final

from kettle.bus.ports import Bus
from kettle.eventsourcing.log import LogUnavailableError, ReadableLog
from kettle.eventsourcing.projection import Progress, StoppedError, UnreadableError, run_projection
from kettle.projections.rebuilding import RebuildError, prepare
from kettle.projections.stored_projection import StoredProjection
from kettle.retry.backoff import steady
from kettle.retry.loop import Waits, attempt
from kettle.storage import Database, PgCursors
from kettle_wire.subjects import Subjects

REPAIRED_S: Final = 2.0
"""A projection that stopped is looked at so often: whether it was rebuilt, or its error taken away."""

_log = logging.getLogger(__name__)


class ProjectionFailure:
    """The stopped projections, and the reasons: a service with any of them is not ready."""

    def __init__(self) -> None:
        self._stopped: dict[tuple[str, str], str] = {}

    def __bool__(self) -> bool:
        return bool(self._stopped)

    @property
    def count(self) -> int:
        """How many there are, each shard counted."""
        return len(self._stopped)

    def note(self, projection: str, shard: str, why: str) -> None:
        """
        Report a failure, once for each cause; shard "": the projection has no tables that this release can use.
        """
        if self._stopped.get((projection, shard)) != why:
            _log.critical("%s", why, extra={"projection": projection, "shard": shard})
        self._stopped[projection, shard] = why

    def over(self, projection: str, shard: str) -> None:
        """It goes on."""
        if self._stopped.pop((projection, shard), None) is not None:
            _log.warning("the projection goes on", extra={"projection": projection, "shard": shard})

    def of(self, projection: str, shard: str = "") -> str | None:
        """Why a projection has stopped; None: it has not."""
        return self._stopped.get((projection, shard))


async def prepared(
    projection: StoredProjection, database: Database, logs: Sequence[ReadableLog], trouble: ProjectionFailure
) -> bool:
    """
    Make sure that there are tables of this release, rebuilt where that is needed; False if that failed, which is noted.
    """
    try:
        done = await prepare(projection, database, logs)
    except (RebuildError, UnreadableError) as error:
        trouble.note(projection.name, "", str(error))
        return False
    trouble.over(projection.name, "")
    if done is not None and done.events:
        _log.info(
            "made the tables of %s from %d events in %.1f s", done.projection, done.events, done.seconds
        )
    return True


async def follow(
    projection: StoredProjection,
    shard: str,
    *,
    database: Database,
    log: ReadableLog,
    bus: Bus,
    subjects: Subjects,
    progress: Progress,
    trouble: ProjectionFailure,
) -> None:
    """
    Apply the frames of one shard without end; when an event cannot be applied, wait until that is repaired, and
    continue.

    Raises:
        SupersededError: the tables were rebuilt by another release.
    """
    cursors = PgCursors(database)
    waits = Waits()
    while True:
        stopped: list[BaseException] = []
        try:
            await attempt(
                run_projection(
                    projection, shard, log=log, bus=bus, cursors=cursors, subjects=subjects, progress=progress
                )
            )
        except* LogUnavailableError as away:
            # Whether the last frames were committed is unknown: the cursor, read again, knows.
            _log.warning("%s waits for the database of %s: %s", projection.name, shard, away.exceptions[0])
        except* StoppedError as group:
            stopped.extend(group.exceptions)
        for error in stopped:
            trouble.note(projection.name, shard, str(error))
            again = Waits(steady(REPAIRED_S))
            while await cursors.stopped(projection.name, projection.version, shard) is not None:
                await again.wait()
            trouble.over(projection.name, shard)
        await waits.wait()
