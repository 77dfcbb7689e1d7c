#!/usr/bin/env python3
"""
Makes what follows from the code: the pages of `docs/reference` on attributes, codes, settings, commands and events,
the pictures of the imports and of the starter's states, the dashboards of `infra/grafana`, the templates of `infra/opensearch`, `schemas/json` and
`schemas/telemetry`.

    .venv/bin/python docs/generate.py            writes them
    .venv/bin/python docs/generate.py --check    says which ones are not what the code makes of them

The schemas are promises: nothing is written over one that the code does not keep any more; see
docs/explanation/event-evolution.md.

`tests/packaging` holds the committed pages to this, so a setting, an option or an event without a page is a failing test.
"""

import argparse
import importlib
import inspect
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin

import msgspec

from kettle.pool.personal_settings import PERSONAL
from kettle.runtime import Settings
from kettle.runtime.authorization import Authorization
from kettle.runtime.setting_types import FOREVER
from kettle.runtime.settings import RESERVED, RESERVED_PREFIXES
from kettle.runtime.telemetry_settings import TelemetrySettings
from kettle.schema_generation import Document, asyncapi, breaks, documents, incompatible, openapi, text
from kettle.schema_generation.field_descriptions import meanings
from kettle.schema_generation.json_schema import structs
from kettle.submit.commands import NAMES as SUBMIT
from kettle_services.cli.commands import GROUPS, module_of
from kettle_services.cli.condor_config.tables import KNOBS, METAKNOBS
from kettle_services.condor.start import COMMANDS as CONDOR
from kettle_services.provisioner.providers.catalogue import KINDS, settings_class
from kettle_services.provisioner.providers.settings import ProviderSettings
from kettle_wire import codes
from kettle_wire.ads import Scalar
from kettle_wire.events import Event
from kettle_wire.events.codec import CODEC, Codec, successor_of

TOP: Final = Path(__file__).parents[1]
PAGES: Final = TOP / "docs" / "reference"
EXPLANATION: Final = TOP / "docs" / "explanation"
SCHEMAS: Final = TOP / "schemas" / "json"
TELEMETRY: Final = TOP / "schemas" / "telemetry" / "telemetry.json"
OPENSEARCH: Final = TOP / "infra" / "opensearch"
GRAFANA: Final = TOP / "infra" / "grafana"
_DRAWING: Final = TOP / "docs" / "draw_imports.py"
_STARTER: Final = TOP / "docs" / "draw_starter.py"
_JOB: Final = TOP / "docs" / "draw_job.py"
_PACKAGES: Final = TOP / "docs" / "list_packages.py"
_DOCUMENTS: Final = TOP / "docs" / "list_documents.py"
_REQUESTS: Final = TOP / "docs" / "list_requests.py"
_ROUTES: Final = TOP / "docs" / "list_routes.py"
_SIGNALS: Final = TOP / "docs" / "list_signals.py"

_MADE: Final = (
    "<!-- Made by docs/generate.py from the code.  Do not edit: change the code and run it again. -->\n"
)

_UNSAID: Final[Mapping[str, str]] = {
    "pool": "The pool's name: part of every subject on the bus.",
    "name": "The service's name on the bus.",
    "nats_url": "The NATS server.",
    "database_url": "The PostgreSQL database with the event log.",
    "log_level": "The least important lines that are written.",
    "log_format": "`auto`: text on a terminal, JSON elsewhere.",
    "daemon_list": "The services that the master runs.",
    "backoff_constant": "Seconds before a service that ended is started again, at least.",
    "backoff_unit": "Seconds added to that, multiplied by the factor at each further failure.",
    "backoff_factor": "See `backoff_unit`.",
    "backoff_ceiling": "Seconds, the longest wait before a restart.",
    "retry_ceiling": "Seconds, the longest wait between two repeats.",
    "max_jobs_per_submission": "The most jobs in one submission.",
    "max_jobs_per_owner": "The most jobs of one person in the queue.",
}
"""What some fields mean that stand without a docstring because their name says it to who reads the code."""

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


# -- reading the source ------------------------------------------------------------------------------------------------


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines) + "\n"


def type_name(kind: Any) -> str:
    """A type in a reader's words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = [limit for meta in inner[1:] for limit in _limits(meta)]
        return ", ".join([type_name(inner[0]), *limits])
    if origin is Literal:
        return "one of " + ", ".join(f"`{value}`" for value in inner)
    if origin in {tuple, list}:
        return f"list of {type_name(inner[0])}"
    if origin is dict:
        return "table"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(f"`{each.value}`" for each in kind)
    if origin is not None or isinstance(kind, str):
        return " or ".join(type_name(part) for part in inner)
    names = {
        "str": "text",
        "float": "number",
        "int": "integer",
        "bool": "true or false",
        "NoneType": "nothing",
    }
    name = str(kind.__name__)
    return names.get(name, name)


def _limits(meta: object) -> Iterator[str]:
    for sign, name in (("≥", "ge"), (">", "gt"), ("≤", "le"), ("<", "lt")):
        value = getattr(meta, name, None)
        if value is not None and value != FOREVER:
            yield f"{sign} {int(value) if value == int(value) else value}"  # 1 and 1.0 are one limit


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "none, give it"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return f"`{msgspec.json.encode(value).decode()}`"


# -- settings ----------------------------------------------------------------------------------------------------------


def settings_kinds() -> dict[str, type[Settings]]:
    """Role -> its settings, for every service that has a module for them."""
    found: dict[str, type[Settings]] = {}
    for path in sorted((TOP / "services" / "kettle_services").glob("*/settings.py")):
        role = path.parent.name
        module = importlib.import_module(f"kettle_services.{role}.settings")
        found[role] = _settings_of(module)
    return found


def _settings_of(module: ModuleType) -> type[Settings]:
    [kind] = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Settings) and value.__module__ == module.__name__
    ]
    return kind


def without_meaning() -> list[str]:
    """Settings of which no page could say what they are: each needs a docstring below its field."""
    kinds: dict[str, type[Settings]] = {"kettle": Settings, **settings_kinds()}
    return [
        f"{role}.{field.name}"
        for role, kind in kinds.items()
        for field in msgspec.structs.fields(kind)
        if not _meaning(field.name, meanings(kind))
    ]


def _meaning(name: str, said: Mapping[str, str]) -> str:
    return said.get(name) or _UNSAID.get(name, "")


def settings_page() -> str:
    """Every setting of every service."""
    shared = {field.name: field for field in msgspec.structs.fields(Settings)}
    parts = [_MADE, "# Settings\n", _SETTINGS_HEAD]
    parts.append("## All services: `[kettle]`, `KETTLE_<NAME>`\n")
    parts.append(_settings_table(list(shared.values()), meanings(Settings), {}))
    for role, kind in settings_kinds().items():
        own = [
            field
            for field in msgspec.structs.fields(kind)
            if field.name not in shared or field.default != shared[field.name].default
        ]
        personal = {
            line.name: f"`{msgspec.json.encode(line.value).decode()}`" for line in PERSONAL.get(role, ())
        }
        parts.append(f"## {role}: `[{role}]`, `KETTLE_{role.upper()}_<NAME>`\n")
        parts.append(_settings_table(own, meanings(kind), personal))
        parts += _tables_within(role, own)
    parts += list(_provider_tables())
    parts.append("## Who may do what: `[authorization]`, `KETTLE_AUTHORIZATION` as JSON\n")
    parts.append("[Levels, lists, map files and rules](authorization.md).\n")
    parts.append(_settings_table(list(msgspec.structs.fields(Authorization)), meanings(Authorization), {}))
    parts.append("## Metrics for Prometheus: `[telemetry]`, `KETTLE_TELEMETRY` as JSON\n")
    parts.append("[How to monitor a pool](../how-to/monitor-with-prometheus.md).\n")
    parts.append(
        _settings_table(list(msgspec.structs.fields(TelemetrySettings)), meanings(TelemetrySettings), {})
    )
    parts.append("## Variables that are no setting\n")
    rows = [
        (f"`{name}`", f"{meaning[0].upper()}{meaning[1:]}.") for name, meaning in sorted(RESERVED.items())
    ]
    rows += [(f"`{prefix}*`", _PREFIXES[prefix]) for prefix in RESERVED_PREFIXES]
    parts.append(_table(("variable", "meaning"), rows))
    return "\n".join(parts)


def _settings_table(
    fields: list[msgspec.structs.FieldInfo],
    said: Mapping[str, str],
    personal: Mapping[str, str],
    *,
    unsaid: Mapping[str, str] = _UNSAID,
) -> str:
    titles = ("setting", "type", "default", *(["personal pool"] if personal else []), "meaning")
    rows = [
        (
            f"`{field.encode_name}`",
            type_name(field.type),
            _default(field),
            *([personal.get(field.encode_name, "")] if personal else []),
            said.get(field.name) or unsaid.get(field.name, ""),
        )
        for field in fields
    ]
    return _table(titles, rows)


def _tables_within(role: str, fields: Sequence[msgspec.structs.FieldInfo]) -> Iterator[str]:
    """What is in the tables that settings of a role are, each kind of them once."""
    named: dict[type[msgspec.Struct], list[str]] = {}
    for field in fields:
        for kind, several in _structs_in(field.type):
            name = f"{role}.{field.encode_name}"
            named.setdefault(kind, []).append(f"`[[{name}]]`" if several else f"`[{name}]`")
    for kind, names in named.items():
        tag = kind.__struct_config__.tag
        marked = f', {kind.__struct_config__.tag_field} = "{tag}"' if tag is not None else ""
        yield f"### {', '.join(names)}{marked}\n"
        yield f"{_line(inspect.getdoc(kind) or '')}\n"
        yield _settings_table(list(msgspec.structs.fields(kind)), meanings(kind), {}, unsaid={})


def _structs_in(kind: Any, *, several: bool = False) -> Iterator[tuple[type[msgspec.Struct], bool]]:
    """The structs of a setting's type, and whether there may be several of each."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind, several
    for inner in get_args(kind):
        yield from _structs_in(inner, several=several or get_origin(kind) in {tuple, list})


def _provider_tables() -> Iterator[str]:
    """What can be set about each kind of provider of machines, and what offers may say of it."""
    shared = msgspec.structs.fields(ProviderSettings)
    yield "## Providers of machines: `[provisioner.providers.NAME]`\n"
    yield f"`kind` is one of {', '.join(f'`{kind}`' for kind in KINDS)}.\n"
    yield "[How to give a pool machines](../how-to/get-machines-from-a-cloud.md).\n"
    yield "Each kind has:\n"
    yield _settings_table(list(shared), meanings(ProviderSettings), {})
    for kind in KINDS:
        settings = settings_class(kind)
        defaults = {field.name: field.default for field in shared}
        own = [
            field
            for field in msgspec.structs.fields(settings)
            if field.name not in defaults or field.default != defaults[field.name]
        ]
        yield f'### kind = "{kind}"\n'
        yield f"{' '.join((inspect.getdoc(settings) or '').split())}\n"
        yield _settings_table(own, meanings(settings), {})
        if options := msgspec.structs.fields(settings.OPTIONS):
            yield "`options` of an offer:\n"
            yield _settings_table(list(options), meanings(settings.OPTIONS), {})


_PREFIXES: Final = {
    "KETTLE_JOB_": "What a starter tells its job in the job's environment.",
    "KETTLE_TEST_": "What steers the test suite.",
}

_SETTINGS_HEAD: Final = """\
A service reads its settings once, when it starts.
They come from a TOML file and from the environment, in this order of strength:

1. the variable of the service, `KETTLE_SCHEDD_LEASE=20`;
2. the variable for all services, `KETTLE_LOG_LEVEL=debug`;
3. the table of the service in the file, `[schedd]`;
4. the table for all services in the file, `[kettle]`;
5. the default.

The file is `$KETTLE_CONFIG`, else `kettle.toml` in `$KETTLE_HOME` (default `~/.kettle`).
A name that is not known is refused with file and line, or with the variable, and with the nearest known name; the service ends with status 78.
All that is wrong is told at once.
`kettle config check` checks all services before anything changes; `kettle config show` prints each value with its origin, and `kettle config diff` what a reconfiguration would change ([how to](../how-to/change-the-configuration.md)).
Expressions are checked when they are read: their syntax, that their functions exist, and that a constant is of the type that is needed.
A list or a table in a variable is written as JSON.
Times are seconds.

The defaults are HTCondor's where HTCondor has the setting.
`kettle up` writes a `kettle.toml` with shorter times into a new pool's directory: the column "personal pool".
It never changes that file afterwards.
"""


# -- commands ----------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Every subcommand with its arguments."""
    parts = [_MADE, "# Commands\n", _COMMANDS_HEAD]
    for group, commands in GROUPS.items():
        parts.append(f"## {group[0].upper()}{group[1:]}\n")
        for name, says in commands.items():
            parts.append(f"### `kettle {name}`: {says}\n")
            parts.append(_command(name))
    return "\n".join(parts)


def _command(name: str) -> str:
    module = importlib.import_module(module_of(name))
    parser = argparse.ArgumentParser(prog=f"kettle {name}", description=module.HELP, add_help=False)
    module.arguments(parser)
    return "\n".join(_described(parser))


def _described(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A command with its arguments, then the commands within it."""
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001 - there is no public list
    inner = [command for action in actions for command in _within(action)]
    rows = [
        (_spelling(action), _line(action.help or "").replace("%%", "%"))
        for action in actions
        if action.dest != "help" and not _within(action)
    ]
    yield f"```text\n{(parser.description or '').strip()}\n```\n"
    if rows:
        yield _table(("argument", "meaning"), rows)
    for command in inner:
        yield f"#### `{command.prog}`\n"
        yield from _described(command)


def _within(action: argparse.Action) -> list[argparse.ArgumentParser]:
    choices = action.choices
    found: list[object] = [*cast("dict[str, object]", choices).values()] if isinstance(choices, dict) else []
    return [parser for parser in found if isinstance(parser, argparse.ArgumentParser)]


def _spelling(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        repeated = action.nargs in {"*", "+"}
        return f"`{metavar}{' ...' if repeated else ''}`"
    takes = "" if action.nargs == 0 else f" {metavar}"
    return ", ".join(f"`{option}{takes}`" for option in action.option_strings)


def condor_page() -> str:
    """The commands of HTCondor, with what each says of itself."""
    parts = [_MADE, "# Commands of HTCondor\n", _CONDOR_HEAD]
    parts.append(
        _table(("command", "what it is for"), [(f"`{name}`", says) for name, (_, says) in CONDOR.items()])
    )
    for name, (module, _) in CONDOR.items():
        said = importlib.import_module(f"kettle_services.condor.commands.{module}").HELP[name]
        parts.append(f"## `{name}`\n\n```text\n{said.rstrip()}\n```\n")
    return "\n".join(parts)


_CONDOR_HEAD: Final = """\
`condor_... -help` says the same as this page; [coming from HTCondor](../how-to/come-from-htcondor.md) tells how to get these commands.

After one dash an option may be shortened as long as no other one is meant; after two it is written out.
The exit status is 0 for done, and for a query that finds nothing; 1 for refused, failed, and a mistake in what was typed.
"""

_COMMANDS_HEAD: Final = """\
`kettle COMMAND --help` says the same as this page.

Tables and colours are for terminals; `--json` prints JSON, for programs.
Colours follow `NO_COLOR` and `KETTLE_COLOR`.
The exit status is 0 for done, 1 for refused or failed, 2 for a mistake in what was typed.

The pool is the one in `--home`, else the one that `KETTLE_NATS_URL` names, else the one in `$KETTLE_HOME` (default `~/.kettle`).
"""


# -- events ------------------------------------------------------------------------------------------------------------


def events_page(codec: Codec[Any] = CODEC) -> str:
    """Every recorded type."""
    parts = [_MADE, "# Recorded events\n", _EVENTS_HEAD]
    rows = [(f"`{tag}`", *_place(tag)) for tag in codec.written]
    parts.append(_table(("type", "written by", "shard", "stream"), rows))
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
    return "\n\n".join(_line(part) for part in inspect.cleandoc(kind.__doc__ or "").split("\n\n"))


def _fields_table(kind: type[msgspec.Struct]) -> str:
    said = meanings(kind)
    rows = [
        (
            f"`{field.name}`",
            _wire_type(field.type),
            "always there" if field.required else _default(field),
            said.get(field.name, ""),
        )
        for field in msgspec.structs.fields(kind)
    ]
    return _table(("field", "type", "if absent", "meaning"), rows)


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


# -- attributes --------------------------------------------------------------------------------------------------------


class AttributesOf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one type of ad: type, unit, meaning by name, and who sets it if that is not `by`."""

    title: str
    about: str
    by: str
    attributes: dict[str, list[str]]


def attributes() -> dict[str, AttributesOf]:
    """Type of ad -> its attributes, from `schemas/kettle_wire/ads/attributes.toml`."""
    return msgspec.toml.decode(
        (TOP / "schemas/kettle_wire/ads/attributes.toml").read_bytes(), type=dict[str, AttributesOf]
    )


def condor_config_page() -> str:
    """What becomes of HTCondor's knobs."""
    settings = [
        (
            f"`{knob}`",
            ", ".join(
                f"`{name}` of `[{service}]`" for service, _, name in map(_parted, KNOBS.settings_of(knob))
            ),
        )
        for knob in sorted(KNOBS.settings, key=str.lower)
    ]
    families = [(f"`{knobs}`", said) for knobs, said in KNOBS.families.items()]
    reasons = [(f"`{pattern}`", f"{why[0].upper()}{why[1:]}.") for pattern, why in KNOBS.no_settings.items()]
    templates = [
        (
            f"`use {category.upper()} : {name}`",
            ", ".join(f"`{knob}`" for knob in _set_by(text)) or "nothing: it is so anyway",
        )
        for category, names in METAKNOBS.items()
        for name, text in names.items()
    ]
    return "\n".join(
        [
            _MADE,
            "# HTCondor's configuration\n",
            _CONDOR_CONFIG_HEAD,
            "## Knobs that are settings\n",
            _table(("knob", "setting"), settings),
            "## Knobs that make a setting together\n",
            "`*` is a name of the site's: of a group, a resource, a transform.\n",
            _table(("knobs", "setting"), families),
            "## Templates\n",
            "What `use CATEGORY : NAME` sets; the lines around it may change that.\n",
            _table(("statement", "knobs"), templates),
            "## Knobs without a setting\n",
            "The first pattern that matches counts; a knob that matches none has no counterpart.\n",
            _table(("knobs", "why"), reasons),
        ]
    )


def _parted(setting: str) -> tuple[str, str, str]:
    return setting.partition(".")


def _set_by(text: str) -> Iterator[str]:
    for line in text.strip().splitlines():
        name = line.partition("=")[0].strip()
        yield name if "=" in line and not line.startswith("use ") else line


_CONDOR_CONFIG_HEAD: Final = """\
`kettle convert condor_config FILE...` turns an HTCondor configuration into a `kettle.toml`.
It reads macros, `$(NAME:default)`, functions such as `$ENV()` and `$INT()`, `if`, `include`, `use`, values of several lines and the prefixes of daemons as HTCondor does.
What cannot be carried over is listed with its file, its line and the reason: nothing is left out silently.
`kettle config check FILE` looks at the result before it is used.

Expressions keep their text; macros in them are replaced.
A knob that is set for one daemon alone (`SCHEDD.CLAIM_WORKLIFE`) becomes that service's setting.
A knob for a daemon with a local name is listed: it belongs into `[master.environment."ROLE.NAME"]`.
"""


def attributes_page() -> str:
    """The reference of attributes."""
    made = f"""{_MADE}# Attributes

What is in the [ads](classad.md) of a pool, and who says so; `kettle status --ads TYPE` and `kettle q` show them.
A name is the same name however it is capitalised.
What an administrator or a submitter adds is not here.
Where the type is "expression", the value may be a plain one too; a list is an expression with a list or a record as its value.
"""
    titles = ("attribute", "type", "unit", "meaning", "set by")
    for kind in attributes().values():
        rows = [
            tuple([f"`{name}`", *about, kind.by][:5])
            for name, about in sorted(kind.attributes.items(), key=lambda each: each[0].lower())
        ]
        made += f"\n## {kind.title}\n\n{kind.about}\n" + (f"\n{_table(titles, rows)}" if rows else "")
    return made


# -- submit commands ---------------------------------------------------------------------------------------------------


class SubmitCommands(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of each command, by its name."""

    carried_out: dict[str, str]
    noted: dict[str, str]
    refused: dict[str, str]


def submit_commands() -> SubmitCommands:
    """From `docs/submit.toml`."""
    return msgspec.toml.decode((TOP / "docs/submit.toml").read_bytes(), type=SubmitCommands)


def submit_commands_page() -> str:
    """The reference of submit commands."""
    found = submit_commands()
    made = [_MADE, "# Submit commands\n", _SUBMIT_HEAD, "## Carried out\n"]
    made.append(_table(("command", "other spellings", "meaning"), list(_submit_rows(found.carried_out))))
    made += [
        "## Accepted without effect\n",
        "A job does the same with and without them; those that are an attribute are in its ad.\n",
    ]
    made.append(_table(("command", "other spellings", "why"), list(_submit_rows(found.noted))))
    made += ["## Refused\n", _REFUSED_HEAD]
    rows = [(f"`{name}`", why) for name, why in found.refused.items()]
    return "\n".join([*made, _table(("command", "why, and what to do instead"), rows)])


def _submit_rows(commands: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """One for each meaning: commands that stand together and have the same share it."""
    for meaning, group in groupby(commands, key=commands.__getitem__):
        names = list(group)
        spellings = [other for name in names for other in SUBMIT.get(name, ())]
        yield ", ".join(f"`{name}`" for name in names), ", ".join(f"`{each}`" for each in spellings), meaning


_SUBMIT_HEAD: Final = """\
What a [submit description](submit.md) may say, and what becomes of it.
Names are compared without regard to case.
"""

_REFUSED_HEAD: Final = """\
They are refused with their line, also by `condor_submit`.
It ignores commands of universes that there are not: `ec2_...`, `gce_...`, `azure_...`, `arc_...`, `vm_...`, `xen_...`, `java_...`; the universe itself is refused.
"""


# -- codes -------------------------------------------------------------------------------------------------------------

_CODES: Final[tuple[tuple[str, type[Enum]], ...]] = (
    ("Status", codes.JobStatus),
    ("Universes", codes.Universe),
    ("Reasons for a hold", codes.HoldCode),
    ("Subcodes of a hold", codes.HoldSubcode),
    ("Reasons why an attempt ended", codes.VacateCode),
    ("States of a node of a workflow", codes.NodeState),
    ("Jobs of a node", codes.NodePart),
    ("What happens to jobs of nodes", codes.NodeJobKind),
    ("Node values that are no exit code", codes.NodeValue),
    ("Status of a workflow", codes.DagStatus),
    ("Refusals", codes.RefusalCode),
)

_CODES_HEAD: Final = """\
# Codes

The numbers of HTCondor that stand in [ads](attributes.md) and [events](events.md), and the words with which commands are refused.
Programs find them in `kettle_wire.codes`; a code that is not there comes from a later version.
"""


def codes_page() -> str:
    """Every code with its name and what it means."""
    return _MADE + _CODES_HEAD + "".join(_codes(title, kind) for title, kind in _CODES)


def _codes(title: str, kind: type[Enum]) -> str:
    said = meanings(kind)
    rows = [(f"`{one.value}`", f"`{one.name}`", said[one.name]) for one in kind]
    what = _line(inspect.getdoc(kind) or "")
    return f"\n## {title}\n\n{what}\n\n{_table(('code', 'name', 'meaning'), rows)}"


# -- all ---------------------------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """File name -> text."""
    return {
        "attributes.md": attributes_page(),
        "codes.md": codes_page(),
        "submit-commands.md": submit_commands_page(),
        "settings.md": settings_page(),
        "commands.md": commands_page(),
        "condor-commands.md": condor_page(),
        "condor-config.md": condor_config_page(),
        "events.md": events_page(),
        "packages.md": _MADE + "\n" + runpy.run_path(str(_PACKAGES))["packages_page"](TOP),
        "documents.md": _MADE + "\n" + runpy.run_path(str(_DOCUMENTS))["documents_page"](),
        "rest.md": _MADE + "\n" + runpy.run_path(str(_ROUTES))["rest_page"](),
        "telemetry.md": _MADE + "\n" + runpy.run_path(str(_SIGNALS))["telemetry_page"](),
        "starter-machine.md": _MADE + "\n" + runpy.run_path(str(_STARTER))["starter_page"](),
        "job-machine.md": _MADE + "\n" + runpy.run_path(str(_JOB))["job_page"](),
        "requests.md": _MADE + "\n" + runpy.run_path(str(_REQUESTS))["requests_page"](),
    }


def pictures() -> dict[str, str]:
    """File name -> text."""
    draw = runpy.run_path(str(_DRAWING))["imports_picture"]
    starter = runpy.run_path(str(_STARTER))["starter_picture"]
    job = runpy.run_path(str(_JOB))
    return {
        "imports.svg": draw(_DRAWING.parents[1]),
        "starter-machine.svg": starter(),
        "job-phases.svg": job["job_picture"](),
        "attempt-phases.svg": job["attempt_picture"](),
    }


def schemas() -> dict[str, Document]:
    """File name -> document."""
    return {**documents(), "asyncapi.json": asyncapi(), "openapi.json": openapi()}


def published() -> dict[str, Document]:
    """The schemas that were written last, by file name."""
    return {
        path.relative_to(SCHEMAS).as_posix(): msgspec.json.decode(path.read_bytes())
        for path in sorted(SCHEMAS.rglob("*.json"))
    }


def files() -> dict[Path, bytes]:
    """Everything that is made."""
    made = {PAGES / name: page.encode() for name, page in pages().items()}
    made |= {EXPLANATION / name: picture.encode() for name, picture in pictures().items()}
    dashboards = runpy.run_path(str(GRAFANA / "make_dashboards.py"))["documents"]()
    templates = runpy.run_path(str(OPENSEARCH / "make_templates.py"))["documents"]()
    made |= {OPENSEARCH / name: text(document) for name, document in templates.items()}
    made[TELEMETRY] = text(runpy.run_path(str(_SIGNALS))["telemetry_document"]())
    made |= {GRAFANA / "dashboards" / name: text(document) for name, document in dashboards.items()}
    return made | {SCHEMAS / name: text(document) for name, document in schemas().items()}


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(
        description="Make the reference pages and schemas that follow from the code."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit status 1 if a file is stale"
    )
    check = parser.parse_args().check
    before = published()
    broken = incompatible(before, schemas())
    if "openapi.json" in before:
        broken += breaks(before["openapi.json"], openapi())
    if broken:
        sys.stdout.write("\n".join(broken) + "\n")
        return 1
    made = files()
    stale = [path for path, content in made.items() if not path.exists() or path.read_bytes() != content]
    gone = [SCHEMAS / name for name in before if SCHEMAS / name not in made]
    for path in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made[path])
        sys.stdout.write(f"{path.relative_to(TOP)} {'is stale' if check else 'written'}\n")
    for path in gone:
        if not check:
            path.unlink()
        sys.stdout.write(f"{path.relative_to(TOP)} {'is left over' if check else 'removed'}\n")
    return 1 if check and (stale or gone) else 0


if __name__ == "__main__":
    raise SystemExit(main())
