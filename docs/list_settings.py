"""
Makes `docs/reference/settings.md`: every setting of every service, and the variables that are none.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

import importlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_args, get_origin

import msgspec

from kettle.pool.personal_settings import PERSONAL
from kettle.runtime import Settings
from kettle.runtime.authorization import Authorization
from kettle.runtime.setting_types import FOREVER
from kettle.runtime.settings import RESERVED, RESERVED_PREFIXES
from kettle.runtime.telemetry_settings import TelemetrySettings
from kettle.schema_generation.field_descriptions import meanings
from kettle.schema_generation.markdown import default_of, one_line, table, type_name
from kettle_services.provisioner.providers.catalogue import KINDS, settings_class
from kettle_services.provisioner.providers.settings import ProviderSettings

TOP: Final = Path(__file__).parents[1]

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
    parts = ["# Settings\n", _SETTINGS_HEAD]
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
    parts.append(table(("variable", "meaning"), rows))
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
            type_name(field.type, unlimited=FOREVER),
            default_of(field),
            *([personal.get(field.encode_name, "")] if personal else []),
            said.get(field.name) or unsaid.get(field.name, ""),
        )
        for field in fields
    ]
    return table(titles, rows)


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
        yield f"{one_line(inspect.getdoc(kind) or '')}\n"
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
