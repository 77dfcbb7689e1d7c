"""
Read models: rows that follow from frames, committed together with how far they follow.

The cursor's guard makes redelivery harmless and two instances safe. What the bus does not deliver is read from the log.
A frame that cannot be decoded or applied stops the projection in this shard: it never skips.

Errors:

    LogError
    ├── OvertakenError    another instance moved the cursor
    ├── SupersededError   the tables are of another version of the projection than this code
    ├── UnreadableError   an event cannot be decoded
    └── StoppedError      an event cannot be decoded or applied: the projection has stopped
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from kettle.bus.batching import BatchingDelay
from kettle.bus.ports import Batch, Bus
from kettle.eventsourcing.log import IMPORTED, LogError, LogUnavailableError, ReadableLog
from kettle.faults import fault_point
from kettle.retry.loop import Waits
from kettle_wire.event_expansion import each, events_of, expanded, size
from kettle_wire.events import Event, UnknownEventError, decode
from kettle_wire.frames import Frame, Hollow
from kettle_wire.frames import decode as decode_frame
from kettle_wire.subjects import Subjects

LOOK_S: Final = 1.0
"""If the bus was silent for so long, the log is asked whether there is something; again after twice the time, as long as it stays silent."""
LONGEST_LOOK_S: Final = 15.0
FRAMES: Final = 256
"""The most frames that one transaction applies, and about the most events."""
EVENTS: Final = 10_000
GATHER_S: Final = 0.05
"""How long a frame may wait for the next, which then share a transaction, unless somebody waits for it."""

_log = logging.getLogger(__name__)

Decoded: TypeAlias = tuple[Frame, list[Event]]
"""A frame, expanded, and its events."""


class OvertakenError(LogError):
    """Another instance of the projection moved the cursor: read it again and go on from there."""


class SupersededError(LogError):
    """
    The projection's tables were made by another version of the code: this one may neither read nor write them.
    """


class StoppedError(LogError):
    """The projection does not come further in a shard until its code or its tables are repaired."""

    def __init__(self, projection: str, shard: str, frame: int, position: int, why: str) -> None:
        super().__init__(f"{projection} stopped in {shard} {why}")
        self.projection = projection
        self.shard = shard
        self.frame = frame
        """The last frame that it applied is the one before."""
        self.position = position
        """Of the event that it cannot take."""
        self.why = why
        """Frame, position, stream and error, as noted beside the cursor."""


class Tx(Protocol):
    """A transaction of the database that holds the projection."""

    async def execute(self, query: str, *args: Any) -> str:
        """Run a statement."""
        ...

    async def executemany(self, command: str, args: Any) -> None:
        """Run a statement for each row of arguments."""
        ...

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        """Run a query."""
        ...

    async def copy_records_to_table(
        self, table_name: str, *, records: Iterable[Sequence[Any]], columns: Sequence[str]
    ) -> str:
        """Add rows to a table, as they come."""
        ...


class Cursors(Protocol):
    """How far projections have come, in the database that holds their rows."""

    async def cursor(self, projection: str, version: int, shard: str) -> int:
        """
        The number of the last frame that was applied; 0: none. SupersededError: the tables are of another version.
        """
        ...

    def advance(
        self, projection: str, version: int, shard: str, *, was: int, now: int
    ) -> AbstractAsyncContextManager[Tx]:
        """
        A transaction that moves the cursor; raises OvertakenError if it is not where `was` says.

        LogUnavailableError: the database went away; the cursor shows whether the transaction was committed.
        """
        ...

    async def stop(self, projection: str, version: int, shard: str, *, at: int, why: str) -> None:
        """
        Note beside the cursor, if it is still at frame `at`, why it does not move; the next move takes the note away.
        """
        ...


class Projection(Protocol):
    """What frames imply. The tables of a new `version` are filled from the first frame on."""

    @property
    def name(self) -> str:
        """As in the table of cursors and in the name of the consumer."""
        ...

    @property
    def version(self) -> int:
        """It is raised when the rows must be rebuilt."""
        ...

    async def apply(self, tx: Tx, frames: Sequence[Decoded]) -> None:
        """
        Write the rows that frames of one shard imply, in order.

        How frames are grouped makes no difference to the rows. An error stops the projection in this shard.
        """
        ...


class Progress:
    """How far a projection has come in each shard, for those who wait to read what they wrote."""

    def __init__(self) -> None:
        self._frames: dict[str, int] = {}
        self._moved = asyncio.Condition()
        self.gather = BatchingDelay(GATHER_S)

    def frame(self, shard: str) -> int:
        """The last frame applied."""
        return self._frames.get(shard, 0)

    @property
    def shards(self) -> list[str]:
        """The shards of which frames were applied."""
        return sorted(self._frames)

    async def move(self, shard: str, frame: int) -> None:
        """Note that everything up to a frame is applied."""
        async with self._moved:
            self._frames[shard] = frame
            self._moved.notify_all()

    async def caught_up(self, shard: str, frame: int, *, deadline: float, hurry: bool = True) -> bool:
        """
        Wait until the frame is applied; False if `deadline` seconds were not enough.

        Who waits in a `hurry` has frames applied as they come, one by one if need be.
        """
        with self.gather.hurried() if hurry and self.frame(shard) < frame else nullcontext():
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
    log: ReadableLog,
    bus: Bus,
    cursors: Cursors,
    subjects: Subjects,
    progress: Progress | None = None,
) -> None:
    """
    Apply the frames of one shard without end: first those of the log, then those of the bus, if it has any.

    Raises:
        StoppedError: an event cannot be decoded or applied; what came before it is applied.
        SupersededError: the tables are of another version.
    """
    progress = progress or Progress()
    runner = _Runner(projection, shard, log, cursors, progress)
    await runner.look()
    tenure = await log.tenure(shard)
    if tenure is not None and tenure.owner == IMPORTED:
        while True:
            await asyncio.sleep(LOOK_S)
            await runner.look()
    arrived: asyncio.Queue[Batch] = asyncio.Queue(maxsize=1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            _fetch(bus, subjects, shard, runner.frame, progress.gather, arrived), name=f"fetch-{shard}"
        )
        pause = LOOK_S
        while True:
            try:
                async with asyncio.timeout(pause):
                    batch = await arrived.get()
            except TimeoutError:
                pause = min(2 * pause, LONGEST_LOOK_S)
                await runner.look()
            else:
                pause = LOOK_S
                await runner.take([decode_frame(message.data) for message in batch.messages])


async def _fetch(
    bus: Bus,
    subjects: Subjects,
    shard: str,
    after: int,
    gather: BatchingDelay,
    arrived: asyncio.Queue[Batch],
) -> None:
    # Without a name: the cursor beside the rows is the only position, and the server need not write down another.
    batches = bus.consume(
        subjects.event_stream(shard),
        "",
        subject=subjects.events(shard),
        batch=FRAMES,
        after=after,
        ephemeral=True,
        gather=gather,
    )
    async for batch in batches:
        await arrived.put(batch)


class _Runner:
    def __init__(
        self, projection: Projection, shard: str, log: ReadableLog, cursors: Cursors, progress: Progress
    ) -> None:
        self._projection = projection
        self._shard = shard
        self._log = log
        self._cursors = cursors
        self._progress = progress
        self.frame = 0

    async def look(self) -> None:
        """Apply what the log has beyond the cursor."""
        self.frame = await self._cursors.cursor(self._projection.name, self._projection.version, self._shard)
        await self._not_ahead()
        async for frames in grouped(self._log.read(self._shard, after=self.frame)):
            await self._apply(frames)
        await self._progress.move(self._shard, self.frame)

    async def _not_ahead(self) -> None:
        """
        Stop rather than skip, as already known, events that a log restored from an older copy records again.
        """
        tenure = await self._log.tenure(self._shard)
        if tenure is None or tenure.frame >= self.frame:
            return
        name, shard, at = self._projection.name, self._shard, self.frame
        why = (
            f"because its tables are at frame {at}, and the log of {shard} ends with frame {tenure.frame}: the log was restored "
            f"from an older copy. `kettle log rebuild {name}` rebuilds the tables"
        )
        await self._cursors.stop(name, self._projection.version, shard, at=at, why=why)
        raise StoppedError(name, shard, tenure.frame, tenure.head, why)

    async def take(self, frames: Sequence[Frame | Hollow]) -> None:
        """Apply what came by the bus: what is known is left out, what is missing is read from the log."""
        known = self.frame
        if frames[0].number <= known:
            await self._not_ahead()
        new = [frame for frame in frames if frame.number > known and isinstance(frame, Frame)]
        if len(new) < sum(frame.number > known for frame in frames):
            await self.look()  # one was too large for the bus, which has it without its entries
            return
        if not new:
            return
        numbers = [frame.number for frame in new]
        if numbers != list(range(self.frame + 1, self.frame + 1 + len(new))):
            _log.warning(
                "%s: the bus left a gap after frame %s of %s", self._projection.name, self.frame, self._shard
            )
            await self.look()
            return
        for group in in_groups(new):
            await self._apply(group)

    async def _apply(self, frames: Sequence[Frame]) -> None:
        decoded: list[Decoded] = []
        for frame in frames:
            try:
                decoded.append(decoded_events(frame))
            except UnreadableError as error:
                await self._commit(decoded)
                raise await self._stopped(frame, error.index, error.cause) from error.cause
        await self._commit(decoded)
        await self._progress.move(self._shard, self.frame)

    async def _commit(self, decoded: Sequence[Decoded]) -> None:
        """Apply in one transaction, or, if that fails, frame by frame up to the one that is to blame."""
        name, version = self._projection.name, self._projection.version
        waits = Waits()
        while due := [pair for pair in decoded if pair[0].number > self.frame]:
            if due[0][0].number > self.frame + 1:
                return  # the tables were rebuilt and are not as far: the next check continues from there
            try:
                async with self._cursors.advance(
                    name, version, self._shard, was=self.frame, now=due[-1][0].number
                ) as tx:
                    await self._projection.apply(tx, due)
                    fault_point("projection.before")
                fault_point("projection.committed")
                self.frame = due[-1][0].number
            except OvertakenError:
                self.frame = await self._cursors.cursor(name, version, self._shard)
            except LogUnavailableError as error:
                _log.warning("%s waits for the database: %s", name, error)
                await waits.wait()
                self.frame = await self._cursors.cursor(name, version, self._shard)
            except Exception as error:
                if len(due) == 1:
                    raise await self._stopped(due[0][0], await self._culprit(*due[0]), error) from error
                for pair in due:
                    await self._commit([pair])

    async def _culprit(self, frame: Frame, events: list[Event]) -> int:
        """
        The index of the first entry without which the frame could be applied. Nothing is kept of the trials.
        """
        good, bad = 0, len(events)
        while bad - good > 1:
            middle = (good + bad) // 2
            part = msgspec.structs.replace(frame, entries=frame.entries[:middle])
            if await self._applies(part, events[:middle]):
                good = middle
            else:
                bad = middle
        return good

    async def _applies(self, frame: Frame, events: list[Event]) -> bool:
        try:
            async with self._cursors.advance(
                self._projection.name, self._projection.version, self._shard, was=self.frame, now=frame.number
            ) as tx:
                await self._projection.apply(tx, [(frame, events)])
                raise _RollBackError  # noqa: TRY301 - the transaction, not we, has to see it
        except _RollBackError:
            return True
        except LogError:
            raise
        except Exception:  # noqa: BLE001 - the caller handles any error, because it has the exception too
            return False

    async def _stopped(self, frame: Frame, index: int, error: Exception) -> StoppedError:
        name, position = self._projection.name, frame.position_of(index)
        why = (
            f"at frame {frame.number}, position {position}, stream {frame.entries[index].stream}: "
            f"{type(error).__name__}: {error}"
        )
        await self._cursors.stop(
            name, self._projection.version, self._shard, at=self.frame, why=why.replace("\0", "")
        )
        return StoppedError(name, self._shard, frame.number, position, why)


class _RollBackError(Exception):
    """Ends a transaction of which nothing is to stay."""


class UnreadableError(LogError):
    """The entry `index` of a frame is no event that this release knows."""

    def __init__(self, frame: Frame, index: int, cause: UnknownEventError) -> None:
        super().__init__(
            f"{frame.shard}: frame {frame.number}, position {frame.position_of(index)}, stream "
            f"{frame.entries[index].stream}: {cause}"
        )
        self.index = index
        self.cause = cause


def decoded_events(frame: Frame) -> Decoded:
    """A frame, expanded, and its events; raises UnreadableError."""
    try:
        whole = expanded(frame)
        return whole, events_of(whole)
    except UnknownEventError:
        for index, entry in enumerate(frame.entries):
            try:
                for one in each(entry):
                    decode(one.data)
            except UnknownEventError as error:
                raise UnreadableError(frame, index, error) from error
        raise


async def grouped(
    frames: AsyncIterator[Frame], *, most_frames: int = FRAMES, most_events: int = EVENTS
) -> AsyncIterator[list[Frame]]:
    """Frames in groups of at most so many frames, and of about so many events."""
    group = _Group(most_frames, most_events)
    async for frame in frames:
        if (full := group.add(frame)) is not None:
            yield full
    if group.frames:
        yield group.frames


def in_groups(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    """Group frames that are already there: few of them may contain very many events."""
    group = _Group(FRAMES, EVENTS)
    for frame in frames:
        if (full := group.add(frame)) is not None:
            yield full
    if group.frames:
        yield group.frames


class _Group:
    def __init__(self, most_frames: int, most_events: int) -> None:
        self._most_frames = most_frames
        self._most_events = most_events
        self._events = 0
        self.frames: list[Frame] = []

    def add(self, frame: Frame) -> list[Frame] | None:
        """The group, if it is full with this one; the next begins then."""
        self.frames.append(frame)
        self._events += _size(frame)
        if len(self.frames) < self._most_frames and self._events < self._most_events:
            return None
        full, self.frames, self._events = self.frames, [], 0
        return full


def _size(frame: Frame) -> int:
    try:
        return size(frame)
    except UnknownEventError:
        return len(frame.entries)  # the decoder reports the error
