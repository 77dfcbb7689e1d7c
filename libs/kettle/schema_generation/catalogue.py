"""Which documents there are, and what they are called."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kettle.schema_generation.json_schema import Document, schema
from kettle_wire import cloud_events
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SlotSecret, SubmitterAd
from kettle_wire.commands.catalogue import ENDPOINTS
from kettle_wire.endpoint import Refusal
from kettle_wire.events.codec import CODEC, Codec
from kettle_wire.frames import Frame, Hollow
from kettle_wire.prominence.dry_run import DryRun
from kettle_wire.prominence.job import Job
from kettle_wire.prominence.workflow import Workflow
from kettle_wire.worker_reports import Reports

_OTHERS: Final[dict[str, tuple[str, Any]]] = {
    "ads/ad.json": ("ad", Ad),
    "ads/slot-secret.json": ("slot secret", SlotSecret),
    "ads/submitter.json": ("submitter ad", SubmitterAd),
    "commands/refusal.json": ("refusal", Refusal),
    "documents/dry-run.json": ("dry run of a workflow", DryRun),
    "documents/job.json": ("document of a job", Job),
    "documents/workflow.json": ("document of a workflow", Workflow),
    "frames/frame.json": ("frame", Frame),
    "frames/hollow.json": ("hollow frame", Hollow),
    "monitoring/cloudevent.json": ("published event", cloud_events.CloudEvent),
    "work/reports.json": ("worker reports", Reports),
}

LASTING: Final = ("events/", "frames/", "monitoring/")
"""
Documents of what is kept permanently, or read by unknown programs: see `kettle.schema_generation.compatibility`.
"""


@cache
def documents() -> Mapping[str, Document]:
    """Path -> JSON Schema, for all that is ever recorded, published, asked or answered."""
    found = event_schemas(CODEC)
    found |= {path: schema(kind, id_=_id(path), title=title) for path, (title, kind) in _OTHERS.items()}
    for endpoint in ENDPOINTS:
        for part, kind in (("request", endpoint.request), ("reply", endpoint.reply)):
            path = f"commands/{endpoint.role}.{endpoint.verb}.{part}.json"
            title = f"{part} of {endpoint.role} {endpoint.verb}"
            found[path] = schema(kind, id_=_id(path), title=title)
    return dict(sorted(found.items()))


def event_schemas(codec: Codec[Any]) -> dict[str, Document]:
    """Path -> JSON Schema of every type of event that can be read, the superseded ones too."""
    kinds = {**codec.written, **codec.superseded}
    return {
        event_path(tag): schema(kind, id_=cloud_events.schema_of(tag), title=tag)
        for tag, kind in sorted(kinds.items())
    }


def event_path(tag: str) -> str:
    """Where the schema of an event is: `events/job.held.1.json` for `job.held/1`."""
    return f"events/{tag.replace('/', '.')}.json"


def _id(path: str) -> str:
    """`urn:kettle:command:schedd.submit:request` of `commands/schedd.submit.request.json`."""
    kind, _, name = path.removesuffix(".json").partition("/")
    command, dot, part = name.rpartition(".")
    return f"urn:kettle:{kind.removesuffix('s')}:{command}{':' if dot else ''}{part}"
