"""
An HTCondor configuration as `kettle.toml`: each setting with where it came from, and the list of what has none.
"""

import os
import platform
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kettle.pool.personal_settings import Value, toml_value
from kettle.runtime.authorization import TABLE, Authorization
from kettle.runtime.settings import fields_of
from kettle.runtime.settings_problems import SettingsFile
from kettle.submit.configuration_reader import Complaint, CondorReader, Knob, Place
from kettle.submit.errors import PlacelessError
from kettle.submit.macros import names_used
from kettle_services.cli.condor_config import startd_cron
from kettle_services.cli.condor_config.access import ACCESS
from kettle_services.cli.condor_config.account import AccountLine, account, place_order
from kettle_services.cli.condor_config.families import FAMILIES, Family
from kettle_services.cli.condor_config.tables import KNOBS, METAKNOBS
from kettle_services.cli.condor_config.values import NoValueError, value_of
from kettle_services.cli.configuration.services import MASTER, SETTINGS

_SUBSYSTEMS: Final = frozenset(SETTINGS)
_OUTPUT: Final = Path("the converted file")


class Carried(msgspec.Struct, frozen=True):
    """One setting of the new file."""

    service: str
    setting: str
    value: Value
    sources: tuple[str, ...]
    """Knobs with their places."""


class Conversion(msgspec.Struct, frozen=True):
    """What became of an HTCondor configuration."""

    carried: Sequence[Carried]
    not_carried: Sequence[Complaint]
    account: Sequence[AccountLine] = ()
    """What became of each knob, at the line that counts."""


def convert(paths: Sequence[Path], environ: Mapping[str, str] = os.environ) -> Conversion:
    """
    Convert the files, each later one stronger than those before it.

    Raises:
        OSError: one cannot be read.
    """
    reader = CondorReader(environ, {**KNOBS.macros, **_of_machine()}, METAKNOBS)
    for path in paths:
        reader.read_file(path)
    return _Converter(reader).run()


def _type_of(service: str, name: str) -> object:
    """The type of a setting, or of a field of [authorization]."""
    if service == TABLE:
        return next(each.type for each in msgspec.structs.fields(Authorization) if each.name == name)
    return fields_of(SETTINGS[service])[name].type


def _of_machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return {
        "HOSTNAME": socket.gethostname().partition(".")[0],
        "FULL_HOSTNAME": socket.gethostname(),
        "DETECTED_CPUS": str(os.cpu_count() or 1),
        "DETECTED_CORES": str(os.cpu_count() or 1),
        "DETECTED_MEMORY": str(memory),
        "ARCH": platform.machine().upper(),
        "OPSYS": "LINUX",
    }


class _Converter:
    def __init__(self, reader: CondorReader) -> None:
        self._reader = reader
        self._complaints = list(reader.complaints)
        self._carried: list[Carried] = []
        self._used: set[str] = set()
        """Knobs, in lower case, that are carried over or have been complained of."""
        self._taken: list[Knob] = []
        """What the setting that is being made was made of."""
        self._made: dict[str, list[str]] = {}
        """The settings that were made of a knob, by its name in lower case."""

    def run(self) -> Conversion:
        """Make each setting, then look at what is left."""
        for setting, make in {**FAMILIES, **ACCESS, "startd.probes": startd_cron.probes}.items():
            self._taken = []
            service = setting.partition(".")[0]
            seen = self._reader.knobs.values() if service == TABLE else self._of(service)
            family = Family(
                [knob.name for knob in seen],
                partial(self._take, service=service),
                self._refuse,
            )
            if (value := make(family)) is not None:
                self._carry(setting, value)
        for name in KNOBS.settings:
            for setting in KNOBS.settings_of(name):
                self._one(name, setting)
        self._leftovers()
        complaints = sorted(self._complaints, key=lambda each: place_order(each.place))
        told = account(self._reader.knobs, self._made, complaints)
        return Conversion(self._carried, complaints, list(told))

    def _of(self, service: str) -> Iterator[Knob]:
        """The knobs that one service sees: its own have lost their prefix, those of others are left out."""
        for key, knob in self._reader.knobs.items():
            prefix, dot, bare = knob.name.partition(".")
            if not dot or prefix.lower() not in _SUBSYSTEMS:
                if f"{service}.{key}" not in self._reader.knobs:
                    yield knob
            elif prefix.lower() == service:
                yield msgspec.structs.replace(knob, name=bare)

    def _take(self, name: str, service: str) -> str:
        """The expanded text of a knob as a service sees it; empty if it is not set."""
        key = next(
            (key for key in (f"{service}.{name}".lower(), name.lower()) if key in self._reader.knobs), ""
        )
        if not key:
            return ""
        knob = self._reader.knobs[key]
        self._used |= {key, name.lower()} if key == name.lower() else {key}
        self._taken.append(knob)
        try:
            text = self._reader.expander(service).expand(knob.text).strip()
        except PlacelessError as error:
            self._refuse(name, str(error))
            return ""
        for missing in self._reader.undefined(knob.text, service):
            self._complain(knob, f"$({missing}) is set nowhere, and became nothing here")
        return text

    def _one(self, name: str, setting: str) -> None:
        service, _, field_name = setting.partition(".")
        self._taken = []
        text = self._take(name, service)
        if not text:
            return
        try:
            self._carry(setting, value_of(_type_of(service, field_name), text))
        except NoValueError as error:
            self._refuse(name, str(error))

    def _carry(self, setting: str, value: Value) -> None:
        """Take a setting into the new file, if Kettle takes it."""
        service, _, name = setting.partition(".")
        text = f"[{service}]\n{name} = {toml_value(value)}\n"
        role = MASTER if service == TABLE else service  # a table that all services read
        reading = SETTINGS[role].read_from(role, {}, SettingsFile(_OUTPUT, text))
        sources = tuple(f"{knob.name}, {knob.place}" for knob in self._taken)
        if reading.problems:
            why = "; ".join(problem.sentence for problem in reading.problems)
            self._complain(self._taken[-1], f"{name} of [{service}] would be refused: {why}")
        else:
            self._carried.append(Carried(service, name, value, sources))
            for knob in self._taken:
                made = self._made.setdefault(knob.name.lower(), [])
                made += [setting] if setting not in made else []

    def _refuse(self, name: str, why: str) -> None:
        knob = self._reader.knobs.get(name.lower()) or (self._taken[-1] if self._taken else None)
        self._complain(knob or Knob(name, "", Place("-", 0)), why)

    def _complain(self, knob: Knob, why: str) -> None:
        complaint = Complaint(str(knob.place), knob.name, why)
        if complaint not in self._complaints:
            self._complaints.append(complaint)

    def _leftovers(self) -> None:
        """
        What nothing was made of; a knob that others refer to is theirs, and so is what templates bring along.
        """
        referred = {name for knob in self._reader.knobs.values() for name in names_used(knob.text)}
        for key, knob in self._reader.knobs.items():
            prefix, dot, bare = knob.name.partition(".")
            is_helper = key in referred or "(use " in knob.place.source
            if key in self._used or (is_helper and not KNOBS.settings_of(key)):
                continue
            if dot and prefix.lower() not in _SUBSYSTEMS:
                why = f'it is for the daemon with the local name {prefix}: write it into [master.environment."ROLE.{prefix}"]'
                self._complain(knob, why)
            elif knob.text.strip():
                self._complain(knob, KNOBS.reason(bare if dot else knob.name))


def render(conversion: Conversion, paths: Sequence[Path]) -> str:
    """The new file."""
    parts = [f"# Made by `kettle convert condor_config {' '.join(map(str, paths))}`.\n"]
    for service in sorted({each.service for each in conversion.carried}):
        lines = [f"[{service}]"]
        for each in conversion.carried:
            if each.service == service:
                lines += [f"# {source}" for source in dict.fromkeys(each.sources)]
                lines.append(f"{each.setting} = {toml_value(each.value)}")
        parts.append("\n".join(lines) + "\n")
    if conversion.not_carried:
        lines = [
            "# Not carried over:",
            *(f"# - {' '.join(str(each).split())}" for each in conversion.not_carried),
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
