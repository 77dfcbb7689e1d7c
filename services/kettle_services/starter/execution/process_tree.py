"""
The process tree of one job: measured while it lives, ended to the last process.

The starter is the subreaper of everything below it, so "no children left" is proof that nothing of the job is left.  A
control group, where there is one, makes the killing atomic and the measuring exact.
"""

import os
import resource
import signal
from contextlib import suppress
from typing import Final, Self

from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import (
    cpu_seconds,
    descendants_of,
    is_subreaper,
    proportional_kib,
    resident_kib,
)

_MOST_LOOKS: Final = 100
"""How often we look for new processes: a set-user-id program may create them without end."""


class ProcessTree:
    """The job's main process and all that came of it."""

    def __init__(self, pid: int, cgroup: Cgroup | None) -> None:
        self.pid = pid
        self.status: int | None = None
        """Wait status of the main process, once it has ended."""
        self.peak_kib = 0
        self.measured_well = True
        """Whether what was measured last is what the job has in memory: what is not is no reason to end it."""
        self.visitors: dict[int, int | None] = {}
        """The wait statuses of processes beside the job that somebody waits for; None: it has not ended."""
        self.besides: set[int] = set()
        """Processes of ours that are none of the job's: not signalled with it, and not measured."""
        self._cgroup = cgroup
        self._largest_kib = 0
        self._used = (0.0, 0.0)
        """Largest resident memory, user and system time of those that have ended: of these alone, and not of what set up
        the job's container or of an earlier job."""

    def successor(self, pid: int) -> Self:
        """The family of the program's next life; what was used before is used by it too."""
        tree = type(self)(pid, self._cgroup)
        tree.peak_kib = self.peak_kib
        tree.besides = self.besides
        tree._largest_kib, tree._used = self._largest_kib, self._used  # noqa: SLF001 - of the same kind
        return tree

    def signal(self, number: int) -> None:
        """Send a signal to every process."""
        for pid in {*self._members(), *([self.pid] if self.status is None else [])}:
            with suppress(
                ProcessLookupError, PermissionError
            ):  # a set-user-id program may be beyond our rights
                os.kill(pid, number)

    def suspend(self) -> int:
        """
        Suspend every process, and return how many there are.

        Without a group that can be frozen, each process is stopped: a stopped process makes no new ones, so it is
        enough to look until no running one is left.  A second look must find none either: the first may have missed one
        whose parent ended just then.  Processes with more rights than ours continue.
        """
        if self._cgroup is not None and self._cgroup.freeze(frozen=True):
            return len(self._cgroup.pids())
        stopped: set[int] = set()
        empty = 0
        for _ in range(_MOST_LOOKS):
            found = {*self._members(), *([self.pid] if self.status is None else [])} - stopped
            empty = 0 if found else empty + 1
            if empty == 2:
                break
            for pid in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= found
        return len(stopped)

    def resume(self) -> None:
        """Have every process go on."""
        if self._cgroup is None or not self._cgroup.freeze(frozen=False):
            self.signal(signal.SIGCONT)

    def reap(self) -> bool:
        """
        Collect processes that have ended; whether the job has none left, with others of ours or without.
        """
        try:
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return bool(self.besides) and not self._members()
                self._ended(pid, status, usage)
        except ChildProcessError:
            return True

    def kill_all(self) -> None:
        """
        SIGKILL until nothing is left.

        What is forked while we look has a parent that is being killed; its end wakes us to look again.

        Whatever descends from this process is ended, so it has to be one that was made for a job: a RuntimeError if it has not
        become the subreaper of all that it begins.
        """
        if not is_subreaper():
            raise RuntimeError(
                "this process is no starter: it is not the subreaper of what it has begun, and would end what is no job's"
            )
        while not self.reap():
            if self._cgroup is not None:
                self._cgroup.kill()
            self.signal(signal.SIGKILL)
            with suppress(ChildProcessError):
                self._ended(*os.wait4(-1, 0))

    def measure(self) -> int:
        """
        Memory of all processes now, KiB; remembers the most.

        The group knows it; without one it is the sum of proportional sets, because processes share most of what they
        have in memory.  Where the kernel does not say these either, resident sets are added, which is too much.
        """
        now = self._cgroup.resident_kib() if self._cgroup is not None else 0
        self.measured_well = True
        if not now:
            sets = [(pid, proportional_kib(pid)) for pid in self._members()]
            self.measured_well = len(sets) <= 1 or all(kib is not None for _, kib in sets)
            now = sum(resident_kib(pid) if kib is None else kib for pid, kib in sets)
        self.peak_kib = max(self.peak_kib, now)
        return now

    def memory_kib(self) -> int:
        """
        The most resident memory there was, as far as it can be known.

        The kernel's figure for the largest process starts with the starter that it was forked from, and the group's
        counts cached files: the smaller of the two is nearer.  What was sampled is certain.
        """
        charged = self._cgroup.memory_peak_kib() if self._cgroup is not None else 0
        return max(self.peak_kib, min(self._largest_kib, charged) if charged else self._largest_kib)

    def cpu_seconds(self) -> tuple[float, float]:
        """
        User and system time of all processes that have ended; the group also knows those that nobody waited for.
        """
        user, system = self._cgroup.cpu_seconds() if self._cgroup is not None else (0.0, 0.0)
        return max(self._used[0], user), max(self._used[1], system)

    def running_cpu_seconds(self) -> tuple[float, float]:
        """CPU seconds while the job runs: of processes that have ended, and of live ones."""
        group = self._cgroup.cpu_seconds() if self._cgroup is not None else (0.0, 0.0)
        if any(group):
            return group
        user, system = self.cpu_seconds()
        living = [cpu_seconds(pid) for pid in self._members()]
        return user + sum(used[0] for used in living), system + sum(used[1] for used in living)

    def _members(self) -> list[int]:
        found = descendants_of(os.getpid())
        if not self.besides:
            return found
        others = {*self.besides, *(below for pid in self.besides for below in descendants_of(pid))}
        return [pid for pid in found if pid not in others]

    def _ended(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        if pid in self.besides:
            return
        self._largest_kib = max(self._largest_kib, usage.ru_maxrss)
        self._used = self._used[0] + usage.ru_utime, self._used[1] + usage.ru_stime
        if pid == self.pid:
            self.status = status
        if pid in self.visitors:
            self.visitors[pid] = status


def empty_process_tree(cgroup: Cgroup | None) -> ProcessTree:
    """
    The family of a job that has no main process, as far as we know: there may still be somebody to be ended.
    """
    tree = ProcessTree(0, cgroup)
    tree.status = 0  # never signalled: to the kernel that number means ourselves
    return tree
