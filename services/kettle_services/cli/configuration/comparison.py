"""What the running daemons of this host work with, against what the configuration says now."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.pool import PoolError, state
from kettle.pool.home import Home
from kettle.runtime import SettingsError
from kettle.runtime.setting_types import shown
from kettle.runtime.settings import fields_of, text_of
from kettle.runtime.settings_in_use import SettingsInUse
from kettle_services.cli.configuration.services import MASTER, DaemonReading, kind_of, of_host
from kettle_services.cli.errors import CommandError
from kettle_services.master.domain.command_rules import AT_RESTART

_FROM_MASTER: Final = frozenset(
    {"pool", "home", "nats_url", "nats_credentials", "nats_ca", "database_url", "archiver_url"}
)
"""What services hear from their master; a change of it is the master's."""
_NO_SETTING: Final = frozenset({"lock_fd"})


class SettingChange(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that would be another."""

    daemon: str
    setting: str
    now: object
    new: object
    origin: str
    effect: str
    """What it takes for the new value to be used."""


def changes(home: Path) -> list[SettingChange]:
    """
    What `kettle reconfig` would change.

    Raises:
        CommandError: no pool runs here, or the configuration cannot be used.
    """
    try:
        running = state(home)
    except PoolError as error:
        raise CommandError(str(error)) from error
    if running is None:
        raise CommandError(
            f"no pool is up in {home}: nothing uses these settings; see them with: kettle config show"
        )
    try:
        found = of_host(_environ_of(running.pid), None)
        runs = {MASTER, *(daemon.name for daemon in running.daemons)}
        return [change for each in found if each.daemon in runs for change in _changes(Home(home), each)]
    except SettingsError as error:
        raise CommandError(f"the configuration cannot be used:\n{error}") from error


def _environ_of(master: int) -> Mapping[str, str]:
    """The variables with which the master was started: those of this shell are not its own."""
    try:
        text = Path(f"/proc/{master}/environ").read_bytes()
    except OSError as error:
        raise CommandError(f"the master's variables cannot be read: {error.strerror}") from error
    pairs = (os.fsdecode(pair).partition("=") for pair in text.split(b"\0") if pair)
    return {name: value for name, _, value in pairs}


def _changes(home: Home, daemon: DaemonReading) -> Iterator[SettingChange]:
    kept = SettingsInUse(home.in_use / f"{daemon.daemon}.json").variables()
    if kept is None:
        return  # it is not up yet, and will read them anyway
    role = daemon.reading.role
    now = kind_of(role).read_from(role, kept, None).settings()
    new = daemon.reading.settings()
    for name, field in fields_of(type(new)).items():
        before, after = getattr(now, field.name), getattr(new, field.name)
        if text_of(before) == text_of(after) or name in _left_out(role):
            continue
        given = daemon.reading.given.get(name)
        yield SettingChange(
            daemon=daemon.daemon,
            setting=name,
            now=shown(field.type, before),
            new=shown(field.type, after),
            origin=given.origin if given else "default",
            effect=_effect(role, name),
        )


def _left_out(role: str) -> frozenset[str]:
    return _NO_SETTING | ({"home"} if role == MASTER else _FROM_MASTER)


def _effect(role: str, name: str) -> str:
    if role != MASTER:
        return "the daemon starts again; its jobs go on"
    return "kettle restart" if name in AT_RESTART else "at once"


def restarts(found: Sequence[SettingChange]) -> list[str]:
    """The daemons that a reconfiguration starts again."""
    return sorted({each.daemon for each in found if each.daemon != MASTER})
