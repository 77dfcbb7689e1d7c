"""
The processes of machines that are processes of this host, found by a mark in their environment and never by a name.

Whatever a machine starts inherits the mark, or descends from something that has it: services, starters and their jobs.
"""

import os
import signal
from collections.abc import Iterable
from typing import Final

from kettle.execution.system.linux import descendants_of, signal_process, start_time

MARK: Final = "_KETTLE_MACHINE_"
_ROUNDS: Final = 20
"""A tree that still grows after so many looks is looked at again by the next request."""


def marked(prefix: str) -> dict[str, set[int]]:
    """
    The living processes by the mark that they carry, of marks that begin so; those that descend from them included.
    """
    found: dict[str, set[int]] = {}
    wanted = f"{MARK}={prefix}".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        pid = int(entry.name)
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - for each process of the host
                variables = file.read().split(b"\0")
        except OSError:  # it has ended, or is none of ours
            continue
        for variable in variables:
            if variable.startswith(wanted):
                of_mark = found.setdefault(variable[len(MARK) + 1 :].decode(errors="replace"), set())
                if pid not in of_mark:  # else it descends from one that was met, and so does all below it
                    of_mark.update([pid, *descendants_of(pid)])
    return {mark: there for mark, pids in found.items() if (there := living(pids))}


def tree(mark: str, root: int | None) -> set[int]:
    """All living processes of one machine; `root`: the one that was started, if it is there."""
    pids = marked(mark).get(mark, set())
    if root is not None:
        pids |= {root, *descendants_of(root)}
    return living(pids)


def living(pids: Iterable[int]) -> set[int]:
    """Those that have not ended."""
    return {pid for pid in pids if start_time(pid) is not None}


def kill_tree(mark: str, root: int | None) -> None:
    """
    End all processes of a machine. They are stopped first, until no more appear: what is stopped starts nothing.
    """
    stopped: dict[int, int] = {}
    for _ in range(_ROUNDS):
        new = {
            pid: started
            for pid in tree(mark, root)
            if pid not in stopped and (started := start_time(pid)) is not None
        }
        if not new:
            break
        for pid, started in new.items():
            signal_process(pid, signal.SIGSTOP, started=started)
        stopped |= new
    for pid, started in stopped.items():
        signal_process(pid, signal.SIGKILL, started=started)
