"""The ads of jobs in the queue, folded from what the table `live` has of them."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import asyncpg

from kettle.eventsourcing.projection import Tx
from kettle.jobs.ad import apply
from kettle.jobs.history import Submission
from kettle.projections.jobs.rows import unpacked
from kettle.projections.stored_projection import microseconds
from kettle.storage.queries import load
from kettle_wire import events
from kettle_wire.ads.types import Ad
from kettle_wire.events import ClusterSubmitted, JobEvent, decode

_REMEMBERED: Final = 1024
"""Submissions that are kept decoded."""
_QUERIES: Final = load(Path(__file__).parent / "queries.sql")


class QueuedAds:
    """Makes ads of rows; it remembers submissions, which never change."""

    def __init__(self) -> None:
        self._submissions: OrderedDict[tuple[str, int], Submission] = OrderedDict()

    async def of(self, tx: Tx, rows: Sequence[asyncpg.Record], *, until: int | None = None) -> list[Ad]:
        """
        The ads of rows of `live`, with their `shard`, `cluster`, `proc` and `happened`, read in the same transaction.

        `until`: as they were then, microseconds since the epoch; None: as they are.
        """
        clusters = await self.submissions(tx, {(row["shard"], row["cluster"]) for row in rows})
        return [_ad(clusters[row["shard"], row["cluster"]], row, until) for row in rows]

    async def submissions(self, tx: Tx, wanted: set[tuple[str, int]]) -> dict[tuple[str, int], Submission]:
        """The submissions of clusters, by shard and number; clusters that are not in a queue are left out."""
        found: dict[tuple[str, int], Submission] = {}
        for key in wanted & self._submissions.keys():
            self._submissions.move_to_end(key)
            found[key] = self._submissions[key]
        if missing := sorted(wanted - found.keys()):
            shards, numbers = zip(*missing, strict=True)
            for row in await tx.fetch(_QUERIES["submissions"], list(shards), list(numbers)):
                event = events.decode(row["event"])
                if isinstance(event, ClusterSubmitted):  # nothing else is ever written there
                    submission = Submission(microseconds(row["submitted_at"]), event)
                    found[row["shard"], row["cluster"]] = submission
                    self._submissions[row["shard"], row["cluster"]] = submission
        while len(self._submissions) > _REMEMBERED:
            self._submissions.popitem(last=False)
        return found


def _ad(submission: Submission, row: asyncpg.Record, until: int | None) -> Ad:
    ad = submission.ads(row["proc"], row["shard"].partition(".")[2])
    for happened in unpacked(row["happened"]):
        if until is not None and happened.at > until:
            break
        apply(ad, cast("JobEvent", decode(happened.data)), happened.at)
    return ad
