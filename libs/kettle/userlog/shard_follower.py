"""
Keeping job event logs up to date with a shard: the thin shell around the projector.

The projector's state is saved beside its frame number after its lines are in the files.  A crash between the two
makes the lines come again; they are then compared with the end of each file.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Generic, Protocol, TypeVar

from kettle.threads.to_the_end import to_the_end
from kettle.userlog.appender import UserLogError
from kettle.userlog.routed_lines import LogLine
from kettle.userlog.tail import Tail
from kettle_wire import frames
from kettle_wire.frames import Frame, Hollow

_SAVE_EVERY = 64
"""Deliveries between two checkpoints: saving costs a file's flush, coming again costs a comparison."""
_TOGETHER = 256
"""Frames whose lines are written at once at most: those that were missed may be very many."""
_SHARE = 50.0
"""
So many times as long as a checkpoint took there is none: one of a hundred thousand jobs is not made for each 64.
"""


L = TypeVar("L")
L_contra = TypeVar("L_contra", contravariant=True)


class Projector(Protocol[L]):
    """What is made of frames, one after the other."""

    @property
    def frame(self) -> int:
        """The last frame that was fed."""
        ...

    @property
    def at(self) -> int:
        """When that was recorded, microseconds since the epoch; 0: nobody knows."""
        ...

    def feed(self, frame: Frame) -> list[L]:
        """What this frame adds; nothing for one that was fed before."""
        ...

    def snapshot(self) -> bytes:
        """Everything needed to go on after `frame`."""
        ...


class Sink(Protocol[L_contra]):
    """Where it goes."""

    def write(self, added: Mapping[int, Sequence[L_contra]]) -> None:
        """Take what frames add, by their numbers in order.  Blocks on the disk."""
        ...


class Appending(Protocol):
    """What adds to files; `kettle.userlog.Appender` is one."""

    def append(self, path: Path, text: str, *, owner: str) -> None:
        """Add whole events to a file of the owner's.  Raises UserLogError."""
        ...

    def tail(self, path: Path, *, owner: str) -> str:
        """The end of a file, beginning with a whole event.  Raises UserLogError."""
        ...


class Stored(Protocol):
    """A message that holds one frame."""

    @property
    def data(self) -> bytes:
        """The encoded frame."""
        ...


class Delivery(Protocol):
    """What the bus gives at a time; `kettle.bus.ports.Batch` is one."""

    @property
    def messages(self) -> Sequence[Stored]:
        """In the order of the stream."""
        ...

    async def ack(self) -> None:
        """Not to be delivered again."""
        ...


Missing = Callable[[int, int], AsyncIterator[Frame]]
"""
The frames after one number and up to another, whole and without a gap, from a source that still has them.
"""


class LogRestoredError(Exception):
    """What is known of a log is not in it any more."""

    def __init__(self, shard: str, frame: int) -> None:
        super().__init__(
            f"the log of {shard} was restored from an older copy: frame {frame} is another than the one that was read before"
        )


class Checkpoint:
    """A projector's state in one file, replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> bytes:
        """The saved state; empty if there is none."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""

    def save(self, state: bytes) -> None:
        """Replace the saved state."""
        new = self._path.with_name(f"{self._path.name}.new")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(state)
            file.flush()
            os.fsync(fd)
        new.replace(self._path)


class Writer:
    """
    Lines into files.  Blocks on the disk.

    Up to frame `redelivered`, a line that its file already has is not written again.  A file that cannot be written
    loses its lines, not those of the others: `failed` is called.
    """

    def __init__(
        self, appender: Appending, *, redelivered: int = 0, failed: Callable[[UserLogError], None]
    ) -> None:
        self._appender = appender
        self._redelivered = redelivered
        self._failed = failed
        self._tails: dict[Path, Tail] = {}

    def write(self, added: Mapping[int, Sequence[LogLine]]) -> None:
        """Append what frames add: once to each file, however many frames have a line for it."""
        again = [line for frame, lines in added.items() if frame <= self._redelivered for line in lines]
        new = [line for frame, lines in added.items() if frame > self._redelivered for line in lines]
        self._append(again, is_again=True)
        if new:
            self._tails.clear()
        self._append(new, is_again=False)

    def _append(self, lines: Sequence[LogLine], *, is_again: bool) -> None:
        by_file: dict[tuple[PurePosixPath, str], list[str]] = {}
        for line in lines:
            by_file.setdefault((line.path, line.owner), []).append(line.text)
        for (name, owner), texts in by_file.items():
            path = Path(name)
            try:
                tail = self._tail(path, owner) if is_again else None
                missing = [text for text in texts if tail is None or not tail.already_written(text)]
                if missing:
                    self._appender.append(path, "".join(missing), owner=owner)
            except UserLogError as error:
                self._failed(error)

    def _tail(self, path: Path, owner: str) -> Tail:
        if path not in self._tails:
            self._tails[path] = Tail(self._appender.tail(path, owner=owner))
        return self._tails[path]


class _Gathering(Generic[L]):
    """What frames add, until it is written."""

    def __init__(self, projector: Projector[L], writer: Sink[L]) -> None:
        self._projector = projector
        self._writer = writer
        self._added: dict[int, Sequence[L]] = {}

    async def take(self, frame: Frame) -> None:
        """Keep what a frame adds; what was missed may be so much that it is written meanwhile."""
        if lines := self._projector.feed(frame):
            self._added[frame.number] = lines
            if len(self._added) >= _TOGETHER:
                await self.write()

    async def write(self) -> None:
        """Write what there is."""
        if self._added:
            await to_the_end(self.write_now)

    def write_now(self) -> None:
        """Write it in this thread."""
        added, self._added = self._added, {}
        self._writer.write(added)


async def follow(
    deliveries: AsyncIterator[Delivery],
    projector: Projector[L],
    writer: Sink[L],
    checkpoint: Checkpoint,
    missing: Missing,
) -> None:
    """
    Write what the frames say, until cancelled.

    What `deliveries` repeat is passed over; what they leave out, or bring without its entries, comes from `missing`.
    What one delivery brings is written together, and it is acknowledged when its lines are in the files.

    Raises:
        LogRestoredError: the log was restored from an older copy, and goes on behind another frame than the projector knows.
    """
    since, next_at = 0, 0.0
    gathering = _Gathering(projector, writer)
    try:
        async for delivery in deliveries:
            for message in delivery.messages:
                async for frame in _whole(frames.decode(message.data), projector.frame, missing):
                    if frame.number == projector.frame and projector.at not in {0, frame.at}:
                        raise LogRestoredError(frame.shard, frame.number)
                    await gathering.take(frame)
            await gathering.write()
            await delivery.ack()
            since += 1
            if since >= _SAVE_EVERY and (began := time.monotonic()) >= next_at:
                await to_the_end(lambda: checkpoint.save(projector.snapshot()))  # nothing is fed meanwhile
                since, next_at = 0, time.monotonic() + _SHARE * (time.monotonic() - began)
    except asyncio.CancelledError:
        # A failure saves nothing: it may have left the projector inside a frame.
        gathering.write_now()
        checkpoint.save(projector.snapshot())
        raise


async def _whole(arrived: Frame | Hollow, known: int, missing: Missing) -> AsyncGenerator[Frame, None]:
    """A frame, after those between it and the last one known that the bus no longer has."""
    until = arrived.number if isinstance(arrived, Hollow) else arrived.number - 1
    if until > known:
        async for frame in missing(known, until):
            yield frame
    if isinstance(arrived, Frame):
        yield arrived
