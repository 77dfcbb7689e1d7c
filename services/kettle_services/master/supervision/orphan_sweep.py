"""
Cleans up what the services of this or of an earlier master left behind.

Services clean up after their jobs, and the master after its services.  This is the last resort: the remaining processes
carry the pool's mark or work in one of its sandboxes, and no daemon is responsible for them any more.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Final

from kettle.pool import processes, sandbox_cleanup
from kettle.pool.home import Home

_log: Final = logging.getLogger(__name__)


async def sweep(home: Home, *, but: int = 0) -> None:
    """
    End every process of the pool but ourselves and this one, then remove the sandboxes that nobody needs.
    """
    # Reading /proc and deleting trees takes longer than the event loop may be held.
    await asyncio.to_thread(_sweep, home, frozenset({os.getpid(), but}))


async def sweep_services(home: Home, *, but: int = 0) -> None:
    """
    End the services of a master that was killed, but not this process; starters, their jobs and the sandboxes are for the
    startd to take over.
    """
    us = frozenset({os.getpid(), but})
    await asyncio.to_thread(_end, partial(processes.of_services, home.pool_id(), home.execute, but=us))


async def sweep_orphans(home: Home) -> None:
    """
    End every process of the pool that none of our daemons is responsible for, and leave the sandboxes to their startd.
    """
    ended = await asyncio.to_thread(processes.end_orphans, home.pool_id(), home.execute, of=os.getpid())
    for process in ended:
        _log.warning("its startd is switched off, ended pid %d: %s", process.pid, process.command[:200])


def _sweep(home: Home, us: frozenset[int]) -> None:
    _end(partial(processes.of_pool, home.pool_id(), home.execute, but=us))
    for path in sandbox_cleanup.sweep(home):
        _log.error("cannot remove %s", path)


def _end(look: Callable[[], list[processes.Process]]) -> None:
    for process in look():
        _log.warning("nobody had ended pid %d: %s", process.pid, process.command[:200])
    for process in processes.end_all(look):
        _log.error("cannot end pid %d: %s", process.pid, process.command[:200])
