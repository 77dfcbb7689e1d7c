"""`kettle down`: from a running pool, or from what is left of one, to nothing but its data."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kettle.pool import processes
from kettle.pool.daemon_states import MasterState, read_state
from kettle.pool.errors import StopFailedError
from kettle.pool.home import Home, existing_home, remove_run
from kettle.pool.master_lock import MasterLock, holder, locked
from kettle.pool.sandbox_cleanup import remove, sweep
from kettle.retry.deadline import Deadline

DOWN_S: Final = 60.0
_KILLED_S: Final = 10.0
_SIGNED_S: Final = 5.0

Progress = Callable[[str], None]


class Stopped(msgspec.Struct, frozen=True):
    """What was there to stop."""

    was_running: bool
    forced: bool = False
    """The master had to be killed."""
    swept: int = 0
    """Processes of the pool that nobody had ended."""


def down(
    home: Path,
    *,
    purge: bool = False,
    progress: Progress = lambda _: None,
    deadline_s: float | None = DOWN_S,
    peaceful: bool = False,
) -> Stopped:
    """
    Stop the pool of `home`; returns when nothing of it runs.  Its data stay, unless `purge` asks for their end too.

    `peaceful` lets the jobs that run come to their own end first; then `deadline_s` may be None, which is without limit.

    Raises:
        HomeRefusedError: the directory is not readable.
        StopFailedError: a process did not end.
    """
    place = existing_home(home)
    if place is None:
        return Stopped(was_running=False)
    was_running = locked(place)
    forced = was_running and not _stop_master(place, progress, deadline_s, peaceful=peaceful)
    us = frozenset({os.getpid()})
    look = partial(processes.of_pool, place.pool_id(), place.execute, but=us)
    swept = look()
    if left := processes.end_all(look):
        raise StopFailedError([process.pid for process in left])
    # The lock keeps a new master from starting while its directory is being cleaned.
    if (lock := MasterLock.take(place)) is not None:
        remove_runtime_files(place)
        if purge:
            remove(place.path)
        lock.release()
    return Stopped(was_running=was_running, forced=forced, swept=len(swept))


def state(home: Path) -> MasterState | None:
    """The pool that runs in `home`, ready or not; None if none does."""
    place = existing_home(home)
    if place is None or (master := holder(place)) is None:
        return None
    found = read_state(place)
    return found if found is not None and found.pid == master.pid else None


def remove_runtime_files(home: Home) -> None:
    """Remove what says how to reach a pool that runs, and what is switched off in it: there is none."""
    remove_run(home)
    for path in (home.state, home.switched_off, home.path / "pool.json"):
        path.unlink(missing_ok=True)
    sockets = home.path / "postgres" / "socket"
    if sockets.is_symlink() and sockets.readlink().name.startswith("kettle-pg-"):
        shutil.rmtree(sockets.readlink(), ignore_errors=True)
        sockets.unlink()
    sweep(home)


def _stop_master(home: Home, progress: Progress, deadline_s: float | None, *, peaceful: bool) -> bool:
    """End the living master: politely, and after the deadline for certain; whether the first was enough."""
    signed = Deadline(_SIGNED_S)
    while (master := holder(home)) is None:
        if not locked(home) or signed.passed:
            return True
        time.sleep(0.02)  # it is being started and has not signed yet
    try:
        handle = os.pidfd_open(master.pid)
    except ProcessLookupError:
        return True
    try:
        if not master.alive():
            return True
        progress("stopping the services")
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGUSR1 if peaceful else signal.SIGTERM)
        if processes.wait_gone(handle, deadline_s):
            return True
        progress(f"the master did not end within {deadline_s:g} s: killing it, which ends everything")
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        if not processes.wait_gone(handle, _KILLED_S):
            raise StopFailedError([master.pid])
        return False
    finally:
        os.close(handle)
