"""What machines wrote that never became ready: files that only the pool's own account can read."""

import contextlib
from pathlib import Path
from typing import Final

from kettle.auth.private_files import write_private

MOST: Final = 500
"""So many are kept, the newest."""


class ConsoleFiles:
    """A directory with a file for each lease."""

    def __init__(self, directory: Path) -> None:
        self._directory: Final = directory

    def keep(self, lease: str, text: str) -> None:
        """Keep the words of the machine of a lease; the oldest go.  Raises OSError."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._path(lease), text)
        kept = sorted(self._directory.iterdir(), key=lambda path: (path.stat().st_mtime, path.name))
        for path in kept[:-MOST]:
            path.unlink(missing_ok=True)

    def read(self, lease: str) -> str | None:
        """What is kept; None: nothing is, or not here."""
        with contextlib.suppress(FileNotFoundError):
            return self._path(lease).read_text(encoding="utf-8")
        return None

    def _path(self, lease: str) -> Path:
        """
        Names of leases begin with those of pools, which have no slash; a lease that was named otherwise would be no file here.
        """
        return self._directory / lease.replace("/", "_").lstrip(".")
