"""The file with the routes: read again when it changes; one that is refused leaves those before in force."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kettle.routes import RouteFileError, RouteTable, read_routes
from kettle.routes.targets import leading_to, with_systems
from kettle_services.ce.domain.state import FILE
from kettle_services.ce.record import Record
from kettle_wire.events import RoutesLoaded, RoutesRefused

_log: Final = logging.getLogger(__name__)
_UNREADABLE: Final = "unreadable"


class RouteFile:
    """The routes in force, compiled."""

    def __init__(self, path: str, record: Record, systems: Mapping[str, str]) -> None:
        """`systems`: the batch systems that there are, kinds by names."""
        self._path = Path(path) if path else None
        self._record = record
        self.systems: Final = systems
        self._listeners: list[Callable[[], None]] = []
        self._seen: tuple[int, int, int] | None = None
        self.table: RouteTable | None = None
        """None: there are no routes."""

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when other routes are in force."""
        self._listeners.append(listener)

    async def recall(self) -> None:
        """Take the routes that were in force, and then what the file says now."""
        file = self._record.state.file
        if file.version:
            table = await asyncio.to_thread(read_routes, file.text, file.source)
            self.table = with_systems(table, self.systems)
        await self.look()

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
        except OSError as error:
            await self._refuse(_UNREADABLE, [f"{self._path} cannot be read: {error.strerror}"])
            self._seen = None
            return
        seen = (about.st_mtime_ns, about.st_size, about.st_ino)
        if seen != self._seen:
            await self.load()
            self._seen = seen

    async def load(self) -> list[str]:
        """Read the file; what is wrong with it, in sentences."""
        if self._path is None:
            return ["no file with routes is set: routes in [ce]"]
        try:
            text = await asyncio.to_thread(self._path.read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return await self._refuse(_UNREADABLE, [f"{self._path} cannot be read: {error}"])
        try:
            table = leading_to(await asyncio.to_thread(read_routes, text, str(self._path)), self.systems)
        except RouteFileError as error:
            problems = [f"{error.source}: {each}" for each in error.problems]
            return await self._refuse(hashlib.sha256(text.encode()).hexdigest()[:16], problems)
        state = self._record.state.file
        if table.version != state.version or state.refused:
            loaded = RoutesLoaded(version=table.version, text=text, source=str(self._path))
            await self._record.record([(FILE, loaded)])
            _log.info("routes are in force", extra={"version": table.version, "routes": len(table.routes)})
        if self.table is None or self.table.version != table.version:
            self.table = table
            for listener in self._listeners:
                listener()
        return []

    async def _refuse(self, version: str, problems: list[str]) -> list[str]:
        state = self._record.state.file
        if (state.refused, state.problems) != (version, problems):
            refused = RoutesRefused(version=version, source=str(self._path), problems=problems)
            await self._record.record([(FILE, refused)])
            _log.error(
                "routes are refused, and those before stay in force", extra={"cause": "; ".join(problems)}
            )
        return problems
