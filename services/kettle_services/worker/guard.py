"""
The dead man's switch: a small process that outlives everything else of the machine, and ends it all when its life is over.

It is the program that a provider has started.  The agent, its child, tells it by when everything will be over if it keeps to its
course; an agent that is dead, or has not ended by then, is ended together with all that was started here.
"""

import contextlib
import logging
import os
import select
import signal
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kettle.execution.system.linux import boottime
from kettle.pool import PoolError, down

_log: Final = logging.getLogger(__name__)
EXIT_DEAD: Final = 4
"""The agent did not end by itself."""
_MOMENT: Final = struct.Struct("d")
_POLITE: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)
"""What batch systems announce the end of a job with."""


class Line:
    """The agent's end of the line to its guard."""

    def __init__(self, end: socket.socket) -> None:
        self.end: Final = end

    def tell(self, dead: float) -> None:
        """By when everything will be over, seconds since boot."""
        with contextlib.suppress(OSError):  # that the guard is dead is noticed by who waits at this end
            self.end.send(_MOMENT.pack(dead))


def guard(agent: Callable[[Line], int], home: Path, *, ends: float, shutdown: bool) -> int:
    """
    Run the agent in a child, and see to it that nothing is left of it; the exit status.

    `ends`: seconds since boot at which everything is over, whatever the agent says.
    """
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        here.close()
        os._exit(agent(Line(there)))
    there.close()
    handle = os.pidfd_open(pid)
    for number in _POLITE:
        signal.signal(number, lambda _number, _frame: _forward(handle))
    if not _ended_by_itself(handle, here, ends):
        _log.error("the machine's life is over, and its agent has not ended: everything is killed")
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        _log.error("the agent ended with %s", signal.Signals(-status).name)
    _leave_nothing(home)
    if shutdown:
        subprocess.run(["/sbin/shutdown", "-P", "now"], check=False)
    return status if status >= 0 else EXIT_DEAD


def _forward(handle: int) -> None:
    """What announces the end to us is for the agent."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGTERM)


def _ended_by_itself(handle: int, line: socket.socket, ends: float) -> bool:
    """Wait until the agent has ended, or until it should have."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    waiting.register(line, select.POLLIN)
    dead = ends
    while (left := dead - boottime()) > 0:
        ready = {fd for fd, _ in waiting.poll(left * 1000)}
        if handle in ready:
            return True
        if line.fileno() in ready:
            if said := line.recv(_MOMENT.size):
                dead = min(ends, _MOMENT.unpack(said)[0])
            else:
                waiting.unregister(line)  # it is ending
    return False


def _leave_nothing(home: Path) -> None:
    """End what still runs, and take away what the machine showed to the bus."""
    from kettle.pool.joined_files import (
        record_of,
        remove,
    )  # what is not loaded takes no memory as long as the machine lives
    from kettle.pool.joining import JoinError

    try:
        down(home, deadline_s=0.0)
        if (record := record_of(home)) is not None:
            remove(home, record)
    except (PoolError, JoinError) as error:
        _log.error("something is left: %s", error)
