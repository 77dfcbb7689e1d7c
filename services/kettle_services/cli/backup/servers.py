"""
What a backup has to know of a pool's settings: its servers, what is not the default, and which files are
elsewhere.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kettle.backup import Setting
from kettle.backup.bus_heads import BusPlace
from kettle.backup.home_files import links_elsewhere
from kettle.backup.restoring import Servers
from kettle.runtime import SettingsError
from kettle_services.cli.configuration.master_settings import master_settings
from kettle_services.cli.configuration.origins import DEFAULT, origins
from kettle_services.cli.configuration.outcome import environ_of
from kettle_services.cli.configuration.services import of_host
from kettle_services.cli.errors import CommandError


def servers_of(home: Path) -> Servers:
    """
    The servers of the pool whose settings are in a directory.

    Raises:
        CommandError: the settings cannot be read.
    """
    said = master_settings(environ_of(home))
    bus = BusPlace(pool=said.pool, url=said.nats_url, credentials=said.nats_credentials, ca=said.nats_ca)
    return Servers(bus=bus, database_url=said.database_url)


def settings_of(home: Path) -> list[Setting]:
    """What is not the default, without secrets."""
    try:
        found = of_host(environ_of(home), None)
    except SettingsError as error:
        raise CommandError(f"the settings cannot be read: {error}") from error
    return [
        Setting(each.daemon, each.setting, each.value, each.origin)
        for each in origins(found)
        if each.origin != DEFAULT
    ]


def outside(home: Path, settings: list[Setting]) -> list[str]:
    """
    The files and directories that settings name, or to which links lead, and that are not in the pool's directory.
    """
    named = {
        text
        for each in settings
        for text in _texts(each.value)
        if text.startswith("/") and not Path(text).is_relative_to(home) and Path(text).exists()
    }
    return sorted(named | {str(path) for path in links_elsewhere(home)})


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():  # pyright: ignore[reportUnknownVariableType]
                yield from _texts(each)  # pyright: ignore[reportUnknownArgumentType]
        case list() | tuple():
            for each in value:  # pyright: ignore[reportUnknownVariableType]
                yield from _texts(each)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return
