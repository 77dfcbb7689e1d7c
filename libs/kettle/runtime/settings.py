"""
The settings of a service: one frozen struct, filled from a TOML file and from the environment.

An unknown name is refused, because a setting that is silently ignored may be noticed only months later. The environment
overrides the file, a service's own setting overrides the shared one, and every refusal names the variable or the place
in the file that has to be changed.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar, cast, get_args, get_origin

import msgspec

from kettle.runtime.toml_lines import line_of

ROLES: Final = frozenset({
    "accounting", "cli", "collector", "gateway", "master", "negotiator", "schedd", "shadow", "startd", "starter",
})  # fmt: skip

RESERVED: Final[Mapping[str, str]] = {
    "KETTLE_CONFIG": "path of the TOML file that settings are read from",
    "KETTLE_PG_BIN": "directory of the PostgreSQL programs to use instead of the embedded ones",
    "KETTLE_NATS_BIN": "path of the nats-server to use instead of the embedded one",
    "KETTLE_FAULT_POINTS": "for tests: where a process is to die or stop",
    "KETTLE_FAULT_ONCE": "for tests: directory that remembers which of these has happened",
    "KETTLE_LIFELINE_FD": "set by the master: end of a pipe that breaks when the master dies",
    "KETTLE_JOBS_LIFELINE_FD": "set by the master: end of a pipe with which the jobs of a throw-away pool end",
    "KETTLE_COLOR": "always or never; otherwise colours are used on a terminal",
}
"""Variables that are no service's setting, with their meaning."""

RESERVED_PREFIXES: Final = ("KETTLE_JOB_", "KETTLE_TEST_")
"""
Variables that a starter gives its job, and those that steer the test suite: no service's setting either.
"""

_HIDDEN: Final = "kettle:hidden"
T = TypeVar("T")
Hidden = Annotated[T, msgspec.Meta(extra={_HIDDEN: True})]
"""A value that is never shown."""
Secret = Hidden[str]
"""A string that is never shown; of a URL only the password is hidden."""

_URL_PASSWORD: Final = re.compile(r"(?<=://)([^/@:\s]*):[^/@\s]*(?=@)")


class SettingsError(Exception):
    """The settings cannot be used; the message is a sentence for the person who wrote them."""


class SettingRefused(ValueError):  # noqa: N818 - what is refused is the setting
    """
    A value has the right type and makes no sense: `keys` lead to it from its service's table, the message says what is wrong.
    """

    def __init__(self, keys: Sequence[str], message: str) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


def redact(text: str) -> str:
    """Hide the passwords of the URLs in a text."""
    return _URL_PASSWORD.sub(r"\1:***", text) if "://" in text else text


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of every service.  A service subclasses it with its own fields and its own defaults."""

    pool: str = "personal"
    nats_url: Secret = "nats://127.0.0.1:4222"
    nats_credentials: str = ""
    """Path of a file, readable by its owner only, with the NKey seed that the service shows to the bus."""
    nats_replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    """How many servers of a NATS cluster keep a copy of each stream; 3 lets one of them die."""
    database_url: Secret = ""
    home: str = ""
    """Where the pool keeps its files on this machine; empty means `~/.kettle`."""
    archive_directory: str = ""
    """
    Where old events are as files, the same for all services that read the log; empty means `archive` in `home`.
    """
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "text"] = "auto"
    health_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Port on 127.0.0.1 of `/healthz` and `/readyz`; 0 means none."""
    otlp_endpoint: str = ""
    """Base URL of an OpenTelemetry collector (OTLP over HTTP); empty means no exporting."""
    trace_file: str = ""
    """File to which finished spans are appended as JSON lines; for tests and for a look at one job."""

    @property
    def home_path(self) -> Path:
        """The pool's directory on this machine, whether it exists or not."""
        return Path(self.home or "~/.kettle").expanduser()

    @property
    def archive_path(self) -> Path:
        """The directory of archived events, whether it exists or not."""
        if self.archive_directory:
            return Path(self.archive_directory).expanduser()
        return self.home_path / "archive"

    @classmethod
    def load(
        cls, role: str, *, environ: Mapping[str, str] | None = None, toml_path: Path | None = None
    ) -> Self:
        """
        The settings of one service from file and environment.

        Without `toml_path` the file is `$KETTLE_CONFIG`, else `kettle.toml` in the pool's directory if there is one.

        Raises:
            SettingsError: a name is unknown, a value has the wrong type, or the file cannot be read.
        """
        environ = os.environ if environ is None else environ
        path = toml_path or _config_path(environ)
        values = dict(_from_file(cls, role, path))
        values.update(_from_environment(cls, role, environ))
        fields = _fields(cls)
        for name, field in fields.items():
            if field.required and name not in values:
                raise SettingsError(f"{_prefix(role)}{name.upper()}: this setting has no default, give it.")
        try:
            # each value has been checked where its origin was known
            return cls(**{fields[name].name: value for name, value in values.items()})
        except SettingRefused as error:
            raise SettingsError(f"{_place(role, environ, path, error.keys)}: {error}") from error
        except ValueError as error:
            raise SettingsError(f"{role}: {error}") from error

    def __repr__(self) -> str:
        shown = (f"{f.name}={_show(f.type, getattr(self, f.name))}" for f in msgspec.structs.fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"

    def environ(self, role: str) -> dict[str, str]:
        """
        These settings as the variables from which `load(role)` makes them again; defaults are left out.

        It is how one service starts another: an environment is visible only to the account and to root,
        a command line to everyone.
        """
        shared = _fields(Settings)
        return {
            f"KETTLE_{name.upper()}" if name in shared else f"{_prefix(role)}{name.upper()}": text
            for name, field in _fields(type(self)).items()
            if (value := getattr(self, field.name)) != _default(field)
            for text in (_text(value),)
        }


class OwnerSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of every service that owns a shard of the log."""

    owner_lease: Annotated[float, msgspec.Meta(ge=1.0)] = 2.0
    """Seconds that the owner may be silent on the bus before a standby takes over."""


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode()


def _show(kind: Any, value: object) -> str:
    if not _is_secret(kind) or not value:
        return repr(value)
    return repr(redact(value)) if isinstance(value, str) and "://" in value else "'***'"


def _is_secret(kind: Any) -> bool:
    return get_origin(kind) is Annotated and any(
        isinstance(meta, msgspec.Meta) and (meta.extra or {}).get(_HIDDEN) for meta in get_args(kind)[1:]
    )


def _fields(kind: type[Settings]) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields by the name that people write: the field's name, unless that is a keyword of Python."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _prefix(role: str) -> str:
    return f"KETTLE_{role.upper().replace('-', '_')}_"


def _closest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _config_path(environ: Mapping[str, str]) -> Path | None:
    if named := environ.get("KETTLE_CONFIG"):
        return Path(named)
    usual = Path(environ.get("KETTLE_HOME") or "~/.kettle").expanduser() / "kettle.toml"
    return usual if usual.is_file() else None


def _place(role: str, environ: Mapping[str, str], path: Path | None, keys: Sequence[str]) -> str:
    variable = f"{_prefix(role)}{keys[0].upper()}"
    if variable in environ or path is None:
        return variable
    line = line_of(path.read_text(encoding="utf-8"), (role, *keys))
    return f"{path}:{line}" if line else f"{path}: [{role}] {'.'.join(keys)}"


def _from_file(kind: type[Settings], role: str, path: Path | None) -> Iterator[tuple[str, Any]]:
    if path is None:
        return
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot read the settings: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}.") from error
    for table in tables:
        if table != "kettle" and table not in ROLES and table != role:
            raise SettingsError(
                f"{path}: [{table}] is neither [kettle] nor a service{_closest(table, {'kettle', *ROLES})}"
            )
    fields, shared = _fields(kind), _fields(Settings)
    for table, known in (("kettle", shared), (role, fields)):
        content = tables.get(table, {})
        if not isinstance(content, dict):
            raise SettingsError(f"{path}: {table} must be a table, [{table}].")
        for name, value in cast("dict[str, Any]", content).items():
            where = f"{path}: [{table}] {name}"
            if name not in known:
                raise SettingsError(f"{where}: unknown setting{_closest(name, known)}")
            yield name, _checked(fields[name], value, where, strict=True)


def _from_environment(
    kind: type[Settings], role: str, environ: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    fields, shared = _fields(kind), _fields(Settings)
    own_names = {f"{_prefix(role)}{name.upper()}": name for name in fields}
    shared_names = {f"KETTLE_{name.upper()}": name for name in shared}
    # Shared first: what follows for this role in particular replaces it.
    for names in (shared_names, own_names):
        for variable, name in names.items():
            if variable in environ:
                yield name, _checked(fields[name], environ[variable], variable, strict=False)
    others = tuple(_prefix(other) for other in ROLES if other != role)
    known = {*own_names, *shared_names, *RESERVED}
    for variable in environ:
        if not variable.startswith("KETTLE_") or variable in known:
            continue
        if variable.startswith((*others, *RESERVED_PREFIXES)):
            continue
        raise SettingsError(f"{variable}: unknown setting{_closest(variable, known)}")


def _checked(field: msgspec.structs.FieldInfo, value: Any, where: str, *, strict: bool) -> Any:
    if not strict and isinstance(value, str) and value.lstrip()[:1] in {"[", "{"} and field.type is not str:
        try:
            value = msgspec.json.decode(value)  # a list or a table in a variable is written as JSON
        except msgspec.DecodeError as error:
            raise SettingsError(f"{where}: {error}") from error
    try:
        return msgspec.convert(value, field.type, strict=strict)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{where}: {error}") from error
