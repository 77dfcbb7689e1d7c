"""What one command records of very many jobs: piece by piece, so that others get a word in between."""

import asyncio
from collections.abc import Sequence
from typing import Final

from kettle.eventsourcing.command_pipeline import Recording
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.events import Event, JobEvent
from kettle_wire.jobs import JobId

SLICE: Final = 500
"""Jobs that are looked at before somebody else gets a turn."""
UNCOMMITTED: Final = 20 * SLICE
"""
Jobs after which the command waits until those before them are committed: what is on its way must not become too much.
"""


class ChunkedRecording:
    """
    Jobs that wait together are recorded together, as they are many, the others one by one.

    `most` events may wait for their commit, whoever recorded them.
    """

    def __init__(self, recorder: QueueRecorder, *, most: int) -> None:
        self._recorder = recorder
        self._most = most
        self._count = 0
        self._alike: list[tuple[JobId, JobEvent]] = []
        self._apart: list[tuple[str, Event]] = []
        self._behind: asyncio.Future[int] | None = None

    @property
    def full(self) -> bool:
        """Whether it is somebody else's turn: `record`."""
        return self._count > 0 and self._count % SLICE == 0

    def add(self, job: JobId, state: Job, events: Sequence[JobEvent]) -> None:
        """The next job, and what happens to it."""
        self._count += 1
        if not state.claim and len(events) == 1:
            self._alike.append((job, events[0]))
        else:
            self._apart += ((job_stream(job), event) for event in events)

    async def record_chunk(self) -> None:
        """Record what was added, and give others a turn and their commands a place."""
        recorded = self._recorder.record(self.take_rest())
        if self._count % UNCOMMITTED == 0:
            # One waits for what was recorded up to the last time, so that there is work while this is committed.
            recorded, self._behind = self._behind or recorded, recorded
            await recorded
        elif self._recorder.shard.backlog > self._most:
            await recorded
        else:
            await asyncio.sleep(0)

    def take_rest(self) -> Recording:
        """What was added since the last time; to be recorded now."""
        alike, apart, self._alike, self._apart = self._alike, self._apart, [], []
        return [*self._recorder.record_grouped(alike), *apart]
