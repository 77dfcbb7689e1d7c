"""Accounting's tables: frames in, rows out. The fold itself is `kettle.jobs.past`."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from kettle.eventsourcing.projection import Tx
from kettle.jobs.past import Changes, Departed, Happened, Past, Submission, touched
from kettle.storage.queries import load
from kettle.wire import events
from kettle.wire.events import ClusterSubmitted, Event
from kettle.wire.frames import Frame
from kettle.wire.jobs import JobId

SQL: Final = Path(__file__).parent / "sql"
QUERIES: Final[Mapping[str, str]] = load(SQL / "queries.sql")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REMEMBERED: Final = 256
"""Submissions that are kept decoded: a cluster of many jobs is spoken of in frame after frame."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Happened).decode


class Tables:
    """
    The projection `accounting`: history and usage of all queues.

    One for both, because both need the ads of live jobs. Version 1: see the tables' names.
    """

    def __init__(self) -> None:
        self.name: Final = "accounting"
        self.version: Final = 1
        self._submissions: OrderedDict[tuple[str, int], Submission] = OrderedDict()

    async def apply(self, tx: Tx, frames: Sequence[tuple[Frame, list[Event]]]) -> None:
        """Change the tables as frames of one shard say, inside the transaction that moves the cursor."""
        shard = frames[0][0].shard
        jobs = touched(frame for frame, _ in frames)
        clusters = await self._clusters(tx, shard, {job.cluster for job in jobs})
        past = Past(shard.partition(".")[2], clusters, await _jobs(tx, shard, jobs))
        for frame, decoded in frames:
            past.feed(frame, decoded)
        await self._write(tx, shard, past.take())

    async def _clusters(self, tx: Tx, shard: str, wanted: set[int]) -> dict[int, Submission]:
        found: dict[int, Submission] = {}
        for cluster in wanted:
            known = self._submissions.get((shard, cluster))
            if known is not None:
                self._submissions.move_to_end((shard, cluster))
                found[cluster] = known
        if missing := list(wanted - found.keys()):
            for row in await tx.fetch(QUERIES["clusters"], shard, missing):
                event = events.decode(row["event"])
                if isinstance(event, ClusterSubmitted):  # nothing else is ever written there
                    found[row["cluster"]] = self._submissions[shard, row["cluster"]] = Submission(
                        row["at"], event
                    )
        while len(self._submissions) > _REMEMBERED:
            self._submissions.popitem(last=False)
        return found

    async def _write(self, tx: Tx, shard: str, changes: Changes) -> None:
        if changes.submitted:
            await tx.execute(QUERIES["submit"], shard, *_columns(4, _submissions(changes)))
        if changes.happened:
            await tx.execute(QUERIES["happen"], shard, *_columns(3, _events(changes)))
        if changes.departed:
            await tx.execute(QUERIES["depart"], shard, *_columns(8, map(_history_row, changes.departed)))
            gone = Counter(departed.job.cluster for departed in changes.departed)
            await tx.execute(QUERIES["shrink"], shard, list(gone), list(gone.values()))
            await tx.execute(QUERIES["forget"], shard, list(gone))
        if changes.spent:
            spent = (
                (o, s.jobs_completed, s.attempts, s.wall, s.slot_time, s.cpu)
                for o, s in changes.spent.items()
            )
            await tx.execute(QUERIES["spend"], shard, *_columns(6, spent))


async def _jobs(tx: Tx, shard: str, jobs: Iterable[JobId]) -> dict[JobId, list[Happened]]:
    clusters, procs = _columns(2, ((job.cluster, job.proc) for job in jobs))
    if not clusters:
        return {}
    rows = await tx.fetch(QUERIES["jobs"], shard, clusters, procs)
    return {JobId(row["cluster"], row["proc"]): _unpacked(row["happened"]) for row in rows}


def _submissions(changes: Changes) -> Iterator[tuple[object, ...]]:
    for cluster, submission in changes.submitted.items():
        yield cluster, submission.at, len(submission.event.rows), events.encode(submission.event)


def _events(changes: Changes) -> Iterator[tuple[object, ...]]:
    for job, happened in changes.happened.items():
        yield job.cluster, job.proc, _packed(happened)


def _packed(happened: Iterable[Happened]) -> bytes:
    """Each with its length, so that more can be added at the end without reading what is there."""
    return b"".join(len(data).to_bytes(4, "big") + data for data in map(_encode, happened))


def _unpacked(packed: bytes) -> list[Happened]:
    found: list[Happened] = []
    at = 0
    while at < len(packed):
        end = at + 4 + int.from_bytes(packed[at : at + 4], "big")
        found.append(_decode(packed[at + 4 : end]))
        at = end
    return found


def _history_row(departed: Departed) -> tuple[object, ...]:
    return (
        departed.job.cluster,
        departed.job.proc,
        departed.owner,
        departed.status,
        _EPOCH + timedelta(microseconds=departed.submitted_at),
        _EPOCH + timedelta(microseconds=departed.left_at),
        departed.frame,
        _encode(departed.ad),
    )


def _columns(count: int, rows: Iterable[tuple[object, ...]]) -> list[list[object]]:
    """Rows as the arrays that one statement takes."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    return columns or [[] for _ in range(count)]
