"""Processes that a test ends, of which it knows a number."""

import os
import signal
from types import TracebackType
from typing import Final, Self

from kettle.execution.system.linux import parent_of


class KnownProcess:
    """
    One process, and nobody who is given its number later; as a context, until it is not wanted any more.

    A number is of some process for certain only where it is read from that process, or while nobody has waited for it.
    """

    def __init__(self, pid: int) -> None:
        """Raises ProcessLookupError: there is none of this number."""
        if pid <= 1:
            raise ProcessLookupError(f"{pid} is no process of a test")
        self.pid: Final = pid
        self._handle: Final = os.pidfd_open(pid)

    @classmethod
    def parent_of(cls, pid: int) -> Self:
        """The parent of a living process. Raises ProcessLookupError: there is no such process."""
        parent = parent_of(pid)
        if parent is None:
            raise ProcessLookupError(f"{pid} has ended")
        found = cls(parent)
        if parent_of(pid) != parent:
            found.close()
            raise ProcessLookupError(f"{pid} has lost its parent at this moment")
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def there(self) -> bool:
        """Whether it is there, be it one that has ended and that nobody has waited for."""
        try:
            signal.pidfd_send_signal(self._handle, 0)
        except ProcessLookupError:
            return False
        return True

    def send(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal. Raises ProcessLookupError: it has ended."""
        signal.pidfd_send_signal(self._handle, number)

    def close(self) -> None:
        """Forget it."""
        os.close(self._handle)


def end_parent(pid: int) -> None:
    """
    SIGKILL for the parent of a living process: for a job's, that is its starter. Raises ProcessLookupError.
    """
    with KnownProcess.parent_of(pid) as parent:
        parent.send()
