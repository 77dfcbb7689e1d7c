"""
Single events for all subscribers: one recorded event as one message of JSON, in the CloudEvents 1.0 envelope.

The envelope's attributes that CloudEvents does not know (`owner`, `frame`, ...) are its extensions: names of lower-case
letters and digits, values that are text, 32-bit integers or booleans.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec

from kettle_wire.events.cluster import ClustersSubmitted
from kettle_wire.events.codec import EVENT_TYPES, Recorded
from kettle_wire.events.iam import IdentityEvent
from kettle_wire.events.many_jobs import JobsChanged
from kettle_wire.events.payload import PayloadEvent
from kettle_wire.events.workflow import WorkflowEvent
from kettle_wire.subjects import token, untoken

SPECVERSION: Final = "1.0"
JSON: Final = "application/json"
NAMESPACE: Final = "org.kettle"
OVER_JOBS: Final = ("cluster", "job")
"""The nouns of the events that belong to somebody's jobs; all others are the pool's."""


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One published event, as in https://github.com/cloudevents/spec (version 1.0.2, JSON format)."""

    specversion: str
    id: str
    """
    `<shard>:<position>`, or `<shard>:<position>.<proc>` where many jobs have one position. An id is never used again in
    a pool, so a reader recognizes a repeated event.
    """
    source: str
    """`/kettle/<pool>/<shard>`, parts encoded as subject tokens are."""
    type: str
    """`org.kettle.<noun>.<verb>.v<N>`."""
    subject: str
    """
    `<cluster>.<proc>` for the events of a job, else the stream: `cluster/12`, `machine/node1`, `cycle/7`.
    """
    time: str
    """When it was decided, RFC 3339 with microseconds, UTC."""
    dataschema: str
    datacontenttype: str = ""
    """`application/json`; not there if there is no `data`."""
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The event. Not there if it is larger than the gateway publishes: `dataref` says so."""
    dataref: str = ""
    """Only if `data` is left out: where the event is in the log, `/kettle/<pool>/<shard>/<position>`."""
    stream: str
    """The stream of the log: `job/12.0`, `machine/node1`."""
    version: int
    """Counts the events of a stream from 1, without gaps."""
    epoch: int
    """Which period of ownership of the shard recorded it."""
    frame: str
    """The number of the commit, in decimal: it may need more than the 32 bits of an integer here."""
    owner: str = ""
    """Whose job it is; not there for an event of the pool."""
    schedd: str = ""
    """The access point; not there for events of other services."""
    jobs: int = 0
    """How many jobs a submission has; only with `cluster.submitted` and `factory.submitted`."""
    traceparent: str = ""
    """The job's trace, W3C Trace Context; only with the events of a job."""


_decode_envelope: Final = msgspec.json.Decoder(CloudEvent).decode
_decode_data: Final = msgspec.json.Decoder(Recorded).decode


def decode(data: bytes) -> CloudEvent:
    """Read a message; raises `msgspec.MsgspecError` on what is not one."""
    return _decode_envelope(data)


def event_of(envelope: CloudEvent) -> Recorded | None:
    """The event itself; None if it was too large to be published. Raises `msgspec.MsgspecError`."""
    return None if envelope.data is msgspec.UNSET else _decode_data(envelope.data)


def kind(tag: str) -> str:
    """`noun.verb` of a tag `noun.verb/N`: the end of the subject, the same for all versions of a type."""
    return tag.partition("/")[0]


@lru_cache(maxsize=256)
def type_of(tag: str) -> str:
    """The CloudEvents type of a tag: `org.kettle.job.held.v1` of `job.held/1`."""
    name, _, number = tag.partition("/")
    return f"{NAMESPACE}.{name}.v{number}"


def kind_of_type(type_: str) -> str:
    """`job.held` of `org.kettle.job.held.v1`."""
    return type_.removeprefix(f"{NAMESPACE}.").rpartition(".")[0]


@lru_cache(maxsize=256)
def escaped(name: str) -> str:
    """Any text as a part of an identifier, with `%XX` as in a URI."""
    return token(name).replace("=", "%")


def unescaped(text: str) -> str:
    """Inverse of `escaped`; raises ValueError for what it does not make."""
    return untoken(text.replace("%", "="))


def source_of(pool: str, shard: str) -> str:
    """Where events of a shard come from, a URI reference."""
    return f"/kettle/{escaped(pool)}/{escaped(shard)}"


@lru_cache(maxsize=64)
def rfc3339(at: int) -> str:
    """
    Microseconds since the epoch as text, UTC. The events of one commit ask for the same again and again.
    """
    seconds, micros = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros:06d}Z"


@lru_cache(maxsize=256)
def schema_of(tag: str) -> str:
    """The name of the JSON Schema of an event's data."""
    return f"urn:kettle:event:{tag.replace('/', ':')}"


def _types() -> dict[str, str]:
    # Of what is recorded for many jobs or clusters at once the event of each is published, as if it had been recorded alone.
    # Who may do what and what pilots run is not everybody's business, and of nodes of workflows their jobs' events are published.
    kinds = [
        kind
        for kind in EVENT_TYPES
        if kind not in {JobsChanged, ClustersSubmitted}
        and not issubclass(kind, IdentityEvent | PayloadEvent | WorkflowEvent)
    ]
    return {type_of(tag): tag for tag in map(str, (kind.__struct_config__.tag for kind in kinds))}


TYPES: Final[Mapping[str, str]] = MappingProxyType(_types())
"""Every type that is published, with the tag of the event that it carries."""
