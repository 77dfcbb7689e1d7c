"""Job event logs where jobs want them, but not among the pool's own files, except for their own spool."""

import re
from pathlib import Path
from typing import Final

from kettle.transfer.spooled_jobs import LOG
from kettle.userlog import Appender, UserLogError
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.spool.job_files import private

_OF_CLUSTER: Final = re.compile(r"^[0-9]{3} \(0*([0-9]+)\.", re.MULTILINE)


class JobAppender(Appender):
    """
    Refuses what is no path, or leads into the pool's own directory: that log is not written, the others are.
    """

    def __init__(self, places: FileAccess, *, spool: Path | None = None) -> None:
        """`spool`: where the files of jobs are that are sent here, by cluster: each has its logs there."""
        super().__init__()
        self._places = places
        self._spool = spool

    def append(self, path: Path, text: str) -> None:
        """Add whole events. Raises UserLogError."""
        try:
            if self._is_spooled(path) and {path.parent.name} == set(_OF_CLUSTER.findall(text)):
                private(path.parent)
            else:
                self._places.refuse_own(path)
            super().append(path, text)
        except OSError as error:
            raise UserLogError(path, error.strerror or str(error), errno=error.errno or 0) from error
        except ValueError as error:
            raise UserLogError(path, str(error)) from error

    def tail(self, path: Path, *, limit: int = 32 << 20) -> str:
        """The end of a log. Raises UserLogError."""
        try:
            if not self._is_spooled(path):
                self._places.refuse_own(path)
            return super().tail(path, limit=limit)
        except OSError as error:
            raise UserLogError(path, error.strerror or str(error), errno=error.errno or 0) from error
        except ValueError as error:
            raise UserLogError(path, str(error)) from error

    def _is_spooled(self, path: Path) -> bool:
        known = path.parent.name.isdecimal() and LOG.fullmatch(path.name) is not None
        return known and path.parent.parent == self._spool
