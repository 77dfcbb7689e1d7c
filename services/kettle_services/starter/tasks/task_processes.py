"""The processes of one task, while sidecars run beside it: measured, and ended without these."""

import os
import resource
import select
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import descendants_of
from kettle_services.starter.execution.process_tree import ProcessTree

_LOOK_S: Final = 0.05


class TaskProcesses(ProcessTree):
    """
    All processes of a job, of which `pid` is the running task's.

    A sidecar is its session and what came of it: one that leaves it has no other sign, and ends with the task.
    """

    def __init__(self, pid: int, cgroup: Cgroup | None) -> None:
        super().__init__(pid, cgroup)
        self.spent: resource.struct_rusage | None = None
        """What the task's process, and those that it has waited for, have used; None: nobody has seen its end."""

    def successor(self, pid: int) -> Self:
        """See `ProcessTree`; sidecars stay what they are."""
        tree = super().successor(pid)
        tree.visitors = self.visitors
        return tree

    def signal_task(self, number: int, sidecars: Sequence[int]) -> None:
        """Send a signal to the task's processes; `sidecars`: the processes of these."""
        spared = _families(sidecars)
        for pid in self._members():
            if pid not in spared:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def signal_family(self, sidecar: int, number: int) -> None:
        """Send a signal to the processes of a sidecar."""
        for pid in _families([sidecar]):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def end_task(self, sidecars: Sequence[int]) -> None:
        """SIGKILL until nothing is left but the sidecars."""
        if not sidecars:
            self.kill_all()
            return
        while not self.reap():
            spared = _families(sidecars)
            left = [pid for pid in self._members() if pid not in spared]
            if not left:
                return
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            _await(left[0])

    def _ended(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        super()._ended(pid, status, usage)
        if pid == self.pid:
            self.spent = usage


def _families(sidecars: Sequence[int]) -> set[int]:
    """The processes of sidecars: their sessions, and what descends from a process in one."""
    found, sessions = set[int](), set[int]()
    for sidecar in sidecars:
        found |= {sidecar, *descendants_of(sidecar)}
        with suppress(ProcessLookupError):
            sessions.add(os.getsid(sidecar))
    sessions.discard(os.getsid(0))
    for pid in descendants_of(os.getpid()):
        with suppress(ProcessLookupError):
            if os.getsid(pid) in sessions:
                found |= {pid, *descendants_of(pid)}
    return found


def _await(pid: int) -> None:
    """Wait for the end of a process that was killed, but not for long: another may have to be looked for."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([handle], [], [], _LOOK_S)
    finally:
        os.close(handle)
