"""
Connections over which nothing is asked, or so slowly that it never will be: they are ended, so that nobody keeps others out by
holding many.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kettle.http.rate_limits import network

PATIENCE_S: Final = 10.0
"""From the beginning of a connection to its first request."""
MOST_SILENT: Final = 100
"""Connections of one network without a request."""
EVERY_S: Final = 1.0
KEPT_S: Final = 30.0
"""After a request a connection is kept for so long."""


class Connection(Protocol):
    """What the web server has of one; `aiohttp.web_protocol.RequestHandler`."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """It knows who is at the other end."""
        ...

    def force_close(self) -> None:
        """End it."""
        ...


class IdleConnections:
    """Which connections have asked nothing yet, and since when."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._silent: dict[Connection, float] = {}
        self._asked: set[Connection] = set()

    def asked(self, connection: Connection) -> None:
        """A request came over it; from now on the web server itself ends it when it is idle."""
        self._asked.add(connection)

    def sweep(self, connections: Sequence[Connection]) -> None:
        """
        Look at all that there are: those that are silent too long, or too many of one network, are ended.
        """
        now = self._clock()
        self._asked &= set(connections)
        self._silent = {each: self._silent.get(each, now) for each in connections if each not in self._asked}
        held: Counter[str] = Counter()
        for each, since in self._silent.items():
            peer = each.transport.get_extra_info("peername") if each.transport is not None else None
            whose = network(str(peer[0])) if peer else ""
            held[whose] += 1
            too_many = held[whose] > MOST_SILENT and since < now  # one that has just come may be about to ask
            if too_many or now - since >= PATIENCE_S:
                each.force_close()

    async def watch(self, connections: Callable[[], Sequence[Connection]]) -> None:
        """Sweep again and again; never returns."""
        while True:
            self.sweep(connections())
            await asyncio.sleep(EVERY_S)
