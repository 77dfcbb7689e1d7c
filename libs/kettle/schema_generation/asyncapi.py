"""
Everything that passes on the bus, as one AsyncAPI 3.0 document.

Its schemas are in the dialect that AsyncAPI takes without being told, draft 7. What is msgpack on the wire is described
as the JSON that it corresponds to: bytes are base64 there.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kettle.schema_generation.json_schema import Document, definitions, is_array, is_object
from kettle_wire import cloud_events
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.commands.catalogue import ENDPOINTS
from kettle_wire.endpoint import Endpoint, Refusal
from kettle_wire.events.codec import CODEC
from kettle_wire.frames import Frame, Hollow
from kettle_wire.worker_reports import Reports

VERSION: Final = "1"
"""Of the document: raised when a channel changes its meaning. Types of events have versions of their own."""
MSGPACK: Final = "application/msgpack"
CLOUDEVENT: Final = "application/cloudevents+json"

_ABOUT: Final = """\
The bus of a Kettle pool: NATS, with JetStream.  The messages called `send` are published by the pool, those called
`receive` are what it can be asked.

Parameters are single tokens, encoded as the reference of subjects says; only `type` is two, `noun.verb`.
Payloads of the type application/msgpack are described as the JSON that they correspond to, with bytes as base64.
A field with a default may be absent, and readers pass over fields that they do not know.
"""

_PARAMETERS: Final[Mapping[str, str]] = {
    "pool": "The pool's name.",
    "shard": "A shard of the event log: `schedd.<name>`, `negotiator`, `collector`.",
    "owner": "Whose job it is.",
    "cluster": "The number of the submission.",
    "proc": "The number of the job in its cluster, or `-` for what happens to the whole cluster.",
    "schedd": "The access point whose jobs are reported.",
    "startd": "The machine that reports.",
    "name": "The name of the service that is asked, or that a notice is about.",
    "caller": "Who asks: `d-<role>` for a service, `u-<login>` for a person.",
}

_CHANNELS: Final[Mapping[str, tuple[str, str]]] = {
    "frames": (
        "kettle.{pool}.evt.{shard}",
        "What one commit recorded. Stored in one stream for each shard, whose sequence is the number of the frame.",
    ),
    "tail": (
        "kettle.{pool}.tail.{owner}.{cluster}.{proc}.{type}",
        "Single events of somebody's jobs, as they happen. Not stored under this subject.",
    ),
    "tailPool": (
        "kettle.{pool}.tail.pool.{type}",
        "Single events that are no job's: of machines, claims and negotiations. Stored in the stream MONITOR.",
    ),
    "monitor": (
        "kettle.{pool}.monitor.{owner}.{type}",
        "The events of `tail`, as the stream MONITOR stores them: the ids of the job are in the envelope alone.",
    ),
    "work": (
        "kettle.{pool}.work.{schedd}.{startd}",
        "What a machine says about the attempts on it, repeated until it is recorded. Stored in the stream WORK.",
    ),
    "scheddNotice": (
        "kettle.{pool}.notice.schedd.{name}",
        "A schedd has just started. It may be lost: it only saves waiting.",
    ),
    "startdNotice": (
        "kettle.{pool}.notice.startd.{name}",
        "A startd has just started; its name in UTF-8. It may be lost: it only saves waiting.",
    ),
}
"""Channel -> address and meaning. `tests/unit/schemas` holds the addresses to `kettle_wire.subjects`."""

_TYPED: Final = {"tail": True, "tailPool": False, "monitor": True}
"""Channels with single events -> whether of jobs."""


def asyncapi() -> Document:
    """The document."""
    channels, operations, messages = _events()
    for endpoint in ENDPOINTS:
        _command(endpoint, channels, operations, messages)
    return {
        "asyncapi": "3.0.0",
        "id": "urn:kettle:asyncapi",
        "info": {
            "title": "Kettle",
            "version": VERSION,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": MSGPACK,
        "servers": {
            "bus": {
                "host": "{host}",
                "protocol": "nats",
                "description": "The NATS server of the pool.",
                "variables": {"host": {"default": "127.0.0.1:4222", "description": "As in KETTLE_NATS_URL."}},
            }
        },
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "schemas": _schemas()},
    }


# -- what the pool publishes -------------------------------------------------------------------------------------------


def _events() -> tuple[Document, Document, Document]:
    carried: dict[str, dict[str, Document]] = {
        "frames": {
            "frame": _message("A frame", _ref(Frame)),
            "hollow": _message("A frame that is too large for a message, without its entries", _ref(Hollow)),
        },
        "work": {"reports": _message("Worker reports", _ref(Reports))},
        "scheddNotice": {
            "scheddStarted": _message("Nothing but the subject", {"type": "string", "maxLength": 0})
        },
        "startdNotice": {"startdStarted": _message("The startd's name", {"type": "string"}, "text/plain")},
    }
    published = {tag: _published(tag) for tag in cloud_events.TYPES.values()}
    for channel, of_jobs in _TYPED.items():
        carried[channel] = {
            tag.replace("/", "."): message
            for tag, message in published.items()
            if (_noun(tag) in cloud_events.OVER_JOBS) == of_jobs
        }
    channels = {
        name: _channel(address, about, list(carried[name])) for name, (address, about) in _CHANNELS.items()
    }
    for name, of_jobs in _TYPED.items():
        kinds = {
            cloud_events.kind(tag) for tag in published if (_noun(tag) in cloud_events.OVER_JOBS) == of_jobs
        }
        channels[name]["parameters"]["type"] = {
            "description": "What happened, `noun.verb`.",
            "enum": sorted(kinds),
        }
    operations: Document = {
        f"publish.{name}": {
            "action": "send",
            "channel": _to("channels", name),
            "summary": about.partition(".")[0],
        }
        for name, (_, about) in _CHANNELS.items()
    }
    return channels, operations, {name: each for many in carried.values() for name, each in many.items()}


def _noun(tag: str) -> str:
    return tag.partition(".")[0]


def _published(tag: str) -> Document:
    kind = CODEC.written[tag]
    payload = {
        "allOf": [
            _ref(cloud_events.CloudEvent),
            {"properties": {"type": {"const": cloud_events.type_of(tag)}, "data": _ref(kind)}},
        ]
    }
    summary = (kind.__doc__ or "").strip().partition("\n")[0]
    return _message(summary, payload, CLOUDEVENT) | {"title": tag}


# -- what it can be asked ----------------------------------------------------------------------------------------------


def _command(
    endpoint: Endpoint[Any, Any], channels: Document, operations: Document, messages: Document
) -> None:
    name = f"{endpoint.role}.{endpoint.verb}"
    about = (endpoint.request.__doc__ or "").strip().partition("\n")[0]
    messages[f"{name}.request"] = _message(f"Request: {about}", _ref(endpoint.request))
    messages[f"{name}.reply"] = _message(f"Reply of {name}", _ref(endpoint.reply))
    messages["refusal"] = _message("A service refuses", _ref(Refusal)) | {
        "headers": {
            "type": "object",
            "properties": {
                "Nats-Service-Error-Code": {"type": "string", "description": "The code of the refusal."},
                "Nats-Service-Error": {"type": "string", "description": "Its sentence, on one line."},
            },
            "required": ["Nats-Service-Error-Code", "Nats-Service-Error"],
        }
    }
    address = f"kettle.{{pool}}.cmd.{endpoint.role}.{{name}}.{endpoint.verb}.{{caller}}"
    channels[name] = _channel(address, about, [f"{name}.request"])
    replies = _channel(
        None, f"The answer to {name}, at the inbox that the request names.", [f"{name}.reply", "refusal"]
    )
    channels[f"{name}.replies"] = replies
    operations[name] = {
        "action": "receive",
        "channel": _to("channels", name),
        "summary": about,
        "description": f"For: {', '.join(sorted(endpoint.callers))}. A repeat: {endpoint.repeat}.",
        "tags": [{"name": endpoint.role}],
        "reply": {"channel": _to("channels", f"{name}.replies")},
    }


# -- parts -------------------------------------------------------------------------------------------------------------


def _channel(address: str | None, about: str, messages: list[str]) -> Document:
    named = [name for name in _PARAMETERS if address is not None and f"{{{name}}}" in address]
    return {
        "address": address,
        "description": about,
        "messages": {name: _to("components", "messages", name) for name in messages},
        **({"parameters": {name: {"description": _PARAMETERS[name]} for name in named}} if named else {}),
    }


def _message(summary: str, payload: Document, content: str = MSGPACK) -> Document:
    return {"summary": summary, "contentType": content, "payload": payload}


def _to(*path: str) -> Document:
    return {"$ref": "#/" + "/".join(path)}


def _ref(kind: Any) -> Document:
    return _to("components", "schemas", kind.__name__)


def _schemas() -> Document:
    kinds: list[Any] = [Frame, Hollow, Reports, Refusal, SubmitterAd, cloud_events.CloudEvent]
    kinds += [*CODEC.written.values(), *CODEC.superseded.values()]
    kinds += [kind for endpoint in ENDPOINTS for kind in (endpoint.request, endpoint.reply)]
    _, found = definitions(list(dict.fromkeys(kinds)), "#/components/schemas/{name}")
    return {name: _draft_7(schema) for name, schema in found.items()}


def _draft_7(schema: Any) -> Any:
    """
    A schema of 2020-12 in the words of draft 7: arrays of fixed items, and what stands beside a reference.
    """
    if is_array(schema):
        return [_draft_7(each) for each in schema]
    if not is_object(schema):
        return schema
    found = dict(_translated(schema))
    if "$ref" in found and len(found) > 1:
        return {"allOf": [{"$ref": found.pop("$ref")}], **found}
    return found


def _translated(schema: Document) -> Iterator[tuple[str, Any]]:
    for key, value in schema.items():
        if key == "discriminator":
            continue  # says what the types' own constants say, in a form that AsyncAPI does not have
        if key == "prefixItems":
            yield "items", _draft_7(value)
        elif key == "items" and "prefixItems" in schema:
            yield "additionalItems", _draft_7(value)
        elif key in {"default", "enum", "const"}:
            yield key, value
        else:
            yield key, _draft_7(value)
