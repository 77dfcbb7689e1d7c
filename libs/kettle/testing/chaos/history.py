"""The recorded life of every job, read from the log itself, and what is wrong with it."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Final

import msgspec

from kettle.storage import Database, PgLog
from kettle_wire import events
from kettle_wire.codes import HoldCode
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobVacated,
)
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId

_PATIENCE_S: Final = 30.0


class Life(msgspec.Struct):
    """One job."""

    name: str
    """`<batch>.<proc>`, as its witness calls itself."""
    events: list[Event] = []

    def count(self, kind: type[Event]) -> int:
        """How many events of a type there are."""
        return sum(isinstance(event, kind) for event in self.events)

    @property
    def completed(self) -> JobCompleted | None:
        """How it completed, if it did."""
        return next((event for event in self.events if isinstance(event, JobCompleted)), None)

    @property
    def ended(self) -> bool:
        """Whether it has left the queue."""
        return any(isinstance(event, JobCompleted | JobRemoved) for event in self.events)


class RecordedHistory(msgspec.Struct):
    """What is recorded of all jobs of a pool."""

    clusters: dict[int, str] = {}
    """The batch of each cluster."""
    jobs: dict[JobId, Life] = {}
    events: int = 0
    wall: float = 0.0
    """Seconds that recorded attempts have taken."""
    attempts: int = 0
    """Attempts that have an end with a usage."""

    def held_by_pool(self) -> dict[str, int]:
        """How many holds there are that nobody asked for, by code."""
        found = Counter(
            f"{event.code}.{event.subcode}"
            for life in self.jobs.values()
            for event in life.events
            if isinstance(event, JobHeld)
            and event.code not in {HoldCode.UserRequest, HoldCode.SubmittedOnHold}
        )
        return dict(sorted(found.items()))

    def put(self, stream: str, event: Event) -> None:
        """Take in one event."""
        self.events += 1
        match event:
            case ClusterSubmitted(cluster=cluster, ad=ad, rows=rows):
                batch = self.clusters[cluster] = str(ad.get("ChaosBatch", ""))
                for proc in range(len(rows)):
                    self.jobs[JobId(cluster, proc)] = Life(f"{batch}.{proc}")
            case JobVacated(usage=usage) | JobCompleted(usage=usage):
                self.attempts += 1
                self.wall += usage.wall
            case _:
                pass
        kind, _, name = stream.partition("/")
        if kind == "job":
            self.jobs[JobId.parse(name)].events.append(event)


async def read(dsn: str, copy: Path) -> RecordedHistory:
    """
    Everything that all schedds of a database have recorded; written to the file `copy` too, a line for each event.
    """
    past = RecordedHistory()
    with copy.open("wb") as file:
        async for shard, frame in _frames(dsn):
            for entry in frame.entries:
                event = events.decode(entry.data)
                past.put(entry.stream, event)
                line = {
                    "shard": shard,
                    "frame": frame.number,
                    "at": frame.at,
                    "stream": entry.stream,
                    "event": event,
                }
                file.write(msgspec.json.encode(line) + b"\n")
    return past


async def _frames(dsn: str) -> AsyncIterator[tuple[str, Frame]]:
    async with Database.connect(dsn, patience=_PATIENCE_S) as database:
        log = PgLog(database)
        for tenure in await log.shards():
            if tenure.shard.startswith("schedd."):
                async for frame in log.read(tenure.shard):
                    yield tenure.shard, frame


def flaws(life: Iterable[Event]) -> list[str]:
    """
    What is wrong with a recorded life: attempts that overlap, ends of what did not run, life after the end.
    """
    reader = _Reader()
    for event in life:
        reader.read(event)
    return reader.found


class _Reader:
    """Reads one life from its beginning."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._running: int = 0
        self._begun: int = 0
        self._started: int = 0
        self._held = False
        self._ended = ""

    def read(self, event: Event) -> None:
        """Take in the next event."""
        kind = type(event).__name__
        # An attempt that lives when its job is removed is ended afterwards, and that it began may be heard of late, too.
        late = self._ended == "JobRemoved" and self._running and isinstance(event, JobStarted | JobVacated)
        if self._ended and not late:
            self.found.append(f"{kind} after {self._ended}")
        match event:
            case JobAssigned(attempt=attempt):
                self._assigned(attempt)
            case JobStarted(attempt=attempt):
                self._is("started", attempt, wrong=attempt == self._started)
                self._started = attempt
            case JobVacated(attempt=attempt) | JobCompleted(attempt=attempt):
                self._is("ended", attempt)
                self._running = 0
            case JobHeld():
                self._held = True
            case JobReleased():
                if not self._held:
                    self.found.append("released, but not held")
                self._held = False
            case _:
                pass
        if isinstance(event, JobCompleted | JobRemoved):
            self._ended = kind

    def _assigned(self, attempt: int) -> None:
        if self._running or attempt != self._begun + 1 or self._held:
            self.found.append(
                f"attempt {attempt} after {self._begun}, {self._running or 'none'} running, held: {self._held}"
            )
        self._running = self._begun = attempt

    def _is(self, what: str, attempt: int, *, wrong: bool = False) -> None:
        if wrong or attempt != self._running:
            self.found.append(f"attempt {attempt} {what} while {self._running or 'none'} was running")
