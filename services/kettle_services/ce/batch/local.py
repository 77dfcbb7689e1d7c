"""The machine of the entrypoint as a batch system, for small sites: it begins the jobs itself."""

import asyncio
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from kettle.accounts.lookup import Accounts
from kettle_services.ce.batch.local_queue import LocalQueue
from kettle_services.ce.batch.port import Job, NotTakenError, Submission, UnavailableError
from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_services.ce.domain.batch.local import LocalJob, Room, refusal, shown
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchEnd, BatchId, Intent

T = TypeVar("T")


class LocalJobs:
    """
    Jobs of one machine, with their owners' rights.  They go on while the entrypoint is away; those that wait begin when it is back.
    """

    def __init__(self, queue: LocalQueue, room: Room, accounts: Accounts) -> None:
        self._queue: Final = queue
        self._room: Final = room
        self._accounts: Final = accounts
        self._host: Final = socket.gethostname()
        self.settling: Final = 0.0

    async def check(self) -> Sequence[str]:
        """Whether the queue can be used."""
        await self._done(self._queue.look)
        return []

    async def submit(self, submission: Submission) -> BatchId:
        """It is there when its directory is; a repeat finds it there."""
        if why := refusal(submission.request, self._room):
            raise NotTakenError(f"this machine does not take the job: {why}", passes=False)
        rights = await self._accounts.find(submission.owner) if submission.owner else None
        job = LocalJob(
            number=0,
            intent=submission.intent,
            owner=submission.owner,
            directory=submission.directory,
            request=submission.request,
            rights=None if rights is None else (rights.uid, rights.gid, rights.groups),
        )
        try:
            added = await self._done(partial(self._queue.add, job, submission.script))
        except UnavailableError as error:
            raise NotTakenError(str(error), passes=True) from None
        return str(added.number)

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """By the names of their directories."""
        found = await self._done(partial(self._queue.named, intents))
        return {intent: str(number) for intent, number in found.items()}

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """As they are; those that may begin by now do."""
        wanted = [(int(each.id), each.intent) for each in jobs if each.id.isdecimal()]
        found = await self._done(partial(self._queue.standings, wanted))
        return {str(each.job.number): shown(each, self._host) for each in found}

    async def cancel(self, job: Job) -> bool:
        """It has some seconds to end by itself."""
        await self._change(job, removed=True)
        return True

    async def hold(self, job: Job, *, running: bool) -> None:
        """A job that runs is stopped with all its processes; else it does not begin."""
        await self._change(job, stopped=True)

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        await self._change(job, stopped=False)

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """The queue says it itself, as long as it knows."""
        return {}

    async def _change(self, job: Job, *, stopped: bool | None = None, removed: bool = False) -> None:
        if job.id.isdecimal():
            change = partial(self._queue.change, int(job.id), job.intent, stopped=stopped, removed=removed)
            await self._done(change)

    async def _done(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise UnavailableError(cleaned(f"the queue of this machine cannot be used: {error}")) from None
