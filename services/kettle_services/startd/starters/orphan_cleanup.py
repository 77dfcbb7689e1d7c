"""
Cleaning up after a starter that cannot: its job's processes, its control group, its sandbox.

A process belongs to the job if it is in the job's group, runs as the slot's own account, carries the sandbox's path in
its environment, works inside the sandbox, or has part of it mounted in a namespace of its own.  Together these find it also where there are no groups and no accounts.
"""

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.policy import FoundRuntime
from kettle.execution.containers.runtimes.runtime import MARK
from kettle.execution.sandbox import private_directories
from kettle.execution.sandbox.account_remains import AccountRemains
from kettle.execution.sandbox.directory import AREAS, Sandbox, area_of
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.cgroup_layout import CgroupLayout
from kettle.execution.system.linux import signal_process, start_time
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline

_log: Final = logging.getLogger(__name__)
_BACKOFF: Final = Backoff(first=0.005, longest=0.5, spread=0.0)


def remove_remains(
    sandbox: str,
    account: Account | None,
    cgroup: Cgroup | None,
    engines: Sequence[FoundRuntime] = (),
    *,
    patience: float = 30.0,
    stopped: Callable[[], bool] = lambda: False,
    hurried: Callable[[], bool] = lambda: False,
) -> bool:
    """
    End every process of a job and remove what it has; whether no process is left after `patience` seconds.

    Gives up when `stopped`: then somebody else may already have given the slot's account to a new job.

    Blocks: call it in a thread.  What `engines` have for the sandbox goes after its processes, unless they are silent or
    we are `hurried`.  That, and files that cannot be removed, are dead weight, but nothing that runs: they only make a
    line in the log, and the next startd tries again.
    """
    if not _end(sandbox, account, cgroup, patience, stopped):
        return False
    if engines and not _removed(engines, sandbox, lambda: stopped() or hurried()):
        if stopped():
            return False
        _log.warning("a container cannot be removed now", extra={"sandbox": sandbox})
    if cgroup is not None:
        cgroup.remove()
    try:
        try:
            if account is not None:
                AccountRemains(account, begins=False).remove()
        finally:
            Sandbox(sandbox).remove()
    except OSError as error:
        _log.warning("something of a job cannot be removed", extra={"sandbox": sandbox, "cause": str(error)})
    return True


def _end(
    sandbox: str,
    account: Account | None,
    cgroup: Cgroup | None,
    patience: float,
    stopped: Callable[[], bool],
) -> bool:
    deadline, looks = Deadline(patience), 0
    while found := _remaining(sandbox, account, cgroup):
        if stopped():
            return False
        if cgroup is not None:
            cgroup.kill()
        for pid in found:
            signal_process(pid, signal.SIGKILL)
        if deadline.passed:
            return False
        time.sleep(_BACKOFF.length(looks))
        looks += 1
    return True


def _removed(engines: Sequence[FoundRuntime], sandbox: str, leaving: Callable[[], bool]) -> bool:
    from kettle.execution.containers.runtimes.engine import remove_containers  # few machines have one
    from kettle.execution.containers.runtimes.engine_client import StoppedError

    def watch() -> None:
        if leaving():
            raise StoppedError("nobody waits for it")

    return remove_containers(engines, sandbox, watch)


def leftovers(execute: Path, layout: CgroupLayout | None) -> list[str]:
    """Names of sandboxes and groups that exist, also those that others made; spare directories go at once."""
    private_directories.remove_spares(str(execute))
    found = {path.name.removeprefix(AREAS) for kind in ("", AREAS) for path in execute.glob(f"{kind}dir_*")}
    if layout is not None:
        with contextlib.suppress(OSError):
            found |= {f"dir_{path.name}" for path in Path(layout.parent).iterdir() if path.is_dir()}
    return sorted(found)


def _remaining(sandbox: str, account: Account | None, cgroup: Cgroup | None) -> set[int]:
    found = set(cgroup.pids()) if cgroup is not None else set[int]()
    marks = tuple(f"{name}={sandbox}\0".encode() for name in ("_CONDOR_SCRATCH_DIR", MARK))
    areas = _areas(sandbox)
    us = os.getpid()
    for entry in os.scandir("/proc"):
        if (
            entry.name.isdigit()
            and (pid := int(entry.name)) != us
            and _belongs(pid, sandbox, marks, areas, account)
        ):
            found.add(pid)
    return {pid for pid in found if start_time(pid) is not None}


def _belongs(
    pid: int, sandbox: str, marks: Sequence[bytes], areas: tuple[bytes, ...], account: Account | None
) -> bool:
    try:
        if account is not None and os.stat(f"/proc/{pid}").st_uid == account.uid:  # noqa: PTH116 - for every process
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - the same
            environ = b"\0" + file.read() + b"\0"
            if any(b"\0" + mark in environ for mark in marks):
                return True
        if _has_mounted(pid, areas):
            return True
        where = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115 - the same
    except OSError:
        return False  # gone, or not ours
    return where == sandbox or where.startswith(sandbox + "/")


def _has_mounted(pid: int, areas: tuple[bytes, ...]) -> bool:
    """Whether a process is in a container whose mounts begin in one of `areas`, see `_areas`."""
    theirs, ours = (os.readlink(f"/proc/{who}/ns/mnt") for who in (pid, "self"))  # noqa: PTH115 - the same
    if theirs == ours:
        return False
    with open(f"/proc/{pid}/mountinfo", "rb") as file:  # noqa: PTH123 - the same
        return any(b" ".join(line.split(b" ", 4)[2:4]).startswith(areas) for line in file)


def _areas(sandbox: str) -> tuple[bytes, ...]:
    """
    Where the containers of a sandbox have their mounts, as the kernel says it in any mount namespace: device and path
    inside of the file system.  The sandbox's name alone would not do: another pool may have one of the same name.

    Starters of earlier versions, which may still run, made them within the sandbox.
    """
    real = os.path.realpath(sandbox)
    with open("/proc/self/mountinfo", "rb") as file:  # noqa: PTH123 - once for all processes
        mounts = [line.split(b" ", 5)[2:5] for line in file]
    return tuple(_mounted(b"%s/" % _escaped(path), mounts) for path in (area_of(real), f"{real}/.container"))


def _mounted(path: bytes, mounts: list[list[bytes]]) -> bytes:
    # The last of several mounts on one place is the one that is seen.
    device, root, point = max(
        (mount for mount in reversed(mounts) if path.startswith(mount[2].rstrip(b"/") + b"/")),
        key=lambda mount: len(mount[2]),
    )
    return b"%s %s%s" % (device, root.rstrip(b"/"), path[len(point.rstrip(b"/")) :])


def _escaped(path: str) -> bytes:
    return b"".join(b"\\%03o" % byte if byte in b" \t\n\\" else bytes((byte,)) for byte in os.fsencode(path))
