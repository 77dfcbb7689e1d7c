"""
Records the changes of one command on very many jobs piece by piece, so that other commands are handled in between.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kettle.eventsourcing.command_pipeline import Recording
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.domain.queue.grouped_events import HappenedToAll
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.events import Event, JobEvent
from kettle_wire.jobs import JobId

SLICE: Final = 500
"""Jobs that are processed before other tasks run."""
UNCOMMITTED: Final = 20 * SLICE
"""
Jobs after which the command waits until those before them are committed: what is on its way must not become too much.
"""


class ChunkedRecording:
    """
    Jobs that wait are recorded together, because they are many, the others one by one.

    `most` events may wait for their commit, including those of others.
    """

    def __init__(self, recorder: QueueRecorder, *, most: int) -> None:
        self._recorder = recorder
        self._most = most
        self._count = 0
        """Jobs that were added since it waited for what was recorded."""
        self._since = 0
        """Jobs that were added since others had a turn."""
        self._alike: list[HappenedToAll] = []
        self._apart: list[tuple[str, Event]] = []
        self._behind: asyncio.Future[int] | None = None

    @property
    def full(self) -> bool:
        """Whether it is somebody else's turn: `record`."""
        return self._since >= SLICE

    def add(self, jobs: Sequence[JobId], state: Job, events: Sequence[JobEvent]) -> None:
        """
        The next jobs of one cluster that share their entry, one at least, and what happens to each of them.
        """
        self._count += len(jobs)
        self._since += len(jobs)
        if not state.claim and len(events) == 1:
            self._alike.append((jobs, events[0]))
        else:
            self._apart += ((job_stream(job), event) for job in jobs for event in events)

    async def record_chunk(self) -> None:
        """Record what was added, and give others a turn and their commands a place."""
        recorded, self._since = self._recorder.record(self.take_rest()), 0
        if self._count >= UNCOMMITTED:
            self._count = 0
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
        return [*self._recorder.record_runs(alike), *apart]
