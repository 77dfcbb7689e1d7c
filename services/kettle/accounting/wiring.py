"""How the parts of accounting hang together."""

import asyncio
import contextlib
import logging
from typing import Final

from kettle.accounting.queries import Answers
from kettle.accounting.settings import AccountingSettings
from kettle.accounting.tables import SQL, Tables
from kettle.bus.backoff import Backoff
from kettle.bus.ports import Bus, Served
from kettle.eventsourcing.log import LogUnavailableError
from kettle.eventsourcing.projection import Progress, run_projection
from kettle.runtime import Runtime
from kettle.runtime.joining import join_bus, join_log
from kettle.storage import PgCursors, PgLog
from kettle.storage.migrate import migrate
from kettle.wire.commands.accounting import QUERY_HISTORY, QUERY_USAGE
from kettle.wire.subjects import Subjects

VERSION: Final = "0.1.0"
_log: Final = logging.getLogger(__name__)
_QUEUES: Final = "schedd."


async def serve(rt: Runtime, settings: AccountingSettings) -> None:
    """Follow all queues, answer, until the process is asked to stop."""
    log = await join_log(rt, settings)
    await log.database.run(lambda c: migrate(c, component="accounting", directory=SQL))
    bus = await join_bus(rt, settings)
    subjects = Subjects(settings.pool)
    progress = Progress()
    new = asyncio.Event()
    answers = Answers(log.database, progress, settings, look=new.set)
    await bus.listen(
        subjects.notices("schedd"), lambda _subject, _data: new.set()
    )  # perhaps with a new queue
    rt.loop(_follow(log, bus, subjects, progress, settings, new), name="projection")
    await bus.serve(
        "accounting",
        settings.name,
        [Served(QUERY_HISTORY, answers.query_history), Served(QUERY_USAGE, answers.query_usage)],
        version=VERSION,
    )
    rt.ready()
    await rt.stopping.wait()


async def _follow(
    log: PgLog,
    bus: Bus,
    subjects: Subjects,
    progress: Progress,
    settings: AccountingSettings,
    new: asyncio.Event,
) -> None:
    """One projection per queue, also of those that come later; for ever. An error in one of them ends all."""
    tables = Tables()
    cursors = PgCursors(log.database)

    async def follow(shard: str) -> None:
        backoff = Backoff()
        while True:
            try:
                await run_projection(
                    tables, shard, log=log, bus=bus, cursors=cursors, subjects=subjects, progress=progress
                )
            except* LogUnavailableError as away:
                # Whether the last frames were committed is unknown: the cursor, read again, knows.
                _log.warning("the history of %s waits for the database: %s", shard, away.exceptions[0])
            await backoff.wait()

    followed: set[str] = set()
    async with asyncio.TaskGroup() as tasks:
        while True:
            new.clear()
            for tenure in await log.shards():
                if tenure.shard.startswith(_QUEUES) and tenure.shard not in followed:
                    followed.add(tenure.shard)
                    tasks.create_task(follow(tenure.shard), name=tenure.shard)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(settings.shard_poll):
                    await new.wait()
