"""JobEventLog: a job event log is read and followed."""

import math
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from kettle.bindings.ads import ClassAd
from kettle.bindings.enumerations import JobEventType
from kettle.bindings.errors import HTCondorException, HTCondorIOError
from kettle.classad import ClassAd as WrittenAd
from kettle.retry.deadline import Deadline
from kettle.userlog import Format, LogReader, UserLogFormatError, attributes, event_of, number_of, render

_KINDS: Final = frozenset(JobEventType)
_LOOK_S: Final = 0.1
"""
Seconds between two checks of a file: there is no notification that it has grown, because it may be on another machine.
"""


class JobEvent(Mapping[str, Any]):
    """One event: `type`, `cluster`, `proc`, `timestamp`, and as a mapping what else it says."""

    def __init__(self, data: ClassAd, event_text: str) -> None:
        self._data = data
        self._text = event_text
        self._at = 0

    @property
    def type(self) -> JobEventType:
        """Which kind of event."""
        return JobEventType(self._data["EventTypeNumber"])

    @property
    def cluster(self) -> int:
        """The job's cluster."""
        return int(self._data["Cluster"])

    @property
    def proc(self) -> int:
        """Its number there."""
        return int(self._data["Proc"])

    @property
    def timestamp(self) -> int:
        """When, seconds since the epoch."""
        return self._at

    @classmethod
    def at(cls, seconds: int, data: ClassAd, event_text: str) -> Self:
        """An event of a time."""
        event = cls(data, event_text)
        event._at = seconds
        return event

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"JobEvent(type={self.type}, cluster={self.cluster}, proc={self.proc}, timestamp={self.timestamp})"


class JobEventLog:
    """
    A job event log, read from its beginning; a later read continues where the last one stopped.

        for event in JobEventLog("sweep.log").events(stop_after=0): ...

    `stop_after` is the number of seconds without new events after which reading ends; without it, reading never ends.
    It can be pickled, with its position and the time at which reading ends.
    """

    ads: ClassVar[type[ClassAd]] = ClassAd
    """What an event within an event is."""

    def __init__(self, filename: str) -> None:
        self._path = str(filename)
        self._reader = LogReader(Path(self._path))
        self._end_after(math.inf)
        self._closed = False
        self._lock = threading.Lock()
        try:
            with Path(self._path).open("rb"):
                pass
        except OSError as error:
            raise HTCondorIOError(
                f"Could not initialize JobEventLog: {error.strerror}: '{self._path}'"
            ) from error

    def events(self, stop_after: float | None = None) -> Self:
        """The log as an iterator that ends when no event came for so many seconds; None: it never ends."""
        self._end_after(math.inf if stop_after is None else stop_after)
        return self

    def _end_after(self, seconds: float) -> None:
        self._deadline = Deadline(seconds)
        self._ends_at = time.time() + seconds

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> JobEvent:
        while not self._closed:
            if (event := self._next()) is not None:
                return event
            if self._deadline.passed:
                break
            time.sleep(min(_LOOK_S, self._deadline.left()))
        raise StopIteration("All events processed")

    def next(self) -> JobEvent:
        """The next event (version 1)."""
        return next(self)

    def close(self) -> None:
        """Read no more."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exceptionType: type[BaseException] | None,
        exceptionValue: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __getstate__(self) -> tuple[str, int, float]:
        return self._path, self._reader.offset, self._ends_at

    def __setstate__(self, t: tuple[str, int, float]) -> None:
        self.__init__(t[0])  # type: ignore[misc]  # as if it had been opened again
        self._reader = LogReader(Path(self._path), t[1])
        self._end_after(max(0.0, t[2] - time.time()))

    def _next(self) -> JobEvent | None:
        """The event behind what has been read, if all of it is there."""
        with self._lock:
            try:
                block = self._reader.next()
                event = None if block is None else event_of(block)
            except OSError as error:
                raise HTCondorIOError(f"the log {self._path} cannot be read: {error.strerror}") from error
            except (UserLogFormatError, ValueError) as error:
                raise HTCondorException(
                    f"the log {self._path} has something that is no event: {error}"
                ) from error
        if event is None:
            return None
        if number_of(event) not in _KINDS:
            raise HTCondorException(
                f"the log {self._path} has an event of kind {number_of(event):03d}, which is not known"
            )
        shown = Format(sub_second=event.at % 1 > 0)
        data = self.ads.around(WrittenAd.from_wire(attributes(event, shown)))
        return JobEvent.at(int(event.at), data, render(event, None, shown).removesuffix("...\n"))
