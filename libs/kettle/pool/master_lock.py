"""
The master's lock: at most one master runs in a home, and everybody can find out which one.

It is a `flock`, so it ends with the master however that ends.  `up` takes it and hands the open file on to the master
that it starts: there is no moment in which a second `up` could start a second one.
"""

import fcntl
import os
import time
from typing import Final

import msgspec

from kettle.pool import processes
from kettle.pool.home import Home
from kettle.retry.deadline import Deadline
from kettle.retry.lock_files import is_held

_GLANCE_S: Final = 0.2
"""
A process that only checks whether the lock is taken holds it for a moment; a process that takes it waits for longer
than that.
"""


class Holder(msgspec.Struct, frozen=True):
    """A master: process ids are used again, so the time at which it started belongs to its name."""

    pid: int
    started: int
    """Clock ticks after the machine's start, as the kernel counts them."""

    def alive(self) -> bool:
        """Whether it is still this process."""
        return processes.start_ticks(self.pid) == self.started


class MasterLock:
    """The held lock."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def take(cls, home: Home) -> "MasterLock | None":
        """Take the lock; None if a master has it."""
        fd = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        glance = Deadline(_GLANCE_S)
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if glance.passed:
                    os.close(fd)
                    return None
                time.sleep(_GLANCE_S / 20)
            else:
                return cls(fd)

    def sign(self) -> None:
        """Write down that this process is the master."""
        pid = os.getpid()
        content = msgspec.json.encode(Holder(pid, processes.start_ticks(pid)))
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, content, 0)

    def release(self) -> None:
        """Release the lock in this process: a master that was given the open file still holds it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def locked(home: Home) -> bool:
    """Whether a master lives, or is being started."""
    try:
        return is_held(home.lock)
    except FileNotFoundError:
        return False


def holder(home: Home) -> Holder | None:
    """The living master; None if there is none, or none yet."""
    if not locked(home):
        return None
    try:
        found = msgspec.json.decode(home.lock.read_bytes(), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.alive() else None
