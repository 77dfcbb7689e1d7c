"""
What can go wrong with bringing a personal pool up or down.

    PoolError
    ├── HomeRefusedError    the pool's directory is not ours alone, or is no pool's directory
    ├── StartFailedError    the master ended, or was not ready in time; carries the end of its log
    └── StopFailedError     something of the pool is still there after everything was tried
"""

from pathlib import Path


class PoolError(Exception):
    """The message is a sentence for the person who wanted the pool."""


class HomeRefusedError(PoolError):
    """The directory cannot be a pool's home."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


class StartFailedError(PoolError):
    """The pool did not start.  Everything that had been started has been stopped again."""

    def __init__(self, why: str, log: Path, tail: str) -> None:
        super().__init__(f"{why}\nThe end of {log}:\n{tail}" if tail else f"{why}  See {log}.")
        self.log = log
        self.tail = tail


class StopFailedError(PoolError):
    """Processes of the pool did not end."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(f"still running after SIGKILL: {', '.join(map(str, pids))}.")
        self.pids = pids
