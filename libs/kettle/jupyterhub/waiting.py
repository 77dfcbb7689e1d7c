"""What a person is told while a server starts, on the page of the hub: each wait with its reason."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

from kettle.jupyterhub.server_orders import ServerSeen

_FAR: Final = {
    "requested": 5,
    "queued": 10,
    "starting": 50,
    "degraded": 50,
    "ready": 80,
    "stopping": 100,
    "ended": 100,
}
_WORDS: Final = {
    "requested": "The pool is asked for a server",
    "queued": "The server waits for a machine",
    "starting": "The server starts",
    "degraded": "The server waits",
    "ready": "The server runs, and is connected",
    "stopping": "The server is being stopped",
    "ended": "The server has ended",
}
MOST: Final = 200
"""Lines; a server that waits for long has no longer page because of that."""


def line_of(seen: ServerSeen) -> dict[str, Any]:
    """One line, as JupyterHub wants it."""
    reason = f": {seen.reason}" if seen.reason else ""
    return {"progress": _FAR[seen.state], "message": f"{_WORDS[seen.state]}{reason}"}


class ProgressBoard:
    """The lines of one start, for everybody who looks, from the first on."""

    def __init__(self) -> None:
        self._lines: list[dict[str, Any]] = []
        self._ended = False
        self._changed = asyncio.Event()

    def tell(self, line: dict[str, Any]) -> None:
        """Add a line, unless it is the last one already."""
        if len(self._lines) >= MOST or (self._lines and self._lines[-1] == line):
            return
        self._lines.append(line)
        self._wake()

    def end(self) -> None:
        """There will be no more."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def lines(self) -> AsyncGenerator[dict[str, Any]]:
        """All of them, as they come."""
        shown = 0
        while True:
            changed = self._changed
            for line in self._lines[shown:]:
                yield line
                shown += 1
            if self._ended and shown == len(self._lines):
                return
            if shown == len(self._lines):
                await changed.wait()
