"""The working set of a shard, beside a fresh fold of its events. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from kettle.audit.report import AuditReport
from kettle.audit.sampling import Sample
from kettle.eventsourcing.log import StoredEvent
from kettle_wire.event_expansion import CLUSTERS, each
from kettle_wire.events import Event
from kettle_wire.frames import Frame

Fold = Callable[[str, Event, int], Iterable[tuple[str, bytes | None]]]
"""`(stream, event, at_us)` to the rows that the event changes: stream and state, None for a row that goes."""


class WorkingSetFold:
    """Fed the frames up to the working set's cursor, it says how the stored rows differ."""

    names: Sequence[str] = ("working_set",)
    one_by_one = False

    def __init__(
        self,
        shard: str,
        fold: Fold,
        report: AuditReport,
        stored: Mapping[str, StoredEvent],
        *,
        cursor: int,
        sample: Sample | None = None,
    ) -> None:
        self._shard = shard
        self._fold = fold
        self._check = report.check("working_set")
        self._stored = stored
        self._cursor = cursor
        self._sample = sample
        self._rows: dict[str, tuple[int, bytes, int]] = {}
        self._gone: dict[str, int] = {}
        """Position at which a row went that is stored all the same."""
        self._refused = False

    async def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """See `Follower.feed`: frames that the working set has not seen do not count."""
        if frame.number > self._cursor or self._refused:
            return
        for position, (entry, event) in enumerate(zip(frame.entries, events, strict=True), frame.position):
            if not self._takes(entry.stream) and not entry.stream.startswith(CLUSTERS):
                continue
            try:
                changes = self._fold(entry.stream, event, frame.at)
            except Exception as error:  # noqa: BLE001 - what a fold makes of a damaged log is what is looked for
                self._check.found(
                    self._shard, position, f"{entry.type} of {entry.stream} cannot be folded: {error!r}"
                )
                self._refused = True
                return
            versions = {one.stream: one.version for one in each(entry)}
            for stream, state in changes:
                self._change(stream, versions.get(stream, entry.version), state, position)

    async def finish(self) -> None:
        """
        Note every row that is missing, too many or different, in the order of the events that made them.
        """
        if self._refused:
            return
        stored = {stream: row for stream, row in self._stored.items() if self._takes(stream)}
        check = self._check
        check.examined += len(stored.keys() | self._rows.keys())
        problems: list[tuple[int, str]] = []
        for stream, (version, state, position) in self._rows.items():
            if not self._takes(stream):
                continue  # it depends on streams that were left out
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

    def _takes(self, stream: str) -> bool:
        return self._sample is None or self._sample.takes(stream)

    def _change(self, stream: str, version: int, state: bytes | None, position: int) -> None:
        if state is not None:
            self._rows[stream] = (version, state, position)
            return
        self._rows.pop(stream, None)
        if stream in self._stored:
            self._gone[stream] = position
