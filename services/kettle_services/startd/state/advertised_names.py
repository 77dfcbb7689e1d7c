"""
The names of the ads that a startd has published, for the next one: a killed process cannot withdraw them.

Only services that match may read the pool's ads, so the names cannot be found in the bucket.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_log: Final = logging.getLogger(__name__)


class AdvertisedNames:
    """A file of one name a line.  It grows by what is new: names of slots are used again and again."""

    def __init__(self, path: Path) -> None:
        """Read what a former startd has left."""
        self._path = path
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        self.left: Final = set(text.splitlines())
        """Names that a former startd published and did not take back."""
        self._noted = set(self.left)

    def add(self, names: Iterable[str]) -> None:
        """These names are about to be published."""
        fresh = [name for name in names if name not in self._noted]
        if not fresh:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(f"{name}\n" for name in fresh)
        except OSError as error:  # on a full disk: at worst the ads live until they expire
            _log.warning("names of ads not noted", extra={"cause": str(error)})
            return
        self._noted.update(fresh)

    def clear(self) -> None:
        """All have been taken back."""
        self._path.unlink(missing_ok=True)
        self._noted.clear()


def slot_of(name: str) -> str:
    """The key of a slot's private ad, by that of its ad."""
    return name.partition(".")[2]
