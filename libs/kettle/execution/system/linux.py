"""The few system calls that Python does not have, and what Linux reports about a process."""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Final

_SET_CHILD_SUBREAPER: Final = 36
_GET_CHILD_SUBREAPER: Final = 37
_CLOCK_TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE_KIB: Final = os.sysconf("SC_PAGE_SIZE") // 1024

_prctl: Final = ctypes.CDLL(None, use_errno=True).prctl


def become_subreaper() -> None:
    """
    Become the parent of all orphans below us, so that none leaves our sight, whatever sessions it makes.
    """
    _prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def is_subreaper() -> bool:
    """Whether this process is the parent of all orphans below it."""
    found = ctypes.c_int()
    return _prctl(_GET_CHILD_SUBREAPER, ctypes.byref(found), 0, 0, 0) == 0 and bool(found.value)


def forget_peak() -> None:
    """
    Reset our high-water mark of resident memory to what we have now: a process that we spawn begins with it.

    Where the kernel cannot do that, the peak of such a process is reported as no less than our own.
    """
    with contextlib.suppress(OSError):
        fd = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"5")
        finally:
            os.close(fd)


def boottime() -> float:
    """
    Seconds since the machine booted, sleep included: the clock on which leases are counted.

    One clock for all processes of a machine, and it survives them all; it does not survive a boot (see `boot_id`).
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Differs after every boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_time(pid: int) -> int | None:
    """
    When a process started, in clock ticks since boot: with the pid, its identity.  None: there is no such process.
    """
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def parent_of(pid: int) -> int | None:
    """The parent of a process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def resident_kib(pid: int) -> int:
    """Resident set of a process, KiB; 0 if it has ended."""
    fields = _stat(pid)
    return 0 if fields is None else int(fields[21]) * PAGE_KIB


def proportional_kib(pid: int) -> int | None:
    """
    Proportional set of a process, KiB: a page that several processes share counts in each by its part.

    0 if it has ended; None if the kernel does not say it, or not to us.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123 - hot
            sizes = [line.split()[1] for line in file if line.startswith(b"Pss:")]
    except (FileNotFoundError, ProcessLookupError):
        return 0 if _stat(pid) is None else None
    except OSError:
        return None
    return int(sizes[0]) if sizes else 0  # what has no memory any more is about to end


def cpu_seconds(pid: int) -> tuple[float, float]:
    """User and system time of a process so far, its reaped children included."""
    fields = _stat(pid)
    if fields is None:
        return 0.0, 0.0
    user, system, waited_user, waited_system = (int(field) for field in fields[11:15])
    return (user + waited_user) / _CLOCK_TICKS, (system + waited_system) / _CLOCK_TICKS


def terminal_of(pid: int) -> int:
    """The device number of the terminal that controls a process; 0: it has none."""
    fields = _stat(pid)
    if fields is None:
        return 0
    packed = int(fields[4]) & 0xFFFFFFFF
    return os.makedev(packed >> 8 & 0xFFF, packed & 0xFF | packed >> 12 & 0xFFF00)


def _stat(pid: int) -> list[str] | None:
    """Fields of `/proc/PID/stat` from the third on; the second, the name, may contain anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - Path costs a tenth of a starter's time
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(b")") + 2 :].decode("ascii").split()
    return None if fields[0] in {"Z", "X"} else fields


def children_of(pid: int) -> list[int]:
    """Direct children of a process, those of all its threads."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - as above
    except (FileNotFoundError, ProcessLookupError):
        return found
    for thread in threads:
        with (
            contextlib.suppress(FileNotFoundError, ProcessLookupError),
            open(f"/proc/{pid}/task/{thread}/children", "rb") as file,  # noqa: PTH123 - as above
        ):
            found += [int(child) for child in file.read().split()]
    return found


def descendants_of(pid: int) -> list[int]:
    """All processes below one, parents before children."""
    found = children_of(pid)
    for child in found:
        found += children_of(child)
    return found


def signal_process(pid: int, number: int, *, started: int | None = None) -> bool:
    """
    Send a signal to exactly this process, never to one that got its number later; whether it was there.

    One that runs with rights beyond ours (a set-user-id program of a job) is there and gets no signal.
    """
    try:
        fd = os.pidfd_open(pid)
    except (ProcessLookupError, ValueError):
        return False
    try:
        if started is not None and start_time(pid) != started:
            return False
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    finally:
        os.close(fd)
    return True


def signal_child(pid: int, number: int) -> bool:
    """
    Send a signal to a child of this process, if it has not ended; whether it was there.

    As with `signal_process`, nobody else gets it who was given the number when the child was gone: asyncio says that a process
    has ended a moment after its number became free.
    """
    try:
        fd = os.pidfd_open(pid)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:  # there is no descriptor for it; who ends a child may not fail at that
        fd = -1
    try:
        if parent_of(pid) != os.getpid():
            return False
        if fd >= 0:
            signal.pidfd_send_signal(fd, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return False
    finally:
        if fd >= 0:
            os.close(fd)
    return True


def end_group(pid: int) -> None:
    """
    SIGKILL for the process group that a child of this process leads, unless somebody has waited for the child already.
    """
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return  # its number, and so its group's, may be somebody else's
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
