"""
The life of a master: clean up after an earlier one, start, watch, stop, clean up.
"""

import asyncio
import contextlib
import logging
import os
from typing import Final

from kettle.master import landlord
from kettle.master.bring_up import BringUp
from kettle.master.daemon_list import Daemons
from kettle.master.domain.disk import shortage
from kettle.master.settings import MasterSettings
from kettle.pool.home import Home, make_run, open_home, remove_run
from kettle.pool.lock import MasterLock
from kettle.runtime import NotifyListener, Runtime, make_lifeline

STOP_S: Final = 7200.0
"""The stages of a stop have their own deadlines; this only bounds their sum."""

_log: Final = logging.getLogger(__name__)


class MasterError(Exception):
    """
    The master cannot go on; the message is the sentence with which it ends.
    """


async def serve(rt: Runtime, settings: MasterSettings) -> None:
    """
    Be the master.
    """
    home = open_home(settings.home_path)
    lock = _locked(home, settings.lock_fd)
    _check_disk(home, settings)
    try:
        await landlord.sweep(home)
        await _live(rt, settings, home)
    finally:
        await landlord.sweep(home)
        remove_run(home)
        lock.release()


def _locked(home: Home, fd: int) -> MasterLock:
    lock = MasterLock.take(home) if fd < 0 else MasterLock(fd)
    if lock is None:
        raise MasterError(f"{home.path}: another master lives here.")
    os.set_inheritable(lock.fd, False)  # held by the master alone: it ends with the master
    lock.sign()
    return lock


async def _live(rt: Runtime, settings: MasterSettings, home: Home) -> None:
    daemons = Daemons(home, settings, pid=os.getpid())
    with (
        NotifyListener(make_run(home) / "notify") as listener,
        contextlib.closing(make_lifeline()) as lifeline,
    ):
        bring_up = BringUp(settings, home, daemons, listener.environ, lifeline)
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(daemons.listen(listener), name="listen"),
                group.create_task(_watch_disk(rt, settings, home), name="disk"),
                group.create_task(_start(rt, bring_up, daemons, group), name="start"),
            ]
            await rt.stopping.wait()
            await daemons.stop(bring_up.servers)
            for task in beside:
                task.cancel()
    _check_disk(home, settings)


async def _start(rt: Runtime, bring_up: BringUp, daemons: Daemons, group: asyncio.TaskGroup) -> None:
    await bring_up.run(group)
    daemons.all_ready(nats_url=bring_up.nats_url, database_url=bring_up.database_url)
    rt.ready()


def _check_disk(home: Home, settings: MasterSettings) -> None:
    free = os.statvfs(home.path)
    why = shortage(
        home.path, free_bytes=free.f_bavail * free.f_frsize, minimum_bytes=settings.minimum_disk_mib << 20
    )
    if why:
        raise MasterError(why)


async def _watch_disk(rt: Runtime, settings: MasterSettings, home: Home) -> None:
    """
    Stop the pool, cleanly, when its disk is full; the master then ends with the sentence that says so.
    """
    while True:
        await asyncio.sleep(settings.disk_interval)
        try:
            _check_disk(home, settings)
        except MasterError as error:
            _log.critical("%s", error)
            rt.stop()
            return
