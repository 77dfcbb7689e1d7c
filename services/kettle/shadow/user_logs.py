"""Job event logs where jobs want them, but not among the pool's own files."""

from pathlib import Path

from kettle.shadow.places import Places
from kettle.userlog import Appender, UserLogError


class JobAppender(Appender):
    """Refuses what is no path, or leads into the pool's own directory: that log is not written, the others are."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self._places = places

    def append(self, path: Path, text: str) -> None:
        """Add whole events. Raises UserLogError."""
        try:
            self._places.refuse_own(path)
            super().append(path, text)
        except OSError as error:
            raise UserLogError(path, error.strerror or str(error), errno=error.errno or 0) from error
        except ValueError as error:
            raise UserLogError(path, str(error)) from error

    def tail(self, path: Path, *, limit: int = 32 << 20) -> str:
        """The end of a log. Raises UserLogError."""
        try:
            self._places.refuse_own(path)
            return super().tail(path, limit=limit)
        except OSError as error:
            raise UserLogError(path, error.strerror or str(error), errno=error.errno or 0) from error
        except ValueError as error:
            raise UserLogError(path, str(error)) from error
