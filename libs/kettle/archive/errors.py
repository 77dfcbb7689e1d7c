"""
What can go wrong with archived events.

    LogError
    └── ArchiveError           files of the archive cannot be written or read
        ├── DamagedArchiveError   a file is missing or is not the one that was verified when it was written
        └── ArchiverBusyError     another archiver works on the same database
"""

from kettle.eventsourcing.log import LogError


class ArchiveError(LogError):
    """The archive cannot be used; what is in it and in the database is as it was."""


class DamagedArchiveError(ArchiveError):
    """
    A file is missing or is another one. Nothing that depends on it can be read until it is brought back.
    """


class ArchiverBusyError(ArchiveError):
    """One archiver at a time."""
