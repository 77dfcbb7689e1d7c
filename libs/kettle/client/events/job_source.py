"""What following jobs is made of: questions about the queue and the history, and live frames from the bus."""

from collections.abc import Sequence

from kettle.bus.ports import Bus
from kettle.client.connections.transport import SIDE_QUESTION_S
from kettle.client.errors import ClientError
from kettle.client.events.shard_feed import Feed
from kettle.client.jobs.queue import JobQueue
from kettle_wire.ads.types import Ad
from kettle_wire.commands.schedd import JobEvents, Select, Unmade
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects


class JobSource:
    """One of them serves all that a client follows."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._subjects = Subjects(queue.requests.pool.pool)
        self._feeds: dict[str, Feed] = {}

    async def recorded(self, job: JobId) -> JobEvents:
        """Everything recorded of a job."""
        return await self._queue.recorded(job)

    async def queued(self, select: Select, projection: Sequence[str]) -> list[Ad]:
        """Ads of jobs that are in the queue."""
        return await self._queue.jobs(select, projection=projection)

    async def unmade(self, select: Select) -> list[Unmade]:
        """Clusters of which jobs are still to be made."""
        return await self._queue.unmade(select)

    async def ended(self, select: Select, limit: int) -> list[Ad]:
        """The history as far as it is known, nothing if accounting does not answer."""
        try:
            return await self._queue.history(select, limit=limit, patience=SIDE_QUESTION_S)
        except ClientError:
            return []

    async def feed(self, shard: str) -> Feed:
        """The live frames of a shard; one subscription however many ask."""
        bus = await self.bus()
        if shard not in self._feeds:
            feed = self._feeds[shard] = Feed()
            bus.on_return(feed.interrupted)
            await bus.listen(self._subjects.events(shard), feed.deliver)
        return self._feeds[shard]

    async def bus(self) -> Bus:
        """
        The bus of the pool.

        Raises ClientError: there is none, because this runs within a job.
        """
        bus = await self._queue.requests.transport.connection()
        if bus is None:
            raise ClientError(
                "a job cannot follow what happens: it may ask, or read a job event log (condor_wait)"
            )
        return bus
