"""What jobs without a container can have of their own on this machine, found out once."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Final

from kettle.execution.attempts.job_spec import Isolation
from kettle.execution.processes.isolation import SHARED_MEMORY, why_no_mounts
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad

_log: Final = logging.getLogger(__name__)


async def find_isolation(settings: StartdSettings, execute: Path) -> tuple[Isolation, Ad]:
    """What each job gets, and what the machine's ad says of it."""
    directories = tuple(each for each in dict.fromkeys(settings.mount_under_scratch) if Path(each).is_dir())
    shared_memory = settings.mount_private_dev_shm and not execute.is_relative_to(SHARED_MEMORY)
    if (directories or shared_memory) and os.geteuid() != 0:
        directories, shared_memory = (), False  # an ordinary user's jobs run as that user anyway
    if (directories or shared_memory) and (why := await asyncio.to_thread(why_no_mounts)):
        _log.warning("jobs share /tmp and /dev/shm with this machine: %s", why)
        directories, shared_memory = (), False
    isolation = Isolation(
        no_new_privileges=settings.no_new_privileges, directories=directories, shared_memory=shared_memory
    )
    return isolation, {"HasMountUnderScratch": True} if directories else {}
