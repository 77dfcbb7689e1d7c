"""
Job event logs where jobs want them, with the rights of the jobs' owners, and not among the pool's own files except for
their own spool.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from kettle.accounts.lookup import StrangerError
from kettle.transfer.spooled_jobs import LOG
from kettle.userlog import Appender, UserLogError
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.owners import Owners
from kettle_services.shadow.spool.job_files import private

T = TypeVar("T")

_OF_CLUSTER: Final = re.compile(r"^[0-9]{3} \(0*([0-9]+)\.", re.MULTILINE)


class JobAppender:
    """
    Refuses what is no path, is not its owner's to write, or leads into the pool's own directory: that log is not written,
    the others are.
    """

    def __init__(self, owners: Owners, *, spool: Path | None = None) -> None:
        """`spool`: where the files of jobs are that are sent here, by cluster: each has its logs there."""
        self._owners = owners
        self._spool = spool

    def append(self, path: Path, text: str, *, owner: str) -> None:
        """Add whole events. Raises UserLogError."""
        if path == Path(os.devnull):
            return

        def in_spool() -> None:
            private(path.parent)
            Appender().append(path, text)

        if self._is_spooled(path) and {path.parent.name} == set(_OF_CLUSTER.findall(text)):
            _named(path, in_spool)
        else:
            self._of_owner(path, owner, lambda appender: appender.append(path, text))

    def tail(self, path: Path, *, owner: str, limit: int = 32 << 20) -> str:
        """The end of a log. Raises UserLogError."""
        if path == Path(os.devnull):
            return ""
        if self._is_spooled(path):
            return _named(path, lambda: Appender().tail(path, limit=limit))
        return self._of_owner(path, owner, lambda appender: appender.tail(path, limit=limit))

    def _of_owner(self, path: Path, owner: str, work: Callable[[Appender], T]) -> T:
        """An owner who was not recorded is that of the pool: nobody else's jobs ran when that was so."""
        try:
            places = self._owners.look(owner) if owner else self._owners.own
        except StrangerError as error:
            raise UserLogError(path, str(error)) from error
        appender = _OwnersAppender(places)
        return _named(path, lambda: places.act("write the log", path, lambda: work(appender)))

    def _is_spooled(self, path: Path) -> bool:
        known = path.parent.name.isdecimal() and LOG.fullmatch(path.name) is not None
        return known and path.parent.parent == self._spool


class _OwnersAppender(Appender):
    """Opens what a path leads to if that is a file that its owner may use."""

    def __init__(self, places: FileAccess) -> None:
        super().__init__()
        self._places = places

    def open(self, path: Path, flags: int, mode: int = 0o644) -> int:
        return self._places.open(str(path), flags, mode, quick=True)


def _named(path: Path, work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as error:
        raise UserLogError(path, error.strerror or str(error), errno=error.errno or 0) from error
    except ValueError as error:
        raise UserLogError(path, str(error)) from error
