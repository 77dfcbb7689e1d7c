"""
The checks that need only the events of one shard, in order: numbering, decoding, attempts. Pure.
"""

from typing import Final

import msgspec

from kettle.audit.report import AuditReport
from kettle.wire.events import (
    Event,
    JobAssigned,
    JobCompleted,
    JobStarted,
    JobVacated,
    UnknownEventError,
    decode,
    tag_of,
)
from kettle.wire.frames import Entry, Frame


class Stored(msgspec.Struct, frozen=True):
    """
    A row of the log.
    """

    position: int
    frame: int
    epoch: int
    at: int
    """Microseconds since the epoch."""
    entry: Entry


class Walk:
    """
    Fed the rows of one shard in order, it gives back the frames that are whole, with their events.

    After a problem it goes on from where the log goes on, so that one gap is one problem.  Frames from before `after`
    are not known: then the first event of each stream is believed.
    """

    def __init__(self, shard: str, report: AuditReport, *, after: int = 0) -> None:
        self._shard = shard
        self._whole = after == 0
        self._positions = report.check("positions")
        self._frames = report.check("frames")
        self._versions = report.check("versions")
        self._events = report.check("events")
        self._attempts = Attempts(shard, report, whole=self._whole)
        self._seen: dict[str, int] = {}
        self._rows: list[Stored] = []
        self.position = 0
        self.frame = after
        self.epoch = 0

    def feed(self, row: Stored) -> tuple[Frame, list[Event]] | None:
        """
        Look at the next row; returns the frame before, if this row begins another.
        """
        complete = None
        if not self._rows or self._rows[-1].frame != row.frame:
            complete = self.finish()
            self._new_frame(row)
        elif (row.at, row.epoch) != (self._rows[-1].at, self._rows[-1].epoch):
            self._frames.found(self._shard, row.position, f"frame {row.frame} has two times or two epochs")
        self._number(row)
        self._rows.append(row)
        return complete

    def finish(self) -> tuple[Frame, list[Event]] | None:
        """
        The frame that is complete when no row follows; its events only if all of them can be read.
        """
        if not self._rows:
            return None
        rows, self._rows = self._rows, []
        first = rows[0]
        entries = [row.entry for row in rows]
        events = [event for row in rows if (event := self._decoded(row)) is not None]
        return Frame(self._shard, first.epoch, first.frame, first.position, first.at, entries), events

    def _new_frame(self, row: Stored) -> None:
        self._frames.examined += 1
        if row.frame != self.frame + 1:
            self._frames.found(self._shard, row.position, f"frame {row.frame} follows frame {self.frame}")
        if row.epoch < self.epoch:
            self._frames.found(
                self._shard,
                row.position,
                f"frame {row.frame} of epoch {row.epoch} follows one of {self.epoch}",
            )
        self.frame, self.epoch = row.frame, row.epoch

    def _number(self, row: Stored) -> None:
        self._positions.examined += 1
        if row.position != self.position + 1 and (self._whole or self.position):
            self._positions.found(
                self._shard, row.position, f"position {row.position} follows position {self.position}"
            )
        self.position = row.position
        self._versions.examined += 1
        stream, version = row.entry.stream, row.entry.version
        before = self._seen.get(stream)
        if before is None and not self._whole:
            before = version - 1
        if version != (before or 0) + 1:
            self._versions.found(
                self._shard, row.position, f"version {version} of {stream} follows version {before or 0}"
            )
        self._seen[stream] = version

    def _decoded(self, row: Stored) -> Event | None:
        self._events.examined += 1
        try:
            event = decode(row.entry.data)
        except UnknownEventError as error:
            self._events.found(self._shard, row.position, f"{row.entry.stream}: {error}")
            return None
        if tag_of(event) != row.entry.type:
            self._events.found(
                self._shard,
                row.position,
                f"{row.entry.stream}: the type is {row.entry.type}, the event {tag_of(event)}",
            )
        self._attempts.feed(row, event)
        return event


_OVER: Final = -1


class Attempts:
    """
    One attempt of a job at a time: assigned, perhaps started, ended; the next has the next number.
    """

    def __init__(self, shard: str, report: AuditReport, *, whole: bool) -> None:
        self._shard = shard
        self._whole = whole
        self._check = report.check("attempts")
        self._alive: dict[str, int] = {}
        """The attempt that lives, 0 for none, by stream; `_OVER`: the job is done."""
        self._last: dict[str, int] = {}

    def feed(self, row: Stored, event: Event) -> None:
        """
        Look at the next event.
        """
        match event:
            case JobAssigned():
                self._assigned(row, event.attempt)
            case JobStarted():
                self._running(row, "starts", event.attempt)
            case JobVacated():
                self._running(row, "ends", event.attempt)
                self._alive[row.entry.stream] = 0
            case JobCompleted():
                self._running(row, "completes", event.attempt)
                self._alive[row.entry.stream] = _OVER
            case _:
                pass

    def _assigned(self, row: Stored, attempt: int) -> None:
        self._check.examined += 1
        stream = row.entry.stream
        alive = self._alive.get(stream, 0)
        if alive == _OVER:
            self._found(row, f"attempt {attempt} of {stream} begins after the job was done")
        elif alive:
            self._found(row, f"attempt {attempt} of {stream} begins while attempt {alive} lives")
        known = self._last.get(stream)
        if known is None and not self._whole:
            known = attempt - 1
        if attempt != (known or 0) + 1:
            self._found(row, f"attempt {attempt} of {stream} follows attempt {known or 0}")
        self._alive[stream] = self._last[stream] = attempt

    def _running(self, row: Stored, what: str, attempt: int) -> None:
        stream = row.entry.stream
        alive = self._alive.get(stream)
        if alive is None and not self._whole:
            self._last[stream] = attempt
        elif alive != attempt:
            self._found(row, f"attempt {attempt} of {stream} {what} and does not live")

    def _found(self, row: Stored, sentence: str) -> None:
        self._check.found(self._shard, row.position, sentence)
