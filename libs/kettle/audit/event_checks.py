"""
The checks that need only the events of one shard, in order: numbering, times, decoding, attempts and claims. Pure.
"""

import msgspec

from kettle.audit.attempts import Attempts, Claims
from kettle.audit.report import AuditReport
from kettle.eventsourcing.shard import BACKWARDS_US
from kettle_wire.event_expansion import each, stands_for_many
from kettle_wire.events import Event, JobsChanged, UnknownEventError, decode, recorded_tag
from kettle_wire.frames import Entry, Frame


class Recorded(msgspec.Struct, frozen=True):
    """A row of the log."""

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
        self._times = report.check("times")
        self._attempts = Attempts(shard, report, whole=self._whole)
        self._claims = Claims(shard, report, whole=self._whole)
        self._seen: dict[str, int] = {}
        self._rows: list[Recorded] = []
        self.position = 0
        self.frame = after
        self.epoch = 0
        self.at = 0

    def feed(self, row: Recorded) -> tuple[Frame, list[Event]] | None:
        """Look at the next row; returns the frame before, if this row begins another."""
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
        """The frame that is complete when no row follows; its events only if all of them can be read."""
        if not self._rows:
            return None
        rows, self._rows = self._rows, []
        first = rows[0]
        entries = [row.entry for row in rows]
        events = [event for row in rows if (event := self._decoded(row)) is not None]
        return Frame(self._shard, first.epoch, first.frame, first.position, first.at, entries), events

    def _new_frame(self, row: Recorded) -> None:
        self._frames.examined += 1
        self._times.examined += 1
        if row.frame != self.frame + 1:
            self._frames.found(self._shard, row.position, f"frame {row.frame} follows frame {self.frame}")
        if row.epoch < self.epoch:
            self._frames.found(
                self._shard,
                row.position,
                f"frame {row.frame} of epoch {row.epoch} follows one of {self.epoch}",
            )
        if 0 < (back := self.at - row.at) <= BACKWARDS_US:
            self._times.found(
                self._shard,
                row.position,
                f"frame {row.frame} is {back / 1_000_000:.6f} s earlier than the one before it",
            )
        self.frame, self.epoch, self.at = row.frame, row.epoch, row.at

    def _number(self, row: Recorded) -> None:
        self._positions.examined += 1
        if row.position != self.position + 1 and (self._whole or self.position):
            self._positions.found(
                self._shard, row.position, f"position {row.position} follows position {self.position}"
            )
        self.position = row.position
        self._follows(row.position, row.entry)
        if stands_for_many(row.entry):
            for one in _singles(row.entry):
                self._follows(row.position, one)

    def _follows(self, position: int, entry: Entry) -> None:
        """An event is the next one of its stream."""
        self._versions.examined += 1
        stream, version = entry.stream, entry.version
        before = self._seen.get(stream)
        if before is None and (not self._whole or self._attempts.over(stream)):
            before = version - 1  # of a job that is over: the check `attempts` says so
        if version != (before or 0) + 1:
            self._versions.found(
                self._shard, position, f"version {version} of {stream} follows version {before or 0}"
            )
        self._seen[stream] = version

    def _decoded(self, row: Recorded) -> Event | None:
        self._events.examined += 1
        stream = row.entry.stream
        try:
            event = decode(row.entry.data)
            if isinstance(event, JobsChanged):
                decode(bytes(event.data))
        except UnknownEventError as error:
            self._events.found(self._shard, row.position, f"{stream}: {error}")
            return None
        if (tag := recorded_tag(row.entry.data)) != row.entry.type:
            self._events.found(
                self._shard, row.position, f"{stream}: the type is {row.entry.type}, the event {tag}"
            )
        if isinstance(event, JobsChanged) and (tag := recorded_tag(bytes(event.data))) != event.type:
            self._events.found(
                self._shard, row.position, f"{stream}: its type is {event.type}, its event {tag}"
            )
        for one in _singles(row.entry):
            single = decode(one.data)
            self._claims.feed(one.stream, row.position, single)
            if self._attempts.feed(one.stream, row.position, single):
                self._seen.pop(one.stream, None)
        return event


def _singles(entry: Entry) -> list[Entry]:
    """
    The single events of an entry, for each job if there are many; none if it cannot be decoded, which another check
    reports.
    """
    try:
        return list(each(entry))
    except UnknownEventError:
        return []
