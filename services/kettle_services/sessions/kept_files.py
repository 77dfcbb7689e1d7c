"""
What must not be recorded of sessions: the files that their owners have given them, and the secret from which certificates follow.

They lie in a directory of this service that only its account can read.
"""

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from kettle.auth.private_files import key_file, private_directory, write_private

_SECRET: Final = "certificates.key"  # noqa: S105 - the name of a file
_FILES: Final = "files"


class KeptFiles:
    """Everything here blocks on the disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def secret(self) -> bytes:
        """The secret; made when it is wanted for the first time."""
        return key_file(self._directory / _SECRET)

    def keep(self, session: str, files: Mapping[str, str]) -> None:
        """Keep the files of a session."""
        place = private_directory(self._directory / _FILES / session)
        for name, data in files.items():
            write_private(place / name, data)

    def of(self, session: str) -> dict[str, str]:
        """The files of a session."""
        place = self._directory / _FILES / session
        return (
            {path.name: path.read_text(encoding="utf-8") for path in sorted(place.iterdir())}
            if place.is_dir()
            else {}
        )

    def drop(self, session: str) -> None:
        """Remove those of one that is over."""
        shutil.rmtree(self._directory / _FILES / session, ignore_errors=True)

    def forget(self, living: Collection[str]) -> None:
        """Remove those of sessions that are over; before the first one begins."""
        place = self._directory / _FILES
        for each in list(place.iterdir()) if place.is_dir() else []:
            if each.name not in living:
                shutil.rmtree(each)
