"""From settings to a batch system that can be asked."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from kettle.accounts.lookup import Accounts
from kettle.commands.local import LocalCommands
from kettle.commands.port import Commands
from kettle.runtime import SettingsError
from kettle_services.ce.batch.asking import Asking
from kettle_services.ce.batch.htcondor import Htcondor
from kettle_services.ce.batch.lsf import Lsf
from kettle_services.ce.batch.pbs import Pbs
from kettle_services.ce.batch.port import BatchSystem
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.batch.sge import GridEngine
from kettle_services.ce.batch.slurm import Slurm
from kettle_services.ce.domain.batch.local import Room
from kettle_wire.batch import BatchKind

_WITHOUT_COMMANDS: Final = frozenset({BatchKind.KETTLE, BatchKind.LOCAL})
_CARRIED: Final = frozenset({BatchKind.SLURM, BatchKind.SGE, BatchKind.PBS, BatchKind.TORQUE, BatchKind.LSF})
"""Kinds whose jobs can fetch their files themselves."""
_HERE: Final = 8
"""Commands that submit, at the same time on this machine."""
_IN_ONE_SESSION: Final = 50
"""Commands that submit, for each session of a host: they are run together."""


class Opened(msgspec.Struct, frozen=True):
    """A batch system, and what it is asked by."""

    settings: BatchSettings
    commands: Commands | None
    """None: it is asked by no commands."""
    system: BatchSystem
    at_once: int
    """So many jobs are submitted at the same time."""
    close: Callable[[], Awaitable[None]]
    """Give up its connections."""


def opened(settings: BatchSettings, accounts: Accounts, home: Path) -> Opened:
    """
    The batch system that settings describe; a host is connected when it is needed.

    `home`: the directory of this service, in which there is what it has to keep for one.

    Raises:
        SettingsError: its host cannot be used.
    """
    if not settings.shared and settings.kind not in _CARRIED:
        raise SettingsError(
            f"batch system {settings.name}: shared = false is for {', '.join(sorted(_CARRIED))}; one of kind {settings.kind} "
            "has its files where this service has them"
        )
    if settings.kind in _WITHOUT_COMMANDS:
        if settings.host:
            raise SettingsError(
                f"batch system {settings.name}: one of kind {settings.kind} is asked by no commands, so it has no host"
            )
        return (
            _local(settings, accounts, home)
            if settings.kind is BatchKind.LOCAL
            else _other_pool(settings, accounts)
        )
    commands = _over_ssh(settings) if settings.host else LocalCommands(settings.environment, accounts)
    asking = Asking(commands, patience=settings.patience, hook=settings.hook, settling=settings.settling)
    return Opened(
        settings,
        commands,
        system_of(settings, asking),
        _HERE if not settings.host else settings.sessions * _IN_ONE_SESSION,
        commands.close,
    )


def _local(settings: BatchSettings, accounts: Accounts, home: Path) -> Opened:
    """The machine of this service.  Raises SettingsError: there is no place for its queue."""
    from kettle_services.ce.batch.local import LocalJobs  # only who needs it has it
    from kettle_services.ce.batch.local_queue import LocalQueue

    cpus, memory = (
        len(os.sched_getaffinity(0)),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
    )
    room = Room(cpus=settings.cpus or cpus, memory=settings.memory or memory)
    queue = LocalQueue(home / "queues" / settings.name, room, settings.environment)
    try:
        queue.make()
    except OSError as error:
        raise SettingsError(f"batch system {settings.name}: its queue cannot be made: {error}") from None
    return Opened(settings, None, LocalJobs(queue, room, accounts), _HERE, _nothing)


def _other_pool(settings: BatchSettings, accounts: Accounts) -> Opened:
    from kettle_services.ce.batch.other_pool import OtherPool  # only who needs it has the client

    hooks = LocalCommands(settings.environment, accounts)
    asking = Asking(hooks, patience=settings.patience, hook=settings.hook, settling=settings.settling)
    system = OtherPool(settings.environment, asking, patience=settings.patience)
    return Opened(settings, None, system, _IN_ONE_SESSION, system.close)


async def _nothing() -> None:
    """There is no connection."""


def _over_ssh(settings: BatchSettings) -> Commands:
    try:
        from kettle.commands.ssh import SshCommands, open_host  # only who needs it has it
    except ImportError:
        raise SettingsError(
            f"batch system {settings.name}: hosts are reached by asyncssh: install kettle[ssh]"
        ) from None
    try:
        host = open_host(
            settings.host,
            settings.key_file,
            settings.known_hosts_file,
            sessions=settings.sessions,
            patience=settings.patience,
        )
    except ValueError as error:
        raise SettingsError(f"batch system {settings.name}: {error}") from None
    return SshCommands(host, settings.environment, sessions=settings.sessions)


def system_of(settings: BatchSettings, asking: Asking) -> BatchSystem:
    """The adapter of its kind."""
    match settings.kind:
        case BatchKind.SLURM:
            return Slurm(asking, accounting=settings.accounting, clusters=settings.clusters)
        case BatchKind.SGE:
            return GridEngine(
                asking,
                accounting=settings.accounting,
                environment=settings.parallel_environment,
                gpus=settings.gpus,
            )
        case BatchKind.PBS | BatchKind.TORQUE:
            return Pbs(asking, torque=settings.kind is BatchKind.TORQUE, gpus=settings.gpus)
        case BatchKind.LSF:
            return Lsf(asking)
        case BatchKind.HTCONDOR:
            return Htcondor(asking)
        case BatchKind.KETTLE | BatchKind.LOCAL:
            raise AssertionError(f"one of kind {settings.kind} is asked by no commands")
