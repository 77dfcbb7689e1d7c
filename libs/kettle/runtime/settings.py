"""
The settings of a service: one frozen struct, filled from a TOML file and from the environment.

An unknown name is refused, because a setting that is silently ignored may be noticed only months later. The environment
overrides the file, a service's own setting overrides the shared one, and every refusal names the variable or the place
in the file that has to be changed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Generic, Literal, Self, TypeVar, Union, cast, get_args, get_origin

import msgspec

from kettle.runtime import expression_types
from kettle.runtime.authorization import TABLE as AUTHORIZATION
from kettle.runtime.authorization import Authorization
from kettle.runtime.setting_types import MiB, Secret, is_hidden, shown, without_unit
from kettle.runtime.settings_problems import Problem, SettingRefused, SettingsError, SettingsFile
from kettle.runtime.telemetry_settings import TABLE as TELEMETRY
from kettle.runtime.telemetry_settings import TelemetrySettings
from kettle.terminal.nearest_names import did_you_mean

ROLES: Final = frozenset({
    "accounting", "ce", "cli", "collector", "dagman", "gateway", "iam", "master", "negotiator", "provisioner", "scaler", "schedd", "sessions", "shadow",
    "startd", "starter",
})  # fmt: skip

IN_USE: Final = "KETTLE_SETTINGS_IN_USE"

IN_FILE: Final = "file:"
"""What a secret begins with that is in a file: `file:/run/secrets/schedd.database`."""

TABLES: Final = (AUTHORIZATION, TELEMETRY)
"""Settings of all services that are tables of their own."""

RESERVED: Final[Mapping[str, str]] = {
    "KETTLE_CONFIG": "path of the TOML file that settings are read from",
    "KETTLE_PG_BIN": "directory of the PostgreSQL programs to use instead of the embedded ones",
    "KETTLE_NATS_BIN": "path of the nats-server to use instead of the embedded one",
    "KETTLE_FAULT_POINTS": "for tests: where a process is to die or stop",
    "KETTLE_FAULT_ONCE": "for tests: directory that remembers which of these has happened",
    "KETTLE_LIFELINE_FD": "set by the master: end of a pipe that breaks when the master dies",
    IN_USE: "set by the master: file of the settings with which the service last did its work",
    "KETTLE_JOBS_LIFELINE_FD": "set by the master: end of a pipe with which the jobs of a throw-away pool end",
    "KETTLE_STARTER_STIMULI": "directory in which each starter records what its state machine was fed, a file for each attempt",
    "KETTLE_CLAIM_STIMULI": "directory in which each schedd records what happened to its claims",
    "KETTLE_COMMAND_SERVER": "off: each command is carried out by an interpreter of its own",
    "KETTLE_COLOR": "always or never; otherwise colours are used on a terminal",
}
"""Variables that are no service's setting, with their meaning."""

RESERVED_PREFIXES: Final = ("KETTLE_JOB_", "KETTLE_TEST_")
"""
Variables that a starter gives its job, and those that steer the test suite: no service's setting either.
"""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of every service.  A service subclasses it with its own fields and its own defaults."""

    pool: str = "personal"
    nats_url: Secret = "nats://127.0.0.1:4222"
    nats_credentials: str = ""
    """Path of a file, readable by its owner only, with what the service shows to the bus: NATS credentials, or an NKey seed."""
    nats_ca: str = ""
    """Path of the certificate (PEM) of the authority that the certificate of the bus must come from. With it, or with a URL
    `tls://`, every connection to the bus is encrypted, and a server that does not prove itself is sent nothing."""
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
    log_max_mib: MiB = 10
    """Size in MiB from which on a log in the pool's directory is put aside (MAX_<SUBSYSTEM>_LOG); 0: never."""
    log_rotations: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 1
    """How many old logs are kept, `.1` the youngest (MAX_NUM_<SUBSYSTEM>_LOG)."""
    health_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """
    Port of `/healthz`, `/readyz` and `/metrics`, on 127.0.0.1 or `host` of `[telemetry]`; 0: none, or with `metrics = true`
    there one that is free.
    """
    otlp_endpoint: str = ""
    """Base URL of an OpenTelemetry collector (OTLP over HTTP); empty means no exporting."""
    trace_file: str = ""
    """File to which finished spans are appended as JSON lines; for tests and for a look at one job."""
    authorization: Authorization = Authorization()
    """Who may do what, in a table of its own, `[authorization]`."""
    telemetry: TelemetrySettings = TelemetrySettings()
    """Metrics for Prometheus, in a table of its own, `[telemetry]`."""

    @property
    def home_path(self) -> Path:
        """The pool's directory on this machine, whether it exists or not."""
        return Path(self.home or "~/.kettle").expanduser()

    def measured(self) -> bool:
        """Whether somebody may ask this process for metrics."""
        return self.telemetry.metrics or bool(self.health_port)

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
        return cls.read(role, environ=environ, toml_path=toml_path).settings()

    @classmethod
    def read(
        cls, role: str, *, environ: Mapping[str, str] | None = None, toml_path: Path | None = None
    ) -> "Reading[Self]":
        """
        What file and environment say about the settings of one service, with the place of each, and everything that is
        wrong with it.

        Raises:
            SettingsError: the file cannot be read at all.
        """
        environ = os.environ if environ is None else environ
        path = toml_path or config_path(environ)
        return cls.read_from(role, environ, None if path is None else SettingsFile.read(path))

    @classmethod
    def read_from(cls, role: str, environ: Mapping[str, str], file: SettingsFile | None) -> "Reading[Self]":
        """What a file that has been read, if there is one, and the environment say; see `read`."""
        return Reading(cls, role, environ, file)

    def __repr__(self) -> str:
        pairs = (f"{f.name}={shown(f.type, getattr(self, f.name))!r}" for f in msgspec.structs.fields(self))
        return f"{type(self).__name__}({', '.join(pairs)})"

    def environ(self, role: str) -> dict[str, str]:
        """
        These settings as the variables from which `load(role)` makes them again; defaults are left out.

        It is how one service starts another: an environment is visible only to the account and to root,
        a command line to everyone.
        """
        shared = fields_of(Settings)
        return {
            f"KETTLE_{name.upper()}" if name in shared else f"{_prefix(role)}{name.upper()}": text
            for name, field in fields_of(type(self)).items()
            if (value := getattr(self, field.name)) != default_of(field)
            for text in (text_of(value),)
        }


class OwnerSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of every service that owns a shard of the log."""

    owner_lease: Annotated[float, msgspec.Meta(ge=1.0)] = 2.0
    """Seconds that the owner may be silent on the bus before a standby takes over."""


def default_of(field: msgspec.structs.FieldInfo) -> object:
    """The value of a setting that nobody has given; one that has to be given has none."""
    if field.required:
        return None
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def text_of(value: object) -> str:
    """A value as a variable has it."""
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode()


def fields_of(kind: type[Settings]) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields by the name that people write: the field's name, unless that is a keyword of Python."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _prefix(role: str) -> str:
    return f"KETTLE_{role.upper().replace('-', '_')}_"


def config_path(environ: Mapping[str, str]) -> Path | None:
    """The file of settings that an environment leads to; None if there is none."""
    if named := environ.get("KETTLE_CONFIG"):
        return Path(named)
    usual = Path(environ.get("KETTLE_HOME") or "~/.kettle").expanduser() / "kettle.toml"
    return usual if usual.is_file() else None


class Given(msgspec.Struct, frozen=True):
    """A value that somebody gave to a setting."""

    value: Any
    origin: str
    """A variable, or the line of a file."""
    where: str
    """The origin as a refusal names it: of a file with table and name."""


S_co = TypeVar("S_co", bound=Settings, covariant=True)


class Reading(Generic[S_co]):
    """The settings of one service as file and environment give them."""

    def __init__(
        self, kind: type[S_co], role: str, environ: Mapping[str, str], file: SettingsFile | None
    ) -> None:
        self.role: Final = role
        self.kind: Final = kind
        self.given: Final[dict[str, Given]] = {}
        """By the name that people write; what is not here has its default."""
        self.shared: Final[dict[str, Given]] = {}
        """What is given to all services, whatever this one has in its place."""
        self.problems: Final[list[Problem]] = []
        """What makes these settings unusable."""
        self._file = file
        self._environ = environ
        self._fields = fields_of(kind)
        if file is not None:
            self._read_file(file)
        self._read_environment()
        for name, field in self._fields.items():
            if field.required and name not in self.given:
                self._refuse(f"{_prefix(role)}{name.upper()}", "this setting has no default, give it.")
        self._made = self._make()

    def settings(self) -> S_co:
        """
        The settings.

        Raises:
            SettingsError: something is wrong with them.
        """
        if self._made is None or self.problems:
            raise SettingsError.of(self.problems)
        return self._made

    def expressions(self) -> Iterator[tuple[Given, expression_types.Expression]]:
        """All expressions that were given, with their places."""
        for name, given in self.given.items():
            for each in expression_types.expressions(self._fields[name].type, given.value, (name,)):
                yield self._at(given, each.keys), each

    def _refuse(self, where: str, sentence: str) -> None:
        self.problems.append(Problem(where, sentence))

    def _at(self, given: Given, keys: Sequence[str]) -> Given:
        """The place of something within a value."""
        if self._file is None or not given.where.startswith(str(self._file.path)):
            return given
        table = given.where.partition("[")[2].partition("]")[0]
        where = self._file.where(table, *keys)
        return Given(given.value, self._file.place((table, *keys)), where)

    def _make(self) -> S_co | None:
        values = {self._fields[name].name: each.value for name, each in self.given.items()}
        if any(field.required and field.name not in values for field in self._fields.values()):
            return None
        try:
            # each value has been checked where its origin was known
            return self.kind(**values)
        except SettingRefused as error:
            keys, sentence = error.keys, str(error)
        except ValueError as error:
            # by custom the sentence of a check begins with the name of the setting that it is about
            name, colon, rest = str(error).partition(": ")
            known = bool(colon) and name in self._fields
            keys, sentence = ((name,), rest) if known else ((), str(error))
        given = self.given.get(keys[0]) if keys else None
        if given is not None:
            self._refuse(self._at(given, keys).where, sentence)
        elif not self.problems:  # else it may be wrong only because of what was left out above
            self._refuse(f"{_prefix(self.role)}{keys[0].upper()}" if keys else self.role, sentence)
        return None

    def _read_file(self, file: SettingsFile) -> None:
        self._check_tables(file)
        shared = fields_of(Settings)
        for table, known in (("kettle", shared), (self.role, self._fields)):
            content = file.tables.get(table, {})
            if isinstance(content, dict):
                for name, value in cast("dict[str, Any]", content).items():
                    where = file.where(table, name)
                    if name in TABLES:
                        self._refuse(where, f"write it as a table of its own, [{name}]")
                    elif name not in known:
                        self._refuse(where, f"unknown setting{self._nearest(name, known)}")
                    else:
                        self._take(name, value, file.place((table, name)), where, strict=True)
                        self._share(name, shared=table == "kettle")

        for table in TABLES:
            if table in file.tables:
                place = file.place((table,))
                self._take(table, file.tables[table], place, f"{place}: [{table}]", strict=True)
                self._share(table, shared=True)

    def _check_tables(self, file: SettingsFile) -> None:
        for table, content in file.tables.items():
            if table not in {"kettle", *TABLES, self.role} and table not in ROLES:
                self._refuse(
                    file.place((table,)),
                    f"[{table}] is neither [kettle] nor a service{did_you_mean(table, {'kettle', *TABLES, *ROLES})}",
                )
            elif not isinstance(content, dict):
                self._refuse(file.place((table,)), f"{table} must be a table, [{table}].")

    def _share(self, name: str, *, shared: bool) -> None:
        if shared and name in self.given:
            self.shared[name] = self.given[name]

    def _nearest(self, name: str, known: Mapping[str, object]) -> str:
        if name in self._fields:
            return f" of all services; it is one of the table [{self.role}]"
        return did_you_mean(name, known)

    def _read_environment(self) -> None:
        shared, environ = fields_of(Settings), self._environ
        own_names = {f"{_prefix(self.role)}{name.upper()}": name for name in self._fields}
        shared_names = {f"KETTLE_{name.upper()}": name for name in shared}
        # Shared first: what follows for this role in particular replaces it.
        for names in (shared_names, own_names):
            for variable, name in names.items():
                if variable in environ:
                    self._take(name, environ[variable], variable, variable, strict=False)
                    self._share(name, shared=names is shared_names)
        others = tuple(_prefix(other) for other in ROLES if other != self.role)
        known = {*own_names, *shared_names, *RESERVED}
        for variable in environ:
            if not variable.startswith("KETTLE_") or variable in known:
                continue
            if not variable.startswith((*others, *RESERVED_PREFIXES)):
                self._refuse(variable, f"unknown setting{did_you_mean(variable, known)}")

    def _take(self, name: str, value: object, origin: str, where: str, *, strict: bool) -> None:
        field = self._fields[name]
        try:
            said = _checked(field, _in_file(field.type, value), strict=strict)
        except OSError as error:
            self._refuse(where, f"{error.filename} cannot be read: {error.strerror}")
            return
        except UnicodeDecodeError:
            self._refuse(where, "what is in this file is no text")
            return
        except msgspec.MsgspecError as error:
            self._refuse(where, f"{error}{without_unit(field.type, value)}")
            return
        given = Given(said, origin, where)
        if isinstance(said, (Authorization, TelemetrySettings)):
            problems = [(self._at(given, keys).where, why) for keys, why in said.complaints()]
            self.problems.extend(Problem(*each) for each in problems)
            if problems:
                return
        for each in expression_types.expressions(field.type, said, (name,)):
            if why := expression_types.complaint(each):
                self._refuse(self._at(given, each.keys).where, why)
                return
        self.given[name] = given


def _in_file(kind: Any, value: object) -> object:
    """
    A secret may be named by the file that holds it; then neither an environment nor a file of settings has it.
    """
    if is_hidden(kind) and isinstance(value, str) and value.startswith(IN_FILE):
        return Path(value.removeprefix(IN_FILE)).read_text(encoding="utf-8").strip()
    return value


def _is_text(kind: Any) -> bool:
    """Whether a setting takes a text as it is."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return plain is str or (get_origin(plain) in {Union, UnionType} and str in get_args(plain))


def _checked(field: msgspec.structs.FieldInfo, value: object, *, strict: bool) -> object:
    if (
        not strict
        and isinstance(value, str)
        and value.lstrip()[:1] in {"[", "{"}
        and not _is_text(field.type)
    ):
        value = msgspec.json.decode(value)  # a list or a table in a variable is written as JSON
    return msgspec.convert(value, field.type, strict=strict)
