"""What the master of a host is told, for commands that need to know of its servers."""

from collections.abc import Mapping

from kettle.runtime import SettingsError
from kettle_services.cli.errors import CommandError
from kettle_services.master.settings import MasterSettings


def master_settings(environ: Mapping[str, str]) -> MasterSettings:
    """
    The settings of the master.

    Raises:
        CommandError: they cannot be used.
    """
    try:
        return MasterSettings.load("master", environ=environ)
    except SettingsError as error:
        raise CommandError(f"the configuration cannot be used: {error}") from error
