"""
Stored events as the list of the log shows them.

Pure.
"""

import fnmatch
from datetime import datetime
from typing import Any, Final, cast

import asyncpg
import msgspec

from kettle.client.events.sentences import sentence
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_wire.ads.types import Ad
from kettle_wire.event_expansion import many, of_stream, singles_of, stands_for_many
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    FactorySubmitted,
    UnknownEventError,
    decode,
)
from kettle_wire.events.payload import PayloadEvent
from kettle_wire.frames import Entry
from kettle_wire.rest.log import LogRecord

_SUBMITTED: Final = str(ClusterSubmitted.__struct_config__.tag)


class Row(msgspec.Struct, frozen=True):
    """One event, with where it stands."""

    shard: str
    frame: int
    position: int
    at: datetime
    stream: str
    type: str
    event: Event | None
    """None: this release cannot read it."""
    jobs: int
    """So many jobs of a cluster, or clusters of one job, are meant; 0: it is not about many."""


def read(shard: str, row: asyncpg.Record, job: str | None) -> Row | None:
    """A stored event; `job`: the only one that is asked for. None: it is not about that one."""
    entry = Entry(row["stream"], row["ver"], row["type"], row["data"])
    jobs = 0
    if stands_for_many(entry):
        try:
            if job is not None:
                name = job.partition("@")[0]
                alone = of_stream(entry, f"job/{name}") or of_stream(
                    entry, f"cluster/{name.partition('.')[0]}"
                )
                if alone is None:
                    return None
                entry = alone
            else:
                together = many(entry)
                jobs = singles_of(together)
                kind, data = (
                    (_SUBMITTED, entry.data)
                    if isinstance(together, ClustersSubmitted)
                    else (together.type, bytes(together.data))
                )
                entry = Entry(entry.stream, entry.version, kind, data)
        except UnknownEventError:
            pass  # it is shown as what it is
    return Row(
        shard=shard,
        frame=row["frame"],
        position=row["pos"],
        at=row["at"],
        stream=entry.stream,
        type=entry.type,
        event=_decoded(entry.data),
        jobs=jobs,
    )


def _decoded(data: bytes) -> Event | None:
    try:
        return decode(data)
    except UnknownEventError:
        return None


def pattern_of(kind: str) -> str:
    """The pattern of types that somebody means: `job` all events of jobs, `job.held` every version of it."""
    noun, dot, _ = kind.partition(".")
    if not dot:
        return noun if "*" in noun else f"{noun}.*"
    return kind if kind.endswith("*") else f"{kind}/*"


def takes(row: Row, patterns: list[str]) -> bool:
    """Whether the event is of one of the kinds."""
    return not patterns or any(fnmatch.fnmatchcase(row.type, pattern) for pattern in patterns)


def cluster_of(stream: str) -> int | None:
    """The cluster that a stream is about; None: about none."""
    noun, _, name = stream.partition("/")
    number = name.partition(".")[0]
    return int(number) if noun in {"job", "jobs", "cluster", "factory"} and number.isdecimal() else None


def record(row: Row, viewer: Viewer, owner: str) -> LogRecord:
    """The event as somebody sees it; `owner`: whose job it is, empty if that is nobody's."""
    fields = _fields(row, viewer, owner)
    return LogRecord(
        id=f"{row.shard}:{row.position}",
        shard=row.shard,
        frame=row.frame,
        at=row.at,
        stream=row.stream,
        type=row.type,
        sentence=_sentence(row, fields),
        jobs=row.jobs,
        event=fields,
    )


def filter_ad(row: Row, viewer: Viewer, owner: str) -> Ad:
    """What a filter can be about."""
    plain: Ad = {
        name.title().replace("_", ""): value
        for name, value in _fields(row, viewer, owner).items()
        if isinstance(value, str | int | float | bool)
    }
    return {
        **plain,
        "Kind": row.type.partition("/")[0],
        "Shard": row.shard,
        "Stream": row.stream,
        "Time": row.at.timestamp(),
    }


def _fields(row: Row, viewer: Viewer, owner: str) -> dict[str, Any]:
    event = row.event
    if event is None:
        return {}
    if isinstance(event, ClusterSubmitted | FactorySubmitted):
        return {"owner": event.owner, "jobs": len(event.rows)}
    if isinstance(event, ClustersSubmitted):
        return {"owner": event.owner, "first": event.first, "jobs": len(event.rows)}
    if isinstance(event, PayloadEvent) and event.by != viewer.name:
        return {"by": event.by}
    fields: dict[str, Any] = msgspec.to_builtins(event)
    fields.pop("event", None)
    for name, value in fields.items():
        if name in {"attributes", "slot_ad"} and isinstance(value, dict):
            fields[name] = viewer.sees(cast("Ad", value), owner)
    return fields


def _sentence(row: Row, fields: dict[str, Any]) -> str:
    if row.event is None:
        return "this release cannot read it"
    if isinstance(row.event, PayloadEvent) and len(fields) == 1:
        return f"the pilot of {row.event.by} has reported what it runs"
    if "attributes" in fields:
        return f"edited {', '.join(fields['attributes'])}"
    return sentence(row.event)[0]
