"""Accounting's tables: frames in, rows out. The fold itself is `kettle.jobs.past`."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

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

_INLINE: Final = 100
"""Up to so many events are folded on the loop; more would hold it up for others, and go to a thread."""

Statement: TypeAlias = tuple[str, list[list[object]]]
"""The name of a query and its columns, after the shard."""

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
        if sum(len(frame.entries) for frame, _ in frames) > _INLINE:
            statements = await asyncio.to_thread(_statements, past, frames)
        else:
            statements = _statements(past, frames)
        for name, columns in statements:
            await tx.execute(QUERIES[name], shard, *columns)

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


def _statements(past: Past, frames: Sequence[tuple[Frame, list[Event]]]) -> list[Statement]:
    """Fold, and say in SQL what changed: everything that takes time and needs no database."""
    for frame, decoded in frames:
        past.feed(frame, decoded)
    changes = past.take()
    gone = Counter(departed.job.cluster for departed in changes.departed)
    spent = ((o, s.jobs_completed, s.attempts, s.wall, s.slot_time, s.cpu) for o, s in changes.spent.items())
    statements: list[Statement] = [
        ("submit", _columns(_submissions(changes))),
        ("happen", _columns(_events(changes))),
        ("depart", _columns(map(_history_row, changes.departed))),
        ("shrink", _columns(gone.items())),
        ("forget", _columns((cluster,) for cluster in gone)),
        ("spend", _columns(spent)),
    ]
    return [(name, columns) for name, columns in statements if columns]


async def _jobs(tx: Tx, shard: str, jobs: Iterable[JobId]) -> dict[JobId, list[Happened]]:
    columns = _columns((job.cluster, job.proc) for job in jobs)
    if not columns:
        return {}
    rows = await tx.fetch(QUERIES["jobs"], shard, *columns)
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


def _columns(rows: Iterable[tuple[object, ...]]) -> list[list[object]]:
    """Rows as the arrays that one statement takes; nothing for no rows."""
    return [list(column) for column in zip(*rows, strict=True)]
