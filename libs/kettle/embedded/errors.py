"""
What can go wrong with an embedded server.

    EmbeddedError
    ├── MissingBinaryError       the programs are not installed
    ├── AlreadySupervisedError   another living process runs this server
    └── StartError               it did not come up; carries the end of its log
"""

from pathlib import Path


class EmbeddedError(Exception):
    """An embedded server cannot be started; the message is a sentence for the user."""


class MissingBinaryError(EmbeddedError):
    """A program that we need is not installed."""


class AlreadySupervisedError(EmbeddedError):
    """Another living process holds the lock of this server's directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__(f"{directory}: another process runs the server of this directory.")
        self.directory = directory


class StartError(EmbeddedError):
    """The server ended, or did not answer in time, while it was being started."""

    def __init__(self, name: str, why: str, log: Path, tail: str) -> None:
        super().__init__(f"{name} {why}; the end of {log}:\n{tail}" if tail else f"{name} {why}; see {log}.")
        self.name = name
        self.log = log
        self.tail = tail
