"""From a recorded event to the published message."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

import msgspec

from kettle.bus.ports import Post
from kettle.jobs import trace_meta
from kettle_services.gateway.domain.public_json import to_json
from kettle_wire import cloud_events
from kettle_wire.event_expansion import each, many, stands_for_many
from kettle_wire.events import ClustersSubmitted, ClusterSubmitted, decode, tag_of
from kettle_wire.events.codec import Recorded
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

SCHEDD: Final = "schedd."
"""How the shards of access points begin."""
_UNPUBLISHED: Final = ("dagman.", "sessions.")
"""
How the shards begin whose events are not published: what workflows and sessions do to jobs is told as events of these
jobs, and a plan has what its owner alone may know.
"""

_OF_PILOTS: Final = "payload/"
"""How streams begin that say what pilots run for whom, which is their owners' to know."""

_encode: Final = msgspec.json.Encoder().encode
_meta: Final = msgspec.msgpack.Decoder(dict[str, str]).decode


class DecodedEvent(msgspec.Struct, frozen=True):
    """An entry of a frame, decoded: what it is about is known before it is known whose it is."""

    entry: Entry
    position: int
    event: Recorded
    cluster: int | None
    """None: it is an event of the pool."""
    job: JobId | None
    """None: it is not about a single job."""
    of_many: bool = False
    """It was recorded for many jobs or clusters at once, and the position is that of them all."""

    @property
    def name(self) -> str:
        """What distinguishes it from all other events of its shard."""
        if not self.of_many:
            return str(self.position)
        return f"{self.position}.{self.cluster if self.job is None else self.job.proc}"


def is_published(shard: str) -> bool:
    """Whether the events of a shard are for those who watch the pool."""
    return not shard.startswith(_UNPUBLISHED)


def read(frame: Frame, *, after: int = 0) -> list[DecodedEvent]:
    """The events of a frame that stand after a position. Raises UnknownEventError."""
    return [
        told
        for position, entry in enumerate(frame.entries, start=frame.position)
        if position > after and not entry.stream.startswith(_OF_PILOTS)
        for told in _all_told(frame, entry, position)
    ]


def _all_told(frame: Frame, entry: Entry, position: int) -> Iterator[DecodedEvent]:
    """
    One recorded event, or what it is to each of many jobs or clusters: then it has the trace that the job's own events have.
    """
    if not stands_for_many(entry):
        yield _told(entry, position, decode(entry.data))
        return
    together = many(entry)
    if isinstance(together, ClustersSubmitted):
        for one, submitted in zip(each(entry), together.each(), strict=True):
            yield msgspec.structs.replace(_told(one, position, submitted), of_many=True)
        return
    schedd, event = frame.shard.removeprefix(SCHEDD), decode(bytes(together.data))
    for one in each(entry):
        traced = msgspec.structs.replace(one, meta=trace_meta(schedd, one.stream))
        yield msgspec.structs.replace(_told(traced, position, event), of_many=True)


def _told(entry: Entry, position: int, event: Recorded) -> DecodedEvent:
    noun, _, name = entry.stream.partition("/")
    job = JobId.parse(name) if noun == "job" else None
    cluster = job.cluster if job is not None else int(name) if noun in {"cluster", "factory"} else None
    return DecodedEvent(entry, position, event, cluster, job)


def owners_in(told: list[DecodedEvent]) -> Iterator[tuple[int, str]]:
    """The clusters that were submitted here, and whose they are."""
    for one in told:
        if isinstance(one.event, ClusterSubmitted):
            yield one.event.cluster, one.event.owner


class Publisher:
    """Makes the messages of one pool; `limit` is the most bytes that the JSON of one event may have."""

    def __init__(self, subjects: Subjects, *, limit: int) -> None:
        self._subjects = subjects
        self._limit = limit

    def post(self, frame: Frame, told: DecodedEvent, owner: str) -> Post:
        """One event; `owner` is empty for an event of the pool."""
        tag = tag_of(told.event)
        return Post(
            self._subject(told, owner, cloud_events.kind(tag)), self._envelope(frame, told, owner, tag)
        )

    def _subject(self, told: DecodedEvent, owner: str, kind: str) -> str:
        if told.cluster is None:
            return self._subjects.tail_pool(kind)
        return self._subjects.tail(owner, told.cluster, told.job.proc if told.job else None, kind)

    def _envelope(self, frame: Frame, told: DecodedEvent, owner: str, tag: str) -> bytes:
        entry, source = told.entry, cloud_events.source_of(self._subjects.pool, frame.shard)
        data = to_json(told.event)
        fits = len(data) <= self._limit
        return _encode(
            cloud_events.CloudEvent(
                specversion=cloud_events.SPECVERSION,
                id=f"{cloud_events.escaped(frame.shard)}:{told.name}",
                source=source,
                type=cloud_events.type_of(tag),
                subject=str(told.job) if told.job else entry.stream,
                time=cloud_events.rfc3339(frame.at),
                dataschema=cloud_events.schema_of(tag),
                datacontenttype=cloud_events.JSON if fits else "",
                data=msgspec.Raw(data) if fits else msgspec.UNSET,
                dataref="" if fits else f"{source}/{told.name}",
                stream=entry.stream,
                version=entry.version,
                epoch=frame.epoch,
                frame=str(frame.number),
                owner=owner,
                schedd=frame.shard.removeprefix(SCHEDD) if frame.shard.startswith(SCHEDD) else "",
                jobs=len(told.event.rows) if isinstance(told.event, ClusterSubmitted) else 0,
                traceparent=_traceparent(entry.meta),
            )
        )


def _traceparent(meta: bytes) -> str:
    return cast("Mapping[str, str]", _meta(meta)).get("traceparent", "") if meta else ""
