"""
The settings with which a service last did its work, in a file of its own: what it goes on with when the configuration has
become unusable.

A service that is started again reads its configuration again, and who has edited that may have made a mistake in it. The
running jobs must not pay for it: the service takes the settings that it had, and says so. The file is also what `kettle
config diff` compares with. The master names the file; it goes with the master.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kettle.runtime.settings import IN_USE, Settings
from kettle.runtime.settings_problems import SettingsError

_FROM_MASTER: Final = (
    "KETTLE_POOL", "KETTLE_HOME", "KETTLE_NATS_URL", "KETTLE_NATS_CREDENTIALS", "KETTLE_NATS_CA",
    "KETTLE_DATABASE_URL",
)  # fmt: skip
"""What the master knows better than any file."""

LEVELS: Final = ("debug", "info", "warning", "error")
"""The levels of a log."""

_log: Final = logging.getLogger(__name__)

S = TypeVar("S", bound=Settings)
T = TypeVar("T")


class SettingsInUse:
    """The file of one service; without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "SettingsInUse":
        """The file that the master has named, if there is a master."""
        named = environ.get(IN_USE)
        return cls(Path(named) if named else None)

    def load(self, kind: type[S], role: str, environ: Mapping[str, str]) -> tuple[S, str]:
        """
        The settings to begin with: those of the configuration, else those that were in use, with what is wrong.

        Raises:
            SettingsError: the configuration cannot be used, and nothing was in use before.
        """
        try:
            settings = kind.load(role, environ=environ)
            why = self._refusal_of(settings.environ(role))
        except SettingsError as error:
            why = str(error)
            if (former := self.former(kind, role, environ)) is None:
                raise
            return former, why
        former = self.former(kind, role, environ) if why else None
        return (former, why) if former is not None else (settings, "")

    def former(self, kind: type[S], role: str, environ: Mapping[str, str]) -> S | None:
        """The settings that were in use; None if that is not known."""
        variables = self.variables()
        if variables is None:
            return None
        known = {name: environ[name] for name in _FROM_MASTER if name in environ}
        try:
            return kind.read_from(role, {**variables, **known}, None).settings()
        except SettingsError as error:  # another version has written it
            _log.warning("%s is of no use: %s", self._path, error)
            return None

    def variables(self) -> dict[str, str] | None:
        """What was in use, as it is kept: as variables; None if that is not known."""
        return _read(self._path, dict[str, str])

    def keep(self, role: str, settings: Settings) -> None:
        """The service works with these."""
        _write(self._path, settings.environ(role))
        if self._refused is not None:
            self._refused.unlink(missing_ok=True)

    def refuse(self, role: str, settings: Settings, why: str) -> bool:
        """
        The service has found out that it cannot work with these here; returns whether a new start can do better.
        """
        variables = self.variables()
        refused = settings.environ(role)
        return (
            variables is not None and variables != refused and _write(self._refused, _Refused(refused, why))
        )

    def log_level(self) -> str:
        """
        The level of which an administrator wants the log for now, in place of that of the settings; empty: of none.
        """
        level = _read(level_file(self._path), str) if self._path is not None else None
        return level if level in LEVELS else ""

    @property
    def _refused(self) -> Path | None:
        return None if self._path is None else self._path.with_suffix(".refused")

    def _refusal_of(self, variables: dict[str, str]) -> str:
        """Why these settings did not work at the last start; empty if they were not tried then."""
        refused = _read(self._refused, _Refused)
        return refused.why if refused is not None and refused.settings == variables else ""


def level_file(path: Path) -> Path:
    """Where it is said, beside the file of the settings in use; it goes with the master as well."""
    return path.with_suffix(".level")


class _Refused(msgspec.Struct, frozen=True):
    settings: dict[str, str]
    why: str


def _read(path: Path | None, kind: type[T]) -> T | None:
    if path is None:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        _log.warning("%s cannot be read: %s", path, error)
        return None


def _write(path: Path | None, value: object) -> bool:
    """Write a file, whole or not at all; it has the passwords of settings, so it is for its owner alone."""
    if path is None:
        return False
    stage = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        stage.unlink(missing_ok=True)
        fd = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.encode(value))
        stage.replace(path)
    except OSError as error:
        # a full disk is no reason to stop
        _log.warning("%s cannot be written: %s", path, error.strerror)
        return False
    return True
