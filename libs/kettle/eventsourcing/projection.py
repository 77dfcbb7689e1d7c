"""
Read models: rows that follow from frames, committed together with how far they follow.

The cursor's guard makes redelivery harmless and two instances safe. Whatever the bus does not deliver is read from the
log. A frame that cannot be decoded or applied stops the projection: it never skips.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from kettle.bus.backoff import Backoff
from kettle.bus.ports import Batch, Bus
from kettle.eventsourcing.log import Log, LogError, LogUnavailableError
from kettle.wire.events import Event, decode
from kettle.wire.frames import Frame
from kettle.wire.frames import decode as decode_frame
from kettle.wire.subjects import Subjects

LOOK_S: Final = 1.0
"""If the bus was silent for so long, the log is asked whether there is something."""
FRAMES: Final = 256
"""The most frames that one transaction applies, and about the most events."""
EVENTS: Final = 20_000

_logger = logging.getLogger(__name__)


class OvertakenError(LogError):
    """
    Another instance of the projection moved the cursor: read it again and go on from there.
    """


class Tx(Protocol):
    """
    A transaction of the database that holds the projection.
    """

    async def execute(self, query: str, *args: Any) -> str:
        """
        Run a statement.
        """
        ...

    async def executemany(self, command: str, args: Any) -> None:
        """
        Run a statement for each row of arguments.
        """
        ...

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        """
        Run a query.
        """
        ...


class Cursors(Protocol):
    """
    How far projections have come, in the database that holds their rows.
    """

    async def cursor(self, projection: str, version: int, shard: str) -> int:
        """
        The number of the last frame that was applied; 0: none.
        """
        ...

    def advance(
        self, projection: str, version: int, shard: str, *, was: int, now: int
    ) -> AbstractAsyncContextManager[Tx]:
        """
        A transaction that moves the cursor; raises OvertakenError if it is not where `was` says.

        LogUnavailableError: the database went away; the cursor tells whether the transaction was committed.
        """
        ...


class Projection(Protocol):
    """
    What frames imply. A new `version` has tables of its own and is filled from the first frame on.
    """

    @property
    def name(self) -> str:
        """
        As in the table of cursors and in the name of the consumer.
        """
        ...

    @property
    def version(self) -> int:
        """
        Raised when the rows must be made anew.
        """
        ...

    async def apply(self, tx: Tx, frames: Sequence[tuple[Frame, list[Event]]]) -> None:
        """
        Write the rows that frames imply, in order.
        """
        ...


class Progress:
    """
    How far a projection has come in each shard, for those who wait to read what they wrote.
    """

    def __init__(self) -> None:
        self._frames: dict[str, int] = {}
        self._moved = asyncio.Condition()

    def frame(self, shard: str) -> int:
        """
        The last frame applied.
        """
        return self._frames.get(shard, 0)

    async def move(self, shard: str, frame: int) -> None:
        """
        Note that everything up to a frame is applied.
        """
        async with self._moved:
            self._frames[shard] = frame
            self._moved.notify_all()

    async def caught_up(self, shard: str, frame: int, *, deadline: float) -> bool:
        """
        Wait until the frame is applied; False if `deadline` seconds were not enough.
        """
        try:
            async with asyncio.timeout(deadline), self._moved:
                await self._moved.wait_for(lambda: self.frame(shard) >= frame)
        except TimeoutError:
            return False
        return True


async def run_projection(
    projection: Projection,
    shard: str,
    *,
    log: Log,
    bus: Bus,
    cursors: Cursors,
    subjects: Subjects,
    progress: Progress | None = None,
) -> None:
    """
    Apply the frames of one shard for ever: first what the log has, then what the bus brings.
    """
    runner = _Runner(projection, shard, log, cursors, progress or Progress())
    await runner.look()
    arrived: asyncio.Queue[Batch] = asyncio.Queue(maxsize=1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            _fetch(bus, subjects, projection, shard, runner.frame, arrived), name=f"fetch-{shard}"
        )
        while True:
            try:
                async with asyncio.timeout(LOOK_S):
                    batch = await arrived.get()
            except TimeoutError:
                await runner.look()
            else:
                await runner.take([decode_frame(message.data) for message in batch.messages])
                await batch.ack()


async def _fetch(
    bus: Bus,
    subjects: Subjects,
    projection: Projection,
    shard: str,
    after: int,
    arrived: "asyncio.Queue[Batch]",
) -> None:
    durable = f"{projection.name}_{projection.version}"
    batches = bus.consume(
        subjects.event_stream(shard), durable, subject=subjects.events(shard), batch=FRAMES, after=after
    )
    async for batch in batches:
        await arrived.put(batch)


class _Runner:
    def __init__(
        self, projection: Projection, shard: str, log: Log, cursors: Cursors, progress: Progress
    ) -> None:
        self._projection = projection
        self._shard = shard
        self._log = log
        self._cursors = cursors
        self._progress = progress
        self.frame = 0

    async def look(self) -> None:
        """
        Apply what the log has beyond the cursor.
        """
        self.frame = await self._cursors.cursor(self._projection.name, self._projection.version, self._shard)
        async for frames in _groups(self._log.read(self._shard, after=self.frame)):
            await self._apply(frames)
        await self._progress.move(self._shard, self.frame)

    async def take(self, frames: Sequence[Frame]) -> None:
        """
        Apply what came by the bus: what is known is left out, what is missing is read from the log.
        """
        new = [frame for frame in frames if frame.number > self.frame]
        if not new:
            return
        numbers = [frame.number for frame in new]
        if numbers != list(range(self.frame + 1, self.frame + 1 + len(new))):
            _logger.warning(
                "%s: the bus left a gap after frame %s of %s", self._projection.name, self.frame, self._shard
            )
            await self.look()
            return
        await self._apply(new)

    async def _apply(self, frames: Sequence[Frame]) -> None:
        decoded = [(frame, _events(frame)) for frame in frames]
        name, version, now = self._projection.name, self._projection.version, frames[-1].number
        backoff = Backoff()
        while self.frame < now:
            due = [pair for pair in decoded if pair[0].number > self.frame]
            try:
                async with self._cursors.advance(name, version, self._shard, was=self.frame, now=now) as tx:
                    await self._projection.apply(tx, due)
                self.frame = now
            except OvertakenError:
                self.frame = await self._cursors.cursor(name, version, self._shard)
            except LogUnavailableError as error:
                _logger.warning("%s waits for the database: %s", name, error)
                await backoff.wait()
                self.frame = await self._cursors.cursor(name, version, self._shard)
        await self._progress.move(self._shard, self.frame)


def _events(frame: Frame) -> list[Event]:
    return [decode(entry.data) for entry in frame.entries]


async def _groups(frames: AsyncIterator[Frame]) -> AsyncIterator[list[Frame]]:
    group: list[Frame] = []
    events = 0
    async for frame in frames:
        group.append(frame)
        events += len(frame.entries)
        if len(group) >= FRAMES or events >= EVENTS:
            yield group
            group, events = [], 0
    if group:
        yield group
