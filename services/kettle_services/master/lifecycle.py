"""The frame of a master's life: clean up after an earlier one, be the master, clean up."""

import os
from typing import Final

from kettle.pool.home import Home, open_home, remove_run
from kettle.pool.master_lock import MasterLock
from kettle.runtime import Runtime
from kettle_services.master.account_access import withdraw
from kettle_services.master.domain.start_order import role_of
from kettle_services.master.master import MasterError, check_disk, live
from kettle_services.master.self_restart import SelfRestart
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision import orphan_sweep
from kettle_services.master.supervision.switched_off import read_off
from kettle_services.master.zygote.made import MadeZygote

STOP_S: Final = 7200.0
"""The stages of a stop have their own deadlines; this only bounds their sum."""


async def serve(
    rt: Runtime, settings: MasterSettings, *, succession: SelfRestart, zygote: MadeZygote | None = None
) -> None:
    """
    Be the master; `succession` says afterwards whether it is to be followed by itself.  `zygote`: one that exists already.
    """
    home = open_home(settings.home_path)
    lock = _locked(home, settings.lock_fd)
    check_disk(home, settings)
    lived = False
    try:
        await _sweep(home, settings, zygote)
        await live(rt, settings, home, succession, zygote)
        lived = True
    finally:
        await (orphan_sweep.sweep(home) if lived else _sweep(home, settings))
        remove_run(home)
        if lived and succession.wanted:
            succession.hand_on(lock.fd)
        else:  # it failed, or somebody did not want to wait for its end: that is no time for a successor
            succession.wanted = False
            withdraw(home)
            lock.release()


async def _sweep(home: Home, settings: MasterSettings, zygote: MadeZygote | None = None) -> None:
    """
    End what a killed master has left, which is not our zygote.  Its jobs go on if there is a startd to take them over, now
    or after the next start.
    """
    off, ours = read_off(home), 0 if zygote is None else zygote.pid
    if any(role_of(name) == "startd" for name in settings.daemon_list if name not in off):
        await orphan_sweep.sweep_services(home, but=ours)
    else:
        await orphan_sweep.sweep(home, but=ours)


def _locked(home: Home, fd: int) -> MasterLock:
    lock = MasterLock.take(home) if fd < 0 else MasterLock(fd)
    if lock is None:
        raise MasterError(f"{home.path}: another master lives here.")
    os.set_inheritable(lock.fd, False)  # held by the master alone: it ends with the master
    lock.sign()
    return lock
