"""
The working set of a shard, beside a fresh fold of its events. Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from kettle.audit.report import AuditReport
from kettle.eventsourcing.log import Row
from kettle.wire.events import Event
from kettle.wire.frames import Frame

Fold = Callable[[str, Event, int], Iterable[tuple[str, bytes | None]]]
"""`(stream, event, at_us)` to the rows that the event changes: stream and state, None for a row that goes."""


class WorkingSetFold:
    """
    Fed the frames up to the working set's cursor, it says how the rows differ.
    """

    def __init__(self, shard: str, fold: Fold, *, cursor: int) -> None:
        self._shard = shard
        self._fold = fold
        self._cursor = cursor
        self._rows: dict[str, tuple[int, bytes, int]] = {}
        self._gone: dict[str, int] = {}

    def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """
        Fold the next frame, unless the working set has not seen it.
        """
        if frame.number > self._cursor:
            return
        for index, (entry, event) in enumerate(zip(frame.entries, events, strict=True)):
            for stream, state in self._fold(entry.stream, event, frame.at):
                if state is None:
                    self._rows.pop(stream, None)
                    self._gone[stream] = frame.position + index
                else:
                    self._rows[stream] = (entry.version, state, frame.position + index)

    def compare(self, stored: Mapping[str, Row], report: AuditReport) -> None:
        """
        Note every row that is missing, too many or different, in the order of the events that made them.
        """
        check = report.check("working_set")
        check.examined += len(stored.keys() | self._rows.keys())
        problems: list[tuple[int, str]] = []
        for stream, (version, state, position) in self._rows.items():
            row = stored.get(stream)
            if row is None:
                problems.append((position, f"the working set lacks {stream}"))
            elif row.version != version:
                problems.append(
                    (position, f"{stream} has version {row.version} in the working set, {version} in the log")
                )
            elif row.state != state:
                problems.append((position, f"the state of {stream} is not what its events make of it"))
        problems += [
            (self._gone.get(stream, 0), f"the working set has {stream}, which is over or never was")
            for stream in stored.keys() - self._rows.keys()
        ]
        for position, sentence in sorted(problems):
            check.found(self._shard, position, sentence)
