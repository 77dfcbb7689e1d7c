"""
The file with the profiles: read again when it changes; one that is refused leaves those before in force.
"""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Final

from kettle.worker_pools.faults import PoolFileRefused
from kettle_services.sessions.domain.profiles import Profile, built_in, read_profiles

_log: Final = logging.getLogger(__name__)


class ProfileFile:
    """The profiles in force."""

    def __init__(self, path: str) -> None:
        """`path`: empty for those that are built in."""
        self.source: Final = path
        self._path = Path(path) if path else None
        self._seen: tuple[int, int, int] | None = None
        self.profiles: dict[str, Profile] = {} if path else built_in(sys.executable)
        self.problems: list[str] = []
        """What is wrong with the file as it is now."""

    async def watch(self, interval: float) -> None:
        """Look again and again whether the file has changed; never returns."""
        while True:
            await asyncio.sleep(interval)
            await self.look()

    async def look(self) -> None:
        """Read the file if it has changed."""
        if self._path is None:
            return
        try:
            about = await asyncio.to_thread(self._path.stat)
            seen = (about.st_mtime_ns, about.st_size, about.st_ino)
            if seen == self._seen:
                return
            text = await asyncio.to_thread(self._path.read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._refuse([f"{self._path} cannot be read: {error}"])
            self._seen = None
            return
        self._seen = seen
        try:
            self.profiles = read_profiles(text, str(self._path))
        except PoolFileRefused as refusal:
            self._refuse([str(each) for each in refusal.faults])
            return
        self.problems = []
        _log.info("profiles are in force", extra={"profiles": len(self.profiles)})

    def _refuse(self, problems: list[str]) -> None:
        if problems != self.problems:
            _log.error(
                "profiles are refused, and those before stay in force", extra={"cause": "; ".join(problems)}
            )
        self.problems = problems
