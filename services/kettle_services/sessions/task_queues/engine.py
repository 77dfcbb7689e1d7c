"""
What drives task queues: what happens to one is recorded with what follows from it, and leases end that nobody renews.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from kettle.eventsourcing.command_pipeline import Recording
from kettle_services.sessions.domain.state import QUEUE, texts_stream
from kettle_services.sessions.domain.task_queues.decisions import at_the_end, returned
from kettle_services.sessions.domain.task_queues.queue import FUNCTION, TaskQueue, evolve
from kettle_services.sessions.record import Record
from kettle_wire.events import Event
from kettle_wire.events.task_queue import (
    QueueForgotten,
    TaskQueueEvent,
    TaskTextsDropped,
)

_NEVER: Final = float("inf")


class HeardWorker(msgspec.Struct, frozen=True):
    """A run of a job that works for a queue, as it was heard last."""

    attempt: int
    number: int
    """Of its report."""
    at: float
    """By the clock that only goes on."""


class QueueEngine:
    """The task queues of one record, and which workers were heard when."""

    def __init__(
        self,
        record: Record,
        *,
        lease: float,
        keep: float,
        most: int = 200,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        `lease`: seconds without a word after which a worker has lost its tasks; `keep`: for which a queue that is over is listed, and so
        are `most` of each person.
        """
        self.record: Final = record
        self.lease: Final = lease
        self._keep = keep
        self._most = most
        self._clock = clock
        self._begun = clock()
        """Who has not spoken since is taken to have spoken then."""
        self._heard: dict[str, dict[str, HeardWorker]] = {}
        self._changed: dict[str, asyncio.Event] = {}
        self._touched: set[str] = set()
        """Queues of which something was recorded since times were looked at."""
        self._tick = asyncio.Event()

    @property
    def queues(self) -> dict[str, TaskQueue]:
        """All that are listed, by their ids."""
        return self.record.state.queues.states

    def texts(self, queue: str, part: int) -> list[bytes]:
        """The tasks of a part."""
        return self.record.state.texts.states[f"{queue}.{part}"].texts

    # -- workers -----------------------------------------------------------------------------------------------------

    def hear(self, queue: str, job: str, attempt: int, number: int) -> None:
        """A worker has spoken."""
        self._heard.setdefault(queue, {})[job] = HeardWorker(attempt, number, self._clock())

    def heard(self, queue: str, job: str) -> HeardWorker | None:
        """How a worker was heard last, if it was since this began."""
        return self._heard.get(queue, {}).get(job)

    def workers(self, queue: str) -> int:
        """How many were heard lately."""
        now = self._clock()
        return sum(now - each.at < self.lease for each in self._heard.get(queue, {}).values())

    # -- what is recorded --------------------------------------------------------------------------------------------

    def following(self, queue: str, facts: Sequence[TaskQueueEvent]) -> tuple[Recording, TaskQueue | None]:
        """
        Facts, and what follows from them, to be recorded together; and the queue after them. Nothing is changed.
        """
        before = after = self.queues.get(queue)
        changes: list[tuple[str, Event]] = []
        now = time.time()
        for fact in facts:
            after = evolve(after, fact, now)
            changes.append((f"{QUEUE}{queue}", fact))
        if after is None:
            return changes, None
        for event in at_the_end(after):
            after = evolve(after, event, now)
            changes.append((f"{QUEUE}{queue}", event))
        assert after is not None, "the end of a queue does not have it forgotten"
        left = {each.number for each in after.parts}
        gone = [each.number for each in before.parts if each.number not in left] if before else []
        ends = after.ended and not (before and before.ended)
        if ends and after.plan.kind == "functions":
            gone.append(FUNCTION)  # once: another event there would begin its stream once more
        changes += [(texts_stream(queue, part), TaskTextsDropped()) for part in gone]
        return changes, after

    def settle(self, queue: str, facts: Sequence[TaskQueueEvent]) -> None:
        """Record facts, and what follows from them; the shard fails the process if it cannot."""
        changes, _ = self.following(queue, facts)
        if changes:
            self.record.record(changes)
            self.changed(queue)

    def changed(self, queue: str) -> None:
        """Something of a queue was recorded: those are told who wait for it, and other times count."""
        self._touched.add(queue)
        self._tick.set()
        if (told := self._changed.pop(queue, None)) is not None:
            told.set()

    async def change(self, queue: str, *, within: float) -> None:
        """Wait until something of a queue has changed, but no longer than so many seconds."""
        told = self._changed.setdefault(queue, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await told.wait()

    async def until(self, queue: str, is_so: Callable[[TaskQueue], bool], *, within: float) -> None:
        """Wait until a queue is so, or not there any more, but no longer than so many seconds."""
        end = self._clock() + within
        while (each := self.queues.get(queue)) is not None and not is_so(each):
            if (left := end - self._clock()) <= 0:
                return
            await self.change(queue, within=left)

    # -- times -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """End leases that nobody renews, and forget what has been over for long; never returns."""
        self._touched.update(self.queues)
        dues: dict[str, float] = {}
        while True:
            self._tick.clear()
            touched, self._touched = self._touched, set[str]()
            now = self._clock()
            for queue in touched | {each for each, due in dues.items() if due <= now}:
                dues[queue] = now + self.look(queue)
                if dues[queue] == _NEVER:
                    del dues[queue]
            soonest = min(dues.values(), default=_NEVER)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if soonest == _NEVER else max(0.0, soonest - self._clock())):
                    await self._tick.wait()

    def look(self, queue: str) -> float:
        """What is due of one is recorded; seconds until something else may be."""
        if (each := self.queues.get(queue)) is None:
            return _NEVER
        if each.ended:
            left = each.ended + self._keep - time.time()
            for other in self._surplus(each.owner) if left > 0 else [queue]:
                self._heard.pop(other, None)
                self.settle(other, [QueueForgotten()])
            return left if queue in self.queues else _NEVER
        now, soonest = self._clock(), _NEVER
        for number, lease in each.leases.items():
            heard = self.heard(queue, lease.job)
            spoken = heard.at if heard and heard.attempt == lease.attempt else self._begun
            left = spoken + self.lease - now
            if left > 0:
                soonest = min(soonest, left)
            else:
                reason = f"job {lease.job} was not heard for {self.lease:g} s"
                self.settle(queue, [returned(self.queues[queue], number, reason, lost=True)])
        return soonest

    def _surplus(self, owner: str) -> list[str]:
        """The queues of somebody that are over, but for those that ended last."""
        over = [each for each in self.queues.values() if each.owner == owner and each.ended]
        if len(over) <= self._most:
            return []
        over.sort(key=lambda each: each.ended, reverse=True)
        return [each.id for each in over[self._most :]]
