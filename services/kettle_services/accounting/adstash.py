"""
Feeds an accounting store: a record of each job that left a queue, and of each attempt if that is configured.

The frames on the bus announce new records; the tables of `jobs`, which follow from them, contain them. A message is
acknowledged when the store has accepted each record up to its frame. That position is stored beside the tables too, so
a bus that lost its consumers makes no difference. Records that were accepted and not yet noted are sent again, with the
same id.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import asyncpg
import msgspec

from kettle.bus.ports import Batch, Bus
from kettle.eventsourcing.log import LogUnavailableError
from kettle.eventsourcing.projection import Progress
from kettle.jobs.attempts import EndedAttempt
from kettle.projections.accounting_documents import Record, attempt_record, bulk, job_record
from kettle.projections.stored_projection import microseconds
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits, retry
from kettle.storage import Database
from kettle.storage.queries import load
from kettle_services.accounting.elasticsearch import BulkStore, NotNowError, Outcomes, TooLargeError
from kettle_services.accounting.settings import AccountingSettings
from kettle_wire.ads.types import Ad
from kettle_wire.frames import decode
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

QUERIES: Final = load(Path(__file__).parent / "sql" / "store.sql")
CONSUMER: Final = "store_1"
LOOK_S: Final = 5.0
"""If the bus was silent for so long, the tables are looked at."""

BACKOFF: Final = Backoff(first=0.5, longest=60.0)
"""Between two tries to send the same records."""

_REMEMBERED: Final = 10_000
_decode_ad: Final = msgspec.msgpack.Decoder(Ad).decode
_log = logging.getLogger(__name__)

_Make: TypeAlias = Callable[[asyncpg.Record], Record]


class Feed:
    """To one store, from the shards of all schedds."""

    def __init__(
        self,
        database: Database,
        bus: Bus,
        store: BulkStore,
        settings: AccountingSettings,
        *,
        progress: Progress,
    ) -> None:
        self._database = database
        self._bus = bus
        self._store = store
        self._settings = settings
        self._progress = progress
        self._subjects = Subjects(settings.pool)
        self._told: set[str] = set()
        self._has_table = False

    async def run(self, shards: Callable[[], Awaitable[Iterable[str]]]) -> None:
        """Feed the records of all shards, including shards that are created later; never returns."""
        followed: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    await self._make_table()
                    for shard in set(await shards()) - followed:
                        followed.add(shard)
                        tasks.create_task(self._follow(shard), name=f"store {shard}")
                except LogUnavailableError as error:
                    _log.warning("the accounting store waits for the database", extra={"cause": str(error)})
                await asyncio.sleep(self._settings.shard_poll)

    async def _follow(self, shard: str) -> None:
        arrived: asyncio.Queue[Batch] = asyncio.Queue(maxsize=1)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._fetch(shard, arrived), name=f"fetch {shard}")
            while True:
                batch: Batch | None = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        batch = await arrived.get()
                if batch is not None:
                    last = decode(batch.messages[-1].data).number
                    while not await self._progress.caught_up(shard, last, deadline=LOOK_S, hurry=False):
                        pass  # the projection is behind, or has stopped: it reports why
                await self._deliver(shard)
                if batch is not None:
                    await batch.ack()

    async def _fetch(self, shard: str, arrived: asyncio.Queue[Batch]) -> None:
        stream, subject = self._subjects.event_stream(shard), self._subjects.events(shard)
        async for batch in self._bus.consume(stream, CONSUMER, subject=subject):
            await arrived.put(batch)

    async def _deliver(self, shard: str) -> None:
        """
        Send all records up to the frame that the tables have reached; ends when the store has taken them.
        """
        schedd, more = shard.partition(".")[2], self._settings.store_attributes
        wanted: list[tuple[str, str, _Make]] = [
            ("jobs", self._settings.store_index, lambda row: job_record(_decode_ad(row["ad"]), more))
        ]
        if index := self._settings.store_attempts:
            wanted.append(("attempts", index, lambda row: attempt_record(schedd, _attempt(row))))

        async def send() -> None:
            for query, index, make in wanted:
                await self._send_all(shard, query, index, make)

        def failed(error: Exception, pause: float) -> None:
            del pause
            _log.warning("the accounting store waits for the database", extra={"cause": str(error)})

        await retry(
            send, BACKOFF, retryable=lambda error: isinstance(error, LogUnavailableError), failed=failed
        )

    async def _send_all(self, shard: str, query: str, index: str, make: _Make) -> None:
        upto, most = self._progress.frame(shard), self._settings.store_batch
        taken = await self.taken(shard, index)
        frame, cluster, proc = taken, _BEYOND, _BEYOND
        while taken < upto:
            place = (shard, upto, frame, cluster, proc, most)
            rows = await self._rows(query, place)
            if rows:
                await self.send(index, [make(row) for row in rows])
                frame, cluster, proc = rows[-1]["frame"], rows[-1]["cluster"], rows[-1]["proc"]
            taken = upto if len(rows) < most else frame - 1  # the last frame may have more
            await self.note(shard, index, taken)

    async def _rows(self, query: str, place: tuple[object, ...]) -> list[asyncpg.Record]:
        return await self._database.run(lambda c: c.fetch(QUERIES[query], *place))

    async def taken(self, shard: str, index: str) -> int:
        """The last frame of a shard all of whose records were taken."""
        await self._make_table()
        return await self._database.run(lambda c: c.fetchval(QUERIES["taken"], shard, index)) or 0

    async def _make_table(self) -> None:
        """Of these frames, if there is none; once for each process."""
        if not self._has_table:
            await self._database.run(lambda c: c.execute(QUERIES["schema"]))
            self._has_table = True

    async def note(self, shard: str, index: str, frame: int) -> None:
        """All records of a shard up to a frame were taken."""
        await self._database.run(lambda c: c.execute(QUERIES["take"], shard, index, frame))

    async def send(self, index: str, records: Sequence[Record]) -> None:
        """Send records until the store has accepted each; accepted records are not sent again."""
        waits = Waits(BACKOFF)
        left, last = list(records), ""
        while left:
            pause = waits.delay()
            try:
                found = await self._store.send(index, left)
            except TooLargeError:
                if len(left) > 1:
                    middle = len(left) // 2
                    await self.send(index, left[:middle])
                    await self.send(index, left[middle:])
                    return
                found = Outcomes([], [], [(left[0], "413: it is larger than the store takes at all")])
            except NotNowError as error:
                if str(error) != last:
                    last = str(error)
                    _log.warning("the accounting store takes nothing now", extra={"why": last})
                await asyncio.sleep(max(pause, error.after))
                continue
            left = [*found.later, *await self._refused(index, found)]
            if found.later:
                _log.warning("the accounting store is busy", extra={"records": len(found.later)})
            if found.taken:
                waits.reset()
            if left:
                await asyncio.sleep(pause)

    async def _refused(self, index: str, found: Outcomes) -> list[Record]:
        """
        Log each refused record once, and write it to the file for refused records, if there is one; returns those that
        have to be sent again.
        """
        for record, why in found.refused:
            if record.id not in self._told:
                self._told.add(record.id)
                _log.error("the accounting store refuses a record", extra={"record": record.id, "why": why})
        if len(self._told) > _REMEMBERED:
            self._told.clear()
        records = [record for record, _ in found.refused]
        if not records or not self._settings.store_refused:
            return records
        try:
            await asyncio.to_thread(_append, Path(self._settings.store_refused), bulk(index, records))
        except OSError as error:
            _log.error("refused records cannot be put aside", extra={"cause": str(error)})
            return records
        return []


_BEYOND: Final = (1 << 31) - 1
"""No cluster or proc is behind it: all of a frame has been sent."""


def _append(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _attempt(row: asyncpg.Record) -> EndedAttempt:
    return EndedAttempt(
        job=JobId(row["cluster"], row["proc"]),
        number=row["attempt"],
        owner=row["owner"],
        group=row["acct_group"],
        project=row["project"],
        machine=row["machine"],
        slot=row["slot"],
        begun=microseconds(row["begun_at"]),
        ended=microseconds(row["ended_at"]),
        wall=row["wall"],
        slot_time=row["slot_time"],
        cpu=row["cpu"],
        good=row["good"],
        uncharged=row["uncharged"],
        completed=row["completed"],
        code=row["code"],
        frame=row["frame"],
    )
