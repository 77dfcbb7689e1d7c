"""The transfer queue: how many jobs move files at once, in each direction (HTCondor's MAX_CONCURRENT_UPLOADS and -DOWNLOADS)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kettle.shadow.domain.turns import Turns
from kettle.wire.jobs import JobId


class TransferQueue:
    """
    Input files are read by machines, piece by piece: who asks before his turn is told to ask again.

    Results are read by us: who brings them home waits here.
    """

    def __init__(self, *, uploads: int, downloads: int) -> None:
        self._uploads = Turns(uploads)
        self._downloads = Turns(downloads)
        self._waiting: dict[JobId, asyncio.Future[None]] = {}

    @property
    def waiting(self) -> int:
        """How many jobs wait for a turn."""
        return len(self._uploads) + len(self._downloads)

    def may_upload(self, job: JobId, user: str) -> bool:
        """Whether a machine may read input files of this job now."""
        return self._uploads.ask(job, user)

    def uploaded(self, job: JobId) -> None:
        """The job runs, or never will."""
        self._uploads.done(job)

    @asynccontextmanager
    async def download(self, job: JobId, user: str) -> AsyncGenerator[None]:
        """The turn of a job to have its results fetched."""
        try:
            if not self._downloads.ask(job, user):
                turn = self._waiting[job] = asyncio.get_running_loop().create_future()
                await turn
            yield
        finally:
            self._waiting.pop(job, None)
            for other in self._downloads.done(job):
                waiting = self._waiting.get(other)
                if waiting is not None and not waiting.done():
                    waiting.set_result(None)
