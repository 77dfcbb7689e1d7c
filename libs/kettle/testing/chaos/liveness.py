"""
Whether the pool works: what it says when it is asked, and which jobs come to their end.

It works again after a fault when it has carried out a command that was sent after the fault, and completed a job that
began after it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from kettle.client import Client, ClientError
from kettle_wire import events
from kettle_wire.commands.schedd import Select
from kettle_wire.events import ClusterSubmitted, Event, JobCompleted, JobRemoved, JobStarted
from kettle_wire.jobs import JobId

_BETWEEN_S: Final = 0.1
_QUIET_S: Final = 2.0
PROBE: Final = "probe"
"""The batch of the job that is asked about."""
_SLEEPER: Final = f"""\
executable = /bin/true
transfer_executable = false
requirements = false
+ChaosBatch = "{PROBE}"
queue
"""


class Pulse:
    """Watches one schedd.  Times are those of the event loop."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        """
        How many events of each type have come by; one that comes while the bus is away is not among them.
        """
        self.queued = 0
        """Jobs in the queue, as far as is known."""
        self.probe = 0
        """The cluster of the job that is held again and again; it is removed at the end."""
        self._carried_out = 0.0
        self._completed = 0.0
        self._began: dict[str, float] = {}
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def beating(self, client: Client, prober: Client) -> AsyncGenerator[None]:
        """Watch until the end of the context; `prober` should have little patience."""
        self.probe = (await client.submit(_SLEEPER)).cluster
        tasks = [asyncio.ensure_future(self._follow(client)), asyncio.ensure_future(self._ask(prober))]
        tasks.append(asyncio.ensure_future(self._count(client)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    raise result

    async def works(self, since: float) -> None:
        """Wait until the pool has done something of each kind that began after `since`."""
        async with self._changed:
            await self._changed.wait_for(lambda: min(self._carried_out, self._completed) >= since)

    async def _ask(self, prober: Client) -> None:
        loop = asyncio.get_running_loop()
        job = JobId(self.probe, 0)
        while True:
            sent = loop.time()
            try:
                # It is held already: the answer is recorded as any other, and nothing else changes.
                await prober.hold(Select(jobs=[job]))
            except ClientError:
                self.seen["unanswered"] += 1
            else:
                await self._note(carried_out=sent)
            await asyncio.sleep(_BETWEEN_S)

    async def _count(self, client: Client) -> None:
        """
        Look at the queue itself now and then: a frame that was lost on the way has told nobody of the ends in it.
        """
        while True:
            await asyncio.sleep(_QUIET_S)
            with suppress(ClientError):
                self.queued = len(await client.jobs(projection=("ClusterId",)))

    async def _follow(self, client: Client) -> None:
        loop = asyncio.get_running_loop()
        with (await client.source.feed(f"schedd.{client.pool.schedd}")).tail() as tail:
            while True:
                frame, _missed = await tail.next(_QUIET_S)
                for entry in frame.entries if frame is not None else ():
                    await self._heard(entry.stream, events.decode(entry.data), loop.time())

    async def _heard(self, stream: str, event: Event, now: float) -> None:
        self.seen[type(event).__name__] += 1
        match event:
            case ClusterSubmitted(rows=rows):
                self.queued += len(rows)
            case JobStarted():
                self._began[stream] = now
            case JobCompleted():
                self.queued -= 1
                if began := self._began.pop(stream, 0.0):
                    await self._note(completed=began)
            case JobRemoved():
                self.queued -= 1
                self._began.pop(stream, None)
            case _:
                pass

    async def _note(self, *, carried_out: float = 0.0, completed: float = 0.0) -> None:
        async with self._changed:
            self._carried_out = max(self._carried_out, carried_out)
            self._completed = max(self._completed, completed)
            self._changed.notify_all()
