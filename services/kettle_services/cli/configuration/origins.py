"""Each setting with its value and where that was given."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.runtime import Settings
from kettle.runtime.setting_types import shown
from kettle.runtime.settings import Reading, default_of, fields_of
from kettle_services.cli.configuration.services import MASTER, DaemonReading

ALL: Final = "kettle"
"""The table of what all services have."""
DEFAULT: Final = "default"


class SettingOrigin(msgspec.Struct, frozen=True):
    """One setting of one daemon; passwords are not shown."""

    daemon: str
    setting: str
    value: object
    origin: str
    """`default`, a variable, or a file with its line."""


def origins(found: Sequence[DaemonReading]) -> Iterator[SettingOrigin]:
    """
    What all services share once, under `kettle`; then each daemon's own settings, and what it has in place of the shared.
    """
    master = next(each.reading for each in found if each.daemon == MASTER)
    shared = {name: _shared(master, name) for name in fields_of(Settings)}
    yield from (SettingOrigin(ALL, name, value, origin) for name, (value, origin) in shared.items())
    for each in found:
        for name in fields_of(each.reading.kind):
            value, origin = _of(each.reading, name)
            if name not in shared or (value, origin) != shared[name]:
                yield SettingOrigin(each.daemon, name, value, origin)


def _shared(reading: Reading[Settings], name: str) -> tuple[object, str]:
    """What services have that say nothing else themselves: that is read with another's eyes."""
    value = reading.shared.get(name)
    field = fields_of(Settings)[name]
    if value is not None:
        return shown(field.type, value.value), value.origin
    return shown(field.type, default_of(field)), DEFAULT


def _of(reading: Reading[Settings], name: str) -> tuple[object, str]:
    field = fields_of(reading.kind)[name]
    given = reading.given.get(name)
    if given is not None:
        return shown(field.type, given.value), given.origin
    return shown(field.type, default_of(field)), DEFAULT
