"""
A master that restarts itself: the same process, executed again with the current settings and the installed version.
"""

import os
import sys
from typing import Final

from kettle.runtime import lifeline

_LOCK: Final = "KETTLE_MASTER_LOCK_FD"


class SelfRestart:
    """Whether the master ends to be followed by itself.  The lock of its home stays held in between."""

    def __init__(self) -> None:
        self.wanted = False
        self._lock_fd = -1

    def hand_on(self, lock_fd: int) -> None:
        """What the successor holds on to."""
        self._lock_fd = lock_fd

    def take_place(self) -> None:
        """Become the successor; returns only if it is not wanted.  Raises OSError."""
        if not self.wanted:
            return
        os.set_inheritable(self._lock_fd, True)
        os.environ[_LOCK] = str(self._lock_fd)
        if fd := os.environ.get(lifeline.VARIABLE):
            os.set_inheritable(int(fd), True)
        os.execv(sys.executable, [sys.executable, "-P", "-m", "kettle_services.master"])  # noqa: S606 - our own program
