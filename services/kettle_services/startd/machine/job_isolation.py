"""What jobs without a container can have of their own on this machine, found out once."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Final

from kettle.execution.attempts.job_spec import Isolation
from kettle.execution.processes.isolation import in_thread
from kettle.execution.processes.namespaces import SHARED_MEMORY, why_no_mounts
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad

_log: Final = logging.getLogger(__name__)


async def find_isolation(settings: StartdSettings, execute: Path) -> tuple[Isolation, Ad]:
    """What each job gets, and what the machine's ad says of it."""
    directories, shared_memory = _wanted(settings, execute)
    if os.geteuid() != 0 or settings.job_account == "own":  # all jobs are one account anyway
        directories, shared_memory = (), False
    elif (directories or shared_memory) and (why := await asyncio.to_thread(in_thread, why_no_mounts)):
        _log.warning("jobs share /tmp and /dev/shm with this machine: %s", why)
        directories, shared_memory = (), False
    isolation = Isolation(
        no_new_privileges=settings.no_new_privileges, directories=directories, shared_memory=shared_memory
    )
    return isolation, {"HasMountUnderScratch": True} if directories else {}


def _wanted(settings: StartdSettings, execute: Path) -> tuple[tuple[str, ...], bool]:
    """What is set, as far as this machine has it and the sandboxes stay where they are."""
    there = tuple(each for each in dict.fromkeys(settings.mount_under_scratch) if Path(each).is_dir())
    if missing := set(settings.mount_under_scratch) - set(there):
        _log.warning("mount_under_scratch: there is no directory %s", ", ".join(sorted(missing)))
    return there, settings.mount_private_dev_shm and not execute.is_relative_to(SHARED_MEMORY)
