"""
The owner's handle on its shard: numbers events, commits them in groups, releases answers after the commit.

Nothing here waits for a timer: while one commit is in flight the next batch collects, so that a single caller
has the latency of one commit and many callers share it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from kettle.eventsourcing.first_answers import FirstAnswers, answers_in, as_one
from kettle.eventsourcing.log import Answered, FencedError, Log, LogError, Tenure
from kettle.faults import fault_point
from kettle_wire.event_expansion import singles_of
from kettle_wire.events import ClustersSubmitted, Event, JobsChanged, encode, tag_of
from kettle_wire.frames import Entry, Frame

BATCH_EVENTS: Final = 1_024
"""More would not make a commit cheaper; so many are prepared and answered while others are written."""
BATCH_BYTES: Final = 4 * 1024 * 1024
BATCH_SINGLES: Final = 10_000
"""
The limit when each event of many jobs is counted as its single events, because a frame is read as a whole.
"""
ENTRY_OVERHEAD_BYTES: Final = 32
BACKWARDS_US: Final = 3_600_000_000
"""
Time in a shard does not go backwards, unless it was ahead by more than this: then the clock had been wrong.
"""

_log = logging.getLogger(__name__)

T = TypeVar("T")


def _failed(future: asyncio.Future[T], error: BaseException) -> asyncio.Future[T]:
    if not future.done():
        future.set_exception(error)
        future.exception()  # a caller that went away must not make the loop complain
    return future


class _Batch:
    """What one commit will write, and who waits for it."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.bytes = 0
        self.singles = 0
        self.at = 0
        self.commands: list[tuple[str, Callable[[int], bytes] | None]] = []
        self.together: list[tuple[Sequence[str], Callable[[int], Sequence[bytes]]]] = []
        """Commands that were decided as one, and the answers to them."""
        self.recorded: list[asyncio.Future[int]] = []
        self.answered: list[tuple[str, asyncio.Future[bytes]]] = []

    def has_room(self, entries: Sequence[Entry], size: int, singles: int) -> bool:
        if not self.entries:
            return True  # what is larger than a batch gets one of its own
        return (
            len(self.entries) + len(entries) <= BATCH_EVENTS
            and self.bytes + size <= BATCH_BYTES
            and self.singles + singles <= BATCH_SINGLES
        )

    def answers(self, command: str) -> bool:
        return any(command == one for one, _ in self.commands) or any(
            command in commands for commands, _ in self.together
        )

    def fail(self, error: BaseException) -> None:
        for recorded in self.recorded:
            _failed(recorded, error)
        for _, answered in self.answered:
            _failed(answered, error)


class Shard:
    """One period of ownership. `run` must be running for anything to be committed."""

    def __init__(self, log: Log, tenure: Tenure, answered: Sequence[Answered], *, answers: int) -> None:
        self.name = tenure.shard
        self.tenure = tenure
        self.frame = tenure.frame
        """Number of the last committed frame."""
        self._at = 0
        self._log = log
        self._head = tenure.head
        self._answers = FirstAnswers(answered, keep=answers)
        self._versions: dict[str, int] = {}
        self._number: Callable[[str], int] = lambda _stream: 0
        self._sinks: list[Callable[[Frame], None]] = []
        self._closed: deque[_Batch] = deque()
        self._open = _Batch()
        self._in_flight: _Batch | None = None
        self._work = asyncio.Event()
        self._failure: BaseException | None = None
        self._backlog = 0
        self._backlog_bytes = 0

    @classmethod
    @asynccontextmanager
    async def own(
        cls, log: Log, name: str, *, owner: str, answers: int = 10_000
    ) -> AsyncGenerator["Shard", None]:
        """
        Take the shard over. `answers`: how many commands are remembered, so that their repeats do nothing.

        On exit, callers that still wait for a commit get the error that its outcome is unknown.
        """
        tenure = await log.take(name, owner=owner)
        shard = cls(log, tenure, await log.answers(name, newest=answers), answers=answers)
        async for last in log.read(name, after=max(0, tenure.frame - 1)):
            shard._at = last.at
        try:
            yield shard
        finally:
            shard._fail(LogError(f"the shard {name} was closed; whether this was recorded is unknown"))

    @property
    def backlog(self) -> int:
        """Events that are recorded and not yet committed: a caller that sees many refuses new work."""
        return self._backlog

    @property
    def backlog_bytes(self) -> int:
        """The bytes of those events."""
        return self._backlog_bytes

    @property
    def open_at(self) -> int:
        """
        The time that the open batch carries, microseconds: with it a fold made now equals one made from the log.
        """
        return self._open.at

    def version(self, stream: str) -> int:
        """
        The version of the stream's last event, committed or not; 0: none, or none that this owner knows.
        """
        return self._versions.get(stream) or self._number(stream)

    def number_by(self, version: Callable[[str], int]) -> None:
        """
        From now on ask this for the version of a stream that is not known here, because its last event was one of many streams; 0: none.
        """
        self._number = version

    def adopt(self, versions: Mapping[str, int]) -> None:
        """Take the versions of live streams from the working set and from the frames folded after it."""
        self._versions.update(versions)

    def retire(self, stream: str) -> None:
        """Forget a stream that will never have another event."""
        self._versions.pop(stream, None)

    def on_commit(self, sink: Callable[[Frame], None]) -> None:
        """Call `sink` with every frame after its commit, in order. It must not block or raise."""
        self._sinks.append(sink)

    def record(
        self,
        changes: Sequence[tuple[str, Event]],
        *,
        now_us: int,
        command: str = "",
        reply: Callable[[int], bytes] | None = None,
        meta: Callable[[str], bytes] | None = None,
    ) -> asyncio.Future[int]:
        """
        Put events, each with its stream, into the batch that is next committed; all of them go into one frame.

        The future is the number of that frame, after the commit. `command` is the id under which `reply(frame)` is
        stored with them; without changes only the answer is stored, and the number is that of the frame before.
        Without both it is `committed`.
        `meta(stream)` is kept beside each event: its trace context.
        A frame is one message on the bus: callers that record very many events at once split them over several calls.
        """
        if not changes and not command:
            return self.committed()
        future = self._record(changes, (command,) if command else (), now_us, meta)
        if command and self._failure is None:
            self._open.commands.append((command, reply))
        return future

    def record_together(
        self,
        changes: Sequence[tuple[str, Event]],
        commands: Sequence[str],
        replies: Callable[[int], Sequence[bytes]],
        *,
        now_us: int,
        meta: Callable[[str], bytes] | None = None,
    ) -> asyncio.Future[int]:
        """
        As `record`, of commands that were decided as one: `replies(frame)`, in their order, are stored as one.
        """
        future = self._record(changes, commands, now_us, meta)
        if self._failure is None:
            self._open.together.append((commands, replies))
        return future

    def _record(
        self,
        changes: Sequence[tuple[str, Event]],
        commands: Sequence[str],
        now_us: int,
        meta: Callable[[str], bytes] | None,
    ) -> asyncio.Future[int]:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self._failure is not None:
            return _failed(future, self._failure)
        for command in commands:
            if command in self._answers:
                raise ValueError(f"the command {command} was answered already: ask `answer` before deciding")
        self._join(*self._entries(changes, meta), now_us)
        self._answers.expect(commands)
        self._open.recorded.append(future)
        self._work.set()
        return future

    def committed(self) -> asyncio.Future[int]:
        """
        Done when everything recorded so far is committed, with the number of the last frame that was.

        Awaited before anybody is told of what may still be on its way to the log.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self._failure is not None:
            return _failed(future, self._failure)
        if self._open.recorded:
            self._open.recorded.append(future)
        elif self._closed:
            self._closed[-1].recorded.append(future)
        elif self._in_flight is not None:
            self._in_flight.recorded.append(future)
        else:
            future.set_result(self.frame)
        return future

    def answer(self, command: str) -> asyncio.Future[bytes] | None:
        """
        The first answer to a command that is repeated, done when that is committed; None: the command is new.
        """
        if not command or command not in self._answers:
            return None
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        known = self._answers.find(command)
        if known is not None:
            future.set_result(known)
            return future
        if self._failure is not None:
            return _failed(future, self._failure)
        batches = (*self._closed, self._open, *((self._in_flight,) if self._in_flight else ()))
        mine = next(b for b in batches if b.answers(command))
        mine.answered.append((command, future))
        return future

    async def run(self) -> None:
        """
        Commit, one frame at a time, without end. Any error of the log ends it, and all waiting callers get that error.
        """
        try:
            while True:
                await self._work.wait()
                await self._commit(self._next())
                if (enough := self._answers.enough()) is not None:
                    await self._log.forget_answers(self.name, keep=enough)
        except LogError as error:
            self._fail(error)
            raise
        finally:
            self._fail(LogError(f"the owner of {self.name} stopped; whether this was recorded is unknown"))

    async def guard(self, interval: float) -> None:
        """
        Check every `interval` seconds whether the shard is still ours, for an owner that has nothing to write.

        Raises FencedError when it is not; otherwise it never returns.
        """
        while True:
            await asyncio.sleep(interval)
            await self.look()

    async def look(self) -> None:
        """Raise FencedError if somebody else has taken the shard."""
        now = await self._log.tenure(self.name)
        if now is None or now.epoch != self.tenure.epoch:
            owner = now.owner if now is not None else "nobody"
            raise FencedError(f"{self.name} belongs to {owner} now")

    def _entries(
        self, changes: Sequence[tuple[str, Event]], meta: Callable[[str], bytes] | None
    ) -> tuple[list[Entry], int, int]:
        """Events as they are stored, about how many bytes they have, and how many they are to readers."""
        singles = len(changes)
        versions, size = self._versions, len(changes) * ENTRY_OVERHEAD_BYTES
        entries: list[Entry] = []
        for stream, event in changes:
            version = versions[stream] = (versions.get(stream) or self._number(stream)) + 1
            data, note = encode(event), meta(stream) if meta else b""
            entries.append(Entry(stream, version, tag_of(event), data, note))
            size += len(data) + len(note) + len(stream)
            if isinstance(event, JobsChanged | ClustersSubmitted):
                singles += singles_of(event) - 1
        return entries, size, singles

    def _join(self, entries: Sequence[Entry], size: int, singles: int, now_us: int) -> None:
        if not self._open.has_room(entries, size, singles):
            self._closed.append(self._open)
            self._open = _Batch()
        if not self._open.entries:
            self._open.at = self._at = self._later(now_us)
        self._open.entries.extend(entries)
        self._open.bytes += size
        self._open.singles += singles
        self._backlog += len(entries)
        self._backlog_bytes += size

    def _later(self, now_us: int) -> int:
        """The owner before us may have had a clock that was ahead: what is recorded later is not earlier."""
        if self._at - now_us > BACKWARDS_US:
            _log.warning("%s: its last frame is %d s in the future", self.name, (self._at - now_us) // 10**6)
            return now_us
        return max(now_us, self._at)

    def _next(self) -> _Batch:
        if self._closed:
            return self._closed.popleft()
        batch, self._open = self._open, _Batch()
        self._work.clear()
        return batch

    async def _commit(self, batch: _Batch) -> None:
        frame = Frame(self.name, self.tenure.epoch, self.frame + 1, self._head + 1, batch.at, batch.entries)
        number = frame.number if frame.entries else self.frame
        answers = [
            Answered(id=command, frame=number, reply=reply(number) if reply else b"")
            for command, reply in batch.commands
        ]
        answers += [as_one(commands, number, replies(number)) for commands, replies in batch.together]
        self._in_flight = batch
        fault_point("append.before")
        await self._log.append(frame, answers)
        fault_point("append.committed")
        self._in_flight = None
        self.frame, self._head = number, frame.head
        self._backlog -= len(frame.entries)
        self._backlog_bytes -= batch.bytes
        if frame.entries:
            for sink in self._sinks:
                sink(frame)
        self._release(batch, number, answers)
        fault_point("append.released")

    def _release(self, batch: _Batch, number: int, answers: Sequence[Answered]) -> None:
        for recorded in batch.recorded:
            if not recorded.done():
                recorded.set_result(number)
        if batch.answered:
            found = {command: reply for each in answers for command, reply in answers_in(each).items()}
            for command, answered in batch.answered:
                if not answered.done():
                    answered.set_result(found[command])
        self._answers.note(answers)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        for batch in (*self._closed, self._open, *((self._in_flight,) if self._in_flight else ())):
            batch.fail(self._failure)
