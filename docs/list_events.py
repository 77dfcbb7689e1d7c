"""
Makes `docs/reference/events.md`: everything that is recorded.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

import inspect
from collections.abc import Mapping
from typing import Any, Final, get_args, get_origin

import msgspec

from kettle.schema_generation.field_descriptions import meanings
from kettle.schema_generation.json_schema import structs
from kettle.schema_generation.markdown import default_of, one_line, table, type_name
from kettle_wire.ads import Scalar
from kettle_wire.events import Event
from kettle_wire.events.codec import CODEC, Codec, successor_of

_WRITERS: Final[Mapping[str, tuple[str, str, str]]] = {
    "cluster": ("schedd", "schedd.<name>", "cluster/<cluster>"),
    "clusters": ("schedd", "schedd.<name>", "clusters/<first of 500 numbers>"),
    "factory": ("schedd", "schedd.<name>", "factory/<cluster>"),
    "job": ("schedd", "schedd.<name>", "job/<cluster>.<proc>"),
    "jobs": ("schedd", "schedd.<name>", "jobs/<cluster>"),
    "claim": ("schedd", "schedd.<name>", "claim/<public id>"),
    "cycle": ("negotiator", "negotiator", "cycle/<n>"),
    "machine": ("collector", "collector", "machine/<name>"),
    "ad": ("collector", "collector", "registered/<key of the ad>"),
    "principal": ("negotiator", "negotiator", "principal/<submitter>"),
    "workflow": ("dagman", "dagman.<name of the schedd>", "workflow/<cluster>"),
    "interactive": ("sessions", "sessions.<name of the schedd>", "session/<id>"),
    "queue": ("sessions", "sessions.<name of the schedd>", "queue/<id>"),
    "tasks": ("sessions", "sessions.<name of the schedd>", "tasks/<id of the queue>.<part>"),
    "routes": ("ce", "ce.<name of the schedd>", "routes/file"),
    "route": ("ce", "ce.<name of the schedd>", "decision/<cluster>, route/<name>"),
    "payload": ("ce", "ce.<name of the schedd>", "payload/<cluster>.<proc>"),
    "pilot": ("ce", "ce.<name of the schedd>", "payload/<cluster>.<proc>"),
    "drain": ("ce", "ce.<name of the schedd>", "door/drain"),
    "batch": ("ce", "ce.<name of the schedd>", "batch/<claim>"),
    "lease": ("scaler", "scaler", "lease/<id>"),
    "orphan": ("scaler", "scaler", "orphan/<provider>.<digest of its handle>.<second>"),
    "host": ("scaler", "scaler", "host/<machine>"),
    "offer": ("scaler", "scaler", "offer/<pool>.<offer>"),
    "template": ("scaler", "scaler", "template/<pool>.<key>"),
    "provider": ("scaler", "scaler", "provider/<name>"),
    "plan": ("scaler", "scaler", "plan/made"),
    "pool": ("scaler", "scaler", "pool/<name>"),
    "issuer": ("iam", "identity", "issuer/<URL>"),
    "rules": ("iam", "identity", "rules/<path>"),
    "ban": ("iam", "identity", "ban/<whom>"),
    "jointoken": ("iam", "identity", "jointoken/<id>, alarm/join"),
    "worker": ("iam", "identity", "worker/<name>"),
    "client": ("iam", "identity", "client/<id>"),
    "session": ("iam", "identity", "session/<id>"),
    "token": ("iam", "identity", "issued/<subject>, jobtokens/<id>, token/<id>/<end>"),
    "jobtokens": ("iam", "identity", "jobtokens/<id>"),
    "credential": ("iam", "identity", "credential/<owner>/<service>/<handle>"),
    "value": ("iam", "identity", "values/<owner>"),
    "values": ("iam", "identity", "values/<owner>"),
    "tokenrequest": ("iam", "identity", "tokenrequest/<number>"),
    "autoapproval": ("iam", "identity", "autoapproval/<netblock>"),
    "access": ("iam", "identity", "alarm/denied"),
    "administrator": ("iam", "identity", "deeds/<service>"),
}
"""First word of a type -> who writes its events, into which shard, on which stream."""


def events_page(codec: Codec[Any] = CODEC) -> str:
    """Every recorded type."""
    parts = ["# Recorded events\n", _EVENTS_HEAD]
    rows = [(f"`{tag}`", *_place(tag)) for tag in codec.written]
    parts.append(table(("type", "written by", "shard", "stream"), rows))
    for tag, kind in codec.written.items():
        parts += [f"## `{tag}`\n", f"{_paragraphs(kind)}\n", _fields_table(kind)]
    for tag, old in codec.superseded.items():
        newer = successor_of(old).__struct_config__.tag
        parts += [f"## `{tag}`, superseded\n", f"Not written any more; readers get it as `{newer}`.\n"]
        parts += [f"{_paragraphs(old)}\n", _fields_table(old)]
    parts.append("## Values inside events\n")
    for struct in _inside([*codec.written.values(), *codec.superseded.values()]):
        parts.append(f"### {struct.__name__}\n")
        parts.append(f"{_paragraphs(struct)}\n")
        parts.append(_fields_table(struct))
    return "\n".join(parts)


def _place(tag: str) -> tuple[str, str, str]:
    writer, shard, stream = _WRITERS[tag.partition(".")[0]]
    return writer, f"`{shard}`", f"`{stream}`"


def _paragraphs(kind: type) -> str:
    return "\n\n".join(one_line(part) for part in inspect.cleandoc(kind.__doc__ or "").split("\n\n"))


def _fields_table(kind: type[msgspec.Struct]) -> str:
    said = meanings(kind)
    rows = [
        (
            f"`{field.name}`",
            _wire_type(field.type),
            "always there" if field.required else default_of(field),
            said.get(field.name, ""),
        )
        for field in msgspec.structs.fields(kind)
    ]
    return table(("field", "type", "if absent", "meaning"), rows)


def _wire_type(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list:
        return f"list of {_wire_type(inner[0])}"
    if origin is dict:
        return "ad"
    if kind == Scalar:
        return "value"
    if kind is msgspec.Raw:
        return "event"
    return type_name(kind)


def _inside(kinds: list[type[Event]]) -> list[type[msgspec.Struct]]:
    found = {kind.__name__: kind for kind in structs(kinds) if kind not in kinds}
    return [found[name] for name in sorted(found)]


_EVENTS_HEAD: Final = """\
Everything that is ever recorded.
An event is msgpack: a map with the key `event`, which is the type, and the fields that differ from their defaults.
The meaning of a type `noun.verb/N` never changes; a new meaning is a new `N` ([how](../explanation/event-evolution.md)).
There is a [JSON Schema](schemas.md) for each.

Events travel inside *frames*: what one commit wrote, as one message on the bus ([subjects](subjects.md), [how to read them](../how-to/watch-events.md)).
The time of an event is that of its frame; times inside events are those of somebody else's clock and say so.

"ad" is a map from attribute name to a value: true or false, a number, a text, or `{"expr": TEXT}` for a ClassAd expression.
"""
