"""From settings to a batch system that can be asked."""

from typing import Final

import msgspec

from kettle.accounts.lookup import Accounts
from kettle.commands.local import LocalCommands
from kettle.commands.port import Commands
from kettle.runtime import SettingsError
from kettle_services.ce.batch.asking import Asking
from kettle_services.ce.batch.port import BatchSystem
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.batch.slurm import Slurm
from kettle_wire.batch import BatchKind

_HERE: Final = 8
"""Commands that submit, at the same time on this machine."""


class Opened(msgspec.Struct, frozen=True):
    """A batch system, and what it is asked by."""

    settings: BatchSettings
    commands: Commands
    system: BatchSystem
    submissions: int
    """At the same time."""


def opened(settings: BatchSettings, accounts: Accounts) -> Opened:
    """
    The batch system that settings describe; a host is connected when it is needed.

    Raises:
        SettingsError: there is none for them.
    """
    commands: Commands = LocalCommands(settings.environment, accounts)
    asking = Asking(commands, patience=settings.patience, hook=settings.hook, settling=settings.settling)
    if settings.kind is not BatchKind.SLURM:
        raise SettingsError(f"batch system {settings.name}: {settings.kind} is not known here yet")
    return Opened(settings, commands, Slurm(asking, accounting=settings.accounting), _HERE)
